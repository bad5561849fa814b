package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/record"
	"tare/store"
	"tare/study"
)

// TestCompletedCommands: trials of ten seconds, so that eight blocks of two cells take 160 s. A budget that is too short for
// the blocks is replaced by one that is enough, and otherwise kept.
func TestCompletedCommands(t *testing.T) {
	const source = "study: s\nfactors: {sandbox: [process, runc]}\nworkloads: {noop: {}}\nbudget: {time: 1h}\nsentinel: off\ncalls: off\n"
	cat, err := offered()
	if err != nil {
		t.Fatal(err)
	}
	const more, cells = "Decide: tare run STUDY --set 'sandbox=process,runc' --set stop.fixed=8.", "tare run STUDY --set sandbox=process,runc"
	bundled := filepath.Join("tmp", unpackedIn+"1", "r")
	for _, c := range []struct {
		dir, text string
		overrides []string
		want      string
	}{
		{"r", more, nil, "Decide: tare run r/study.yaml --results r-advice-1 --set 'sandbox=process,runc' --set stop.fixed=8."},
		{"r", more, []string{"noop.sleeps=5", "budget.time=40s", "stop.fixed=2"}, "Decide: tare run r/study.yaml --results r-advice-1 --set noop.sleeps=5 --budget 3m --set 'sandbox=process,runc' --set stop.fixed=8."},
		{"r", more, []string{"budget.time=5m"}, "Decide: tare run r/study.yaml --results r-advice-1 --set budget.time=5m --set 'sandbox=process,runc' --set stop.fixed=8."},
		{"r", more, []string{"budget.blocks=4", "noop.sleeps=5"}, "Decide: tare run r/study.yaml --results r-advice-1 --set noop.sleeps=5 --set budget.blocks=8 --set 'sandbox=process,runc' --set stop.fixed=8."},
		{"r", more, []string{"budget.blocks=4", "budget.time=40s"}, "Decide: tare run r/study.yaml --results r-advice-1 --set budget.blocks=8 --budget 3m --set 'sandbox=process,runc' --set stop.fixed=8."},
		{"r", more, []string{"budget.blocks=9"}, "Decide: tare run r/study.yaml --results r-advice-1 --set budget.blocks=9 --set 'sandbox=process,runc' --set stop.fixed=8."},
		{"r", cells, []string{"budget.time=40s"}, "tare run r/study.yaml --results r-advice-1 --budget 66s --set sandbox=process,runc"},
		{"r", cells, []string{"budget.time=1m"}, "tare run r/study.yaml --results r-advice-1 --set budget.time=1m --set sandbox=process,runc"},
		{"a b", cells, nil, "tare run 'a b/study.yaml' --results 'a b-advice-1' --set sandbox=process,runc"},
		{bundled, cells, nil, cells + " (" + unpackedStudy + ")"},
		{"r", "Leave it.", nil, "Leave it."},
	} {
		st, err := study.Parse("s.yaml", []byte(source), cat, c.overrides)
		if err != nil {
			t.Fatal(err)
		}
		r := &analysed{dir: c.dir, result: &analyse.Result{}, content: content{kept: kept{meta: store.Meta{StudyFile: "s.yaml", StudySource: []byte(source)}, study: st, cat: cat},
			trials: []record.Trial{{Cell: st.Strata[0].Cells[0], Duration: 10 * time.Second}}}}
		got := r.completed([]advice.Item{{Text: c.text, Patches: []advice.Patch{{Text: c.text + "\n"}}}})[0]
		if got.Text != c.want {
			t.Errorf("%s, %q:\ngot  %s\nwant %s", c.dir, c.overrides, got.Text, c.want)
		}
		if p := got.Patches[0].Text; !strings.HasSuffix(p, "\n") || strings.Contains(p, "STUDY ") && !strings.Contains(p, "\n# STUDY: ") {
			t.Errorf("%s: the patch is %q", c.dir, p)
		}
	}
}
