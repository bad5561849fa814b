package advice

import (
	"slices"
	"strings"
	"testing"

	"tare/analyse/cause"
	"tare/record"
)

// TestUndecided: no setting is needed only where all cells of a treatment are as good as
// the baseline; of the others it is said how many are open, and what decides them.
func TestUndecided(t *testing.T) {
	l := newLab("net", nil)
	for _, n := range []string{"1", "2"} {
		l.finds(cause.None, "", at("runc", "default_vcpus", n)).Costs = false
	}
	l.finds(cause.None, "", at("vm", "default_vcpus", "1")).Costs = false // equal
	f := l.finds(cause.Quota, "", at("vm", "default_vcpus", "2"))
	ratio := 1 / 264.0
	f.Costs, f.Undecided, f.Ratio, f.Trials = false, true, &ratio, 1
	items := Build(l.in)
	if len(items) != 2 || items[0].Rule != "undecided" || items[1].Rule != "no-setting" || !slices.Equal(items[1].Treatments, []string{"sandbox=runc"}) || len(items[1].Cells) != 2 {
		t.Fatalf("%+v", items)
	}
	x := items[0]
	if !slices.Equal(x.Treatments, []string{"sandbox=vm"}) || len(x.Cells) != 1 || x.Cells[0].Key() != f.Cell.Key() || len(x.Patches) > 0 {
		t.Errorf("%+v", x)
	}
	for _, w := range []string{"Whether it costs is not sure in 1 of 2 cases: too noisy, or too few blocks.", "264 × the baseline's cost in throughput", "from 1 block only.", "tare run STUDY --set sandbox=process,vm --set workload=w --set stop.fixed=8."} {
		if !strings.Contains(x.Text, w) {
			t.Errorf("%q is not in %q", w, x.Text)
		}
	}
	if strings.Contains(x.Text, "{{") || strings.Contains(x.Text, "imported") {
		t.Errorf("%q", x.Text)
	}

	f.Trials = 6
	if s := Build(l.in)[0].Text; !strings.Contains(s, "from 6 blocks only.") || !strings.Contains(s, "stop.fixed=24") {
		t.Errorf("of six trials: %q", s)
	}
	l.in.Imported = true
	if x := Build(l.in)[0]; strings.Contains(x.Text, "tare run") || strings.Contains(x.Change+x.Text, "easure") || !strings.Contains(x.Text, "from 6 blocks only.") || x.Change != "Import more blocks from the source" {
		t.Errorf("imported: %q, %q", x.Change, x.Text)
	}
	better := 3.0
	f.Ratio = &better
	if s := Build(l.in)[0].Text; strings.Contains(s, "worst") {
		t.Errorf("more throughput is said to be worse: %q", s)
	}
	f.Ratio = nil
	l.in.Findings = []cause.Finding{*f}
	if items := Build(l.in); slices.ContainsFunc(items, func(x Item) bool { return x.Rule == "undecided" || x.Rule == "no-setting" }) {
		t.Errorf("without a baseline: %+v", items)
	}
}

// TestUndecidedBlocks: the command asks for the blocks that most of the cases need, by the report's own numbers; those that need very many do
// not count, and are named.
func TestUndecidedBlocks(t *testing.T) {
	l := newLab("fio", nil)
	more := map[string]int{}
	l.in.Needs = func(c record.Cell) int { return more[c.Key()] }
	for _, c := range []struct {
		box, vcpus string
		more       int
	}{{"vm", "1", 29}, {"vm", "2", 72}, {"vm", "4", 9}, {"runc", "1", 313}} {
		cell := at(c.box, "default_vcpus", c.vcpus)
		f := l.finds(cause.None, "", cell)
		f.Costs, f.Undecided, f.Trials = false, true, 3
		more[cell.Key()] = c.more
	}
	for _, w := range []string{
		" More blocks decide 2 of them: tare run STUDY --set sandbox=process,vm --set workload=w --set stop.fixed=32. To decide 1 more, it takes up to 75 blocks.",
		" Not decidable in reasonable time, at over 100 blocks each: w runc default_vcpus=1 (316).",
	} {
		if s := Build(l.in)[0].Text; !strings.Contains(s, w) {
			t.Errorf("%q is not in %q", w, s)
		}
	}
	delete(more, at("vm", "default_vcpus", "4").Key()) // the report says nothing: four times its trials
	if s := Build(l.in)[0].Text; !strings.Contains(s, "decide 2 of them") || !strings.Contains(s, "stop.fixed=32.") {
		t.Errorf("one of unknown need: %q", s)
	}
	for k := range more {
		more[k] = 5000
	}
	more[at("vm", "default_vcpus", "4").Key()] = 5000
	if x := Build(l.in)[0]; strings.Contains(x.Text, "tare run") || !strings.Contains(x.Text, "in reasonable time") || x.Change != "Leave it open, or measure with less noise" {
		t.Errorf("too many for all: %q: %q", x.Change, x.Text)
	}
}

// TestUndecidedSearch: a search leaves out levels on purpose. Where it found its answer they are not called undecided.
func TestUndecidedSearch(t *testing.T) {
	l := newLab("fio", nil)
	l.in.Found = func(stratum string) bool { return stratum == "workload=w" }
	for _, level := range []string{"runc", "vm"} {
		f := l.finds(cause.None, "", at(level))
		f.Costs, f.Undecided, f.Trials = false, level == "vm", 1
	}
	if items := Build(l.in); len(items) > 0 {
		t.Errorf("of a search that found its answer: %+v", items)
	}
	f := l.finds(cause.Quota, "", at("vm"))
	f.Stratum, f.Costs, f.Undecided, f.Trials = "workload=other", false, true, 1
	if items := Build(l.in); len(items) != 1 || items[0].Rule != "undecided" || len(items[0].Cells) != 1 {
		t.Errorf("of a second search that goes on: %+v", items)
	}
}

// TestStoppedSearch: where a search is not finished, it goes on, and no more blocks of everything are asked for.
func TestStoppedSearch(t *testing.T) {
	l := newLab("fio", nil)
	l.in.Stopped, l.in.On = func(stratum string) bool { return stratum == "workload=w" }, "--on model"
	for _, level := range []string{"runc", "vm"} {
		f := l.finds(cause.None, "", at(level))
		f.Costs, f.Undecided, f.Trials = false, level == "vm", 1
	}
	items := Build(l.in)
	if len(items) != 1 || items[0].Rule != "search-continue" || len(items[0].Cells) != 2 || len(items[0].Patches) > 0 {
		t.Fatalf("%+v", items)
	}
	const want = "Continue the search. Its answer is not clear, because its budget ended or it was interrupted. It goes on, and keeps all trials, with this command: tare tune STUDY --on model --budget LARGER."
	if items[0].Text != want {
		t.Errorf("%q", items[0].Text)
	}
}
