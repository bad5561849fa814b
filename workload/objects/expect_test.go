package objects

import (
	"os"
	"testing"
	"time"

	"tare/param"
	"tare/workload"
)

// TestExpect: the plan's estimate is what the captures took, with the end of their namespaces, or up to a half more or less.
func TestExpect(t *testing.T) {
	for capture, v := range map[string]param.Values{
		"pods": {"count": "12"}, "configmaps": {"object": ConfigMap, "count": "90", "churn": "10"}, "rate": {"object": ConfigMap, "count": "30", "steps": "2", "rate": "50"}, "own": own(),
		"claims": {"count": "6", "steps": "2"}, "claims-alone": {"count": "12", "steps": "2", "consumer": ConsumerNone},
	} {
		f, err := os.Open("testdata/" + capture + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		r, err := read(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		s := &r.steps[len(r.steps)-1]
		took := s.Begin + s.Create + s.Settle + s.Churn + r.end.Removed
		w := New()
		if s.Claims != nil {
			w, took = NewClaims(), took+s.Claims.Remove
		}
		if v, err = param.Fill(w.Params(), v); err != nil {
			t.Fatal(err)
		}
		roles, err := w.Roles(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := workload.Total(roles); got.Seconds() < took/1.5 || got.Seconds() > took*1.5 {
			t.Errorf("%s: %v, and it took %v", capture, got, time.Duration(took*float64(time.Second)))
		}
	}
	// Many pods have many nodes: the lab's two would take 12 hours for 100,000.
	v, err := param.Fill(New().Params(), param.Values{"count": "100000", "steps": "5"})
	if err != nil {
		t.Fatal(err)
	}
	if roles, err := New().Roles(v); err != nil || workload.Total(roles) > 2*time.Hour {
		t.Errorf("100,000 pods: %v, %v", workload.Total(roles), err)
	}
	// On the lab, a step of 1,000 pods on simulated nodes took 17 s with others' work, and the trial about 140 s.
	v, err = param.Fill(New().Params(), param.Values{"count": "4000", "steps": "4", "nodes": Simulated, "workers": "16"})
	if err != nil {
		t.Fatal(err)
	}
	if roles, err := New().Roles(v); err != nil || workload.Total(roles) < 100*time.Second || workload.Total(roles) > 200*time.Second {
		t.Errorf("on simulated nodes: %v, %v", workload.Total(roles), err)
	}
}
