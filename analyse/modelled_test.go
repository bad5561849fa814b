package analyse

import (
	"slices"
	"testing"

	"tare/plan"
	"tare/record"
)

// TestModelled: a result says so as soon as its trials do, whatever their role, and no
// published figures stand beside it.
func TestModelled(t *testing.T) {
	st := makeStudy()
	st.Published = "gvisor-guide"
	with := func(facts map[string]string) *Result {
		return Analyse(st, play(st, nil, func(n plan.Next) record.Trial {
			t := outcome(n)
			t.Facts = facts
			return t
		}), nil, Describe(describe))
	}
	if r := with(map[string]string{"server.accelerator": "kvm", "model.measured": "model"}); r.Modelled || r.Published == nil {
		t.Errorf("measured: %v, %v", r.Modelled, r.Published)
	}
	if r := with(map[string]string{"main.node": "node1"}); !r.OnCluster || r.On() != "--on k8s" {
		t.Errorf("on a cluster: %v, %q", r.OnCluster, r.On())
	}
	r := with(map[string]string{"main.accelerator": record.AcceleratorModel})
	if !r.Modelled || r.OnCluster || r.On() != "--on model" || r.Published != nil {
		t.Errorf("modelled: %v, %v", r.Modelled, r.Published)
	}
	if !slices.ContainsFunc(r.Warnings, func(w Warning) bool { return w.Code == "modelled" }) {
		t.Errorf("nothing says where the published figures are: %v", r.Warnings)
	}
}
