package study

import "testing"

// TestBaselineLeftOut: levels on the command line that leave out the file's baseline are compared with the native one, if that is among them.
func TestBaselineLeftOut(t *testing.T) {
	text := "study: x\nbaseline: runc\nfactors: {sandbox: [runc, vm]}\nworkloads: {n: {kind: net, mode: rr}}\n"
	for set, want := range map[string]string{"sandbox=vm,process": "process", "sandbox=process,runc": "runc"} {
		s, err := Parse("t.yaml", []byte(text), testCatalogue(), []string{set})
		if err != nil || s.Baseline != want {
			t.Errorf("%s: %v, want the baseline %s", set, err, want)
			continue
		}
		if said := len(s.Notes) > 0; said != (want == "process") {
			t.Errorf("%s: the notes are %q", set, s.Notes)
		}
	}
}
