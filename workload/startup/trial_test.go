package startup

import (
	"os"
	"testing"

	"tare/param"
	"tare/record"
	"tare/trial/trialtest"
)

func TestMain(m *testing.M) { os.Exit(trialtest.Main(m.Run, nil)) }

// TestTrials: the services answer, one of them in each sandbox; the runtime's part of the time
// comes before.
func TestTrials(t *testing.T) {
	for program, kinds := range map[string][]string{"node": trialtest.Kinds(), "ruby": {trialtest.GVisor}} {
		t.Run(program, func(t *testing.T) {
			v := param.Values{"program": program, "repeats": "1"}
			trialtest.New(t, New(), v).In(t, kinds, v, "", func(t *testing.T, tr *record.Trial) {
				answer, _ := tr.Sample("answer")
				created, _ := tr.Sample("create")
				if answer < 0.02 || answer > 60 || created <= 0 {
					t.Errorf("answer after %g s, created after %g s", answer, created)
				}
			})
		})
	}
}
