package study

import (
	"testing"

	"tare/param"
	"tare/record"
)

// TestWorkloadOf: a parameter that is a factor has its level in each stratum, and
// the study's own entry stays as it is.
func TestWorkloadOf(t *testing.T) {
	st := &Study{Workloads: []Workload{{Label: "startup", Kind: "startup", Params: param.Values{"repeats": "3"}}}}
	for _, p := range []string{"true", "node"} {
		st.Strata = append(st.Strata, Stratum{Shared: record.Cell{{Factor: FactorWorkload, Value: "startup"}, {Factor: "program", Value: p}}})
	}
	st.Strata = append(st.Strata, Stratum{Workload: 7})
	for i, want := range []string{"true", "node"} {
		w := st.WorkloadOf(i)
		if w.Kind != "startup" || w.Params["program"] != want || w.Params["repeats"] != "3" || len(w.Params) != 2 {
			t.Errorf("stratum %d: %+v", i, w)
		}
	}
	if len(st.Workloads[0].Params) != 1 {
		t.Errorf("the study has changed: %v", st.Workloads[0].Params)
	}
	if w := st.WorkloadOf(2); w.Kind != "" {
		t.Errorf("%+v", w)
	}
}
