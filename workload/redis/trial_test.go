package redis

import (
	"os"
	"strings"
	"testing"

	"tare/param"
	"tare/record"
	"tare/trial/trialtest"
)

func TestMain(m *testing.M) {
	os.Exit(trialtest.Main(m.Run, map[string]trialtest.Program{"redis": Main}))
}

// TestTrials: the real server in each sandbox, from its image, and the client in one.
func TestTrials(t *testing.T) {
	v := param.Values{"tests": "get,lpop,lrange_600,mset", "duration": "50ms", "warmup": "20ms"}
	b := trialtest.New(t, New(), v)
	for isolate, kinds := range map[string][]string{"server": trialtest.Kinds(), "client": {trialtest.GVisor}} {
		t.Run(isolate, func(t *testing.T) {
			b.In(t, kinds, v, isolate, func(t *testing.T, tr *record.Trial) {
				for name := range strings.SplitSeq(v["tests"], ",") {
					if rate, ok := tr.Sample(name); !ok || rate < 1 {
						t.Errorf("%s = %g", name, rate)
					}
				}
			})
		})
	}
	t.Run("a test that there is none of", func(t *testing.T) {
		tr := b.Trial(t, param.Values{"tests": "xadd", "duration": "50ms"}, "process", "server")
		if tr.Status == record.OK {
			t.Skip("this redis-benchmark has XADD")
		}
		if !strings.Contains(tr.Failure.Reason, "does not have the test") {
			t.Errorf("%+v", tr.Failure)
		}
	})
}
