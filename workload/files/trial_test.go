package files

import (
	"os"
	"slices"
	"testing"

	"tare/param"
	"tare/record"
	"tare/trial"
	"tare/trial/trialtest"
)

func TestMain(m *testing.M) {
	os.Exit(trialtest.Main(m.Run, map[string]trialtest.Program{"files": Main}))
}

// TestTrial: trials in real sandboxes have every response, on each target and of a program
// from an image.
func TestTrial(t *testing.T) {
	const few, short = "100", "100ms"
	all := []param.Values{
		{"target": "data", "cache": "dropped"},
		{"target": "root", "threads": "2"},
		{"target": "tmpfs", "operations": "missing"},
		{"load": "untar"},
		{"load": "git-status", "target": "bind"},
	}
	for _, v := range all {
		v["files"], v["duration"], v["warmup"], v["width"] = few, short, "0s", "2"
	}
	b := trialtest.New(t, New(), all...)
	for _, v := range all {
		t.Run(v["target"]+v["load"], func(t *testing.T) {
			b.In(t, []string{"process", trialtest.GVisor}, v, "", func(t *testing.T, tr *record.Trial) {
				filled, err := param.Fill(New().Params(), v)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range New().Responses(filled) {
					if got, ok := tr.Sample(r.Name); !ok || got <= 0 {
						t.Errorf("%s is %v", r.Name, got)
					}
				}
				if !slices.ContainsFunc(tr.Phases, func(p record.Phase) bool { return p.Name == trial.PhaseLayOut }) {
					t.Errorf("phases %v: the files are laid out before", tr.Phases)
				}
			})
		})
	}
}
