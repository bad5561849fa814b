package density

import (
	"os"
	"slices"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/trial/trialtest"
)

func TestMain(m *testing.M) { os.Exit(trialtest.Main(m.Run, nil)) }

// TestTrials: a program waits in each sandbox, the others in one. What it takes is judged only
// where it is far more than what else changes on a busy host.
func TestTrials(t *testing.T) {
	for _, c := range []struct {
		values param.Values
		kinds  []string
	}{
		{param.Values{"program": "sleep", "count": "3"}, trialtest.Kinds()},
		{param.Values{"program": "node", "count": "3"}, []string{trialtest.GVisor}},
		{param.Values{"program": "ruby", "count": "3"}, []string{"runc"}},
		{param.Values{"program": "redis", "count": "3", "data": "300MB"}, []string{"runc"}},
	} {
		v := c.values
		t.Run(v["program"], func(t *testing.T) {
			b := trialtest.New(t, New(), v)
			b.In(t, c.kinds, v, "", func(t *testing.T, tr *record.Trial) {
				// Before each but the first, as much was given back as now is taken.
				off := func(per float64) bool { return v["program"] == "redis" && (per < 285e6 || per > 400e6) }
				per, ok := tr.Sample("memory_per_sandbox")
				for tries := 1; ok && off(per); tries++ {
					if tries == 4 && slices.ContainsFunc(tr.Warnings, doubts) {
						t.Skipf("this host's memory is not at rest: %g B each, and tare itself doubts it: %s", per, tr.Warnings[0].Code)
					}
					if tries == 4 {
						break
					}
					time.Sleep(10 * time.Second) // until what others began with it has ended
					kind, _ := tr.Cell.Get("sandbox")
					if tr = b.Trial(t, v, kind, ""); tr.Status != record.OK {
						t.Fatalf("%+v", tr.Failure)
					}
					per, ok = tr.Sample("memory_per_sandbox")
				}
				if !ok || off(per) {
					t.Errorf("%g B each (%v), warnings %+v", per, ok, tr.Warnings)
				}
			})
		})
	}
}

// doubts are the warnings that say: what was read is the host's doing.
func doubts(w record.Warning) bool { return w.Code == belowNoise || w.Code == "memory-not-monotone" }
