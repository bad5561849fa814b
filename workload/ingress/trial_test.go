package ingress

import (
	"os"
	"testing"

	"tare/param"
	"tare/record"
	"tare/trial/trialtest"
	httpload "tare/workload/http"
)

func TestMain(m *testing.M) {
	os.Exit(trialtest.Main(m.Run, map[string]trialtest.Program{"http": httpload.Main, "ingress": Main}))
}

// TestTrials: HAProxy with each termination and both loads, natively and in gVisor, once in runc too.
func TestTrials(t *testing.T) {
	native := trialtest.Kinds()[:1]
	trials := []struct {
		name  string
		v     param.Values
		kinds []string
	}{
		{"plain", param.Values{"routes": "50", "connections": "4"}, trialtest.Kinds()},
		{"edge", param.Values{"termination": edge, "connections": "4", "keep-alive": "false", "delay": "5ms"}, native},
		{"passthrough", param.Values{"termination": passthrough, "connections": "4", "load": "open", "rate": "100"}, native},
		{"reencrypt", param.Values{"termination": reencrypt, "connections": "4", "load": "open", "rate": "50", "keep-alive": "false", "resume": "true", "routes": "3"},
			[]string{trialtest.GVisor}},
		{"processes", param.Values{"processes": "2", "proxy-threads": "2", "pin": "0+1", "maxconn": "100", "connections": "8", "threads": "2"}, native},
	}
	var all []param.Values
	for _, c := range trials {
		c.v["warmup"], c.v["duration"] = "600ms", "400ms"
		all = append(all, c.v)
	}
	b := trialtest.New(t, New(), all...)
	for _, c := range trials {
		t.Run(c.name, func(t *testing.T) {
			b.In(t, c.kinds, c.v, proxy, func(t *testing.T, tr *record.Trial) {
				count := map[string]float64{}
				for _, s := range tr.Samples {
					if s.Labels == record.MakeLabels("end", client) {
						count[s.Name] = s.Value
					}
				}
				if count["requests"] < 10 {
					t.Errorf("%g requests in 0.4 s", count["requests"])
				}
				if want := c.v["resume"] == "true"; want != (count["resumed"] > 0) {
					t.Errorf("%g of %g handshakes resumed a session", count["resumed"], count["handshakes"])
				}
			})
		})
	}
}
