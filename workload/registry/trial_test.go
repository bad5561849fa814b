package registry

import (
	"os"
	"testing"

	"tare/param"
	"tare/record"
	"tare/trial/trialtest"
)

func TestMain(m *testing.M) {
	os.Exit(trialtest.Main(m.Run, map[string]trialtest.Program{"registry": Main}))
}

// TestTrials: both registries in each sandbox, pulled from and pushed to.
func TestTrials(t *testing.T) {
	small := func(more param.Values) param.Values {
		v := param.Values{"layer-size": "256KiB", "images": "4", "clients": "2", "duration": "200ms", "warmup": "50ms"}
		for name, x := range more {
			v[name] = x
		}
		return v
	}
	for what, v := range map[string]param.Values{
		"distribution, pull": small(nil),
		"distribution, push": small(param.Values{"operation": push}),
		"tare, pipeline":     {"operation": operationPipeline, "program": own, "layer-size": "64KiB", "rate": "10", "duration": "1s", "warmup": "50ms"},
		"tare, cold":         small(param.Values{"program": own, "cache": dropped}),
	} {
		t.Run(what, func(t *testing.T) {
			b := trialtest.New(t, New(), v)
			b.In(t, trialtest.Kinds(), v, "server", func(t *testing.T, tr *record.Trial) {
				if rate, ok := tr.Sample("rate"); !ok || rate <= 0 {
					t.Errorf("rate = %g", rate)
				}
			})
		})
	}
}
