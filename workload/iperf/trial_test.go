package iperf

import (
	"os"
	"testing"

	"tare/param"
	"tare/record"
	"tare/trial/trialtest"
)

func TestMain(m *testing.M) {
	os.Exit(trialtest.Main(m.Run, map[string]trialtest.Program{"iperf": Main}))
}

// TestTrials: each direction with each end in a sandbox, one of them in each kind.
func TestTrials(t *testing.T) {
	v := param.Values{"duration": "1s", "warmup": "0s", "streams": "2"}
	b := trialtest.New(t, New(), v)
	for _, isolate := range []string{"client", "server"} {
		for _, direction := range []string{"upload", "download"} {
			t.Run(isolate+" "+direction, func(t *testing.T) {
				v["direction"] = direction
				kinds := []string{trialtest.GVisor}
				if isolate == "client" && direction == "upload" {
					kinds = trialtest.Kinds()
				}
				b.In(t, kinds, v, isolate, func(t *testing.T, tr *record.Trial) {
					if rate, _ := tr.Sample("throughput"); rate < 1e6 {
						t.Errorf("throughput %g B/s", rate)
					}
				})
			})
		}
	}
}
