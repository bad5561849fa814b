package density

import (
	"os"
	"testing"

	"tare/param"
	"tare/record"
	"tare/run/trialtest"
)

func TestMain(m *testing.M) { os.Exit(trialtest.Main(m.Run, nil)) }

// TestTrials: each program waits in each sandbox. What it takes is judged only
// where it is far more than what else changes on a busy host.
func TestTrials(t *testing.T) {
	for _, v := range []param.Values{
		{"program": "sleep", "count": "3"},
		{"program": "node", "count": "3"},
		{"program": "ruby", "count": "3"},
		{"program": "redis", "count": "3", "data": "300MB"},
	} {
		t.Run(v["program"], func(t *testing.T) {
			trialtest.New(t, New(), v).Each(t, v, "", func(t *testing.T, tr *record.Trial) {
				per, ok := tr.Sample("memory_per_sandbox")
				if !ok || v["program"] == "redis" && per < 50e6 {
					t.Errorf("%g B each (%v), warnings %+v", per, ok, tr.Warnings)
				}
			})
		})
	}
}
