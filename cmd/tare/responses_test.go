package main

import (
	"slices"
	"testing"

	"tare/study"
)

// TestResponsesOfStrata: where a listed parameter decides what there is to read,
// each stratum is asked only for what it has, described as it is there.
func TestResponsesOfStrata(t *testing.T) {
	cat, err := offered()
	if err != nil {
		t.Fatal(err)
	}
	st, err := study.Parse("s.yaml", []byte(`study: s
baseline: process
factors: {sandbox: [process, runc]}
workloads:
  startup: {program: [hello, node]}
  fio: {rw: [randread, randrw]}
  net: {mode: [rr, stream]}
`), cat, nil)
	if err != nil {
		t.Fatal(err)
	}
	describe := responsesOf(st, cat)
	for i := range st.Strata {
		w := st.WorkloadOf(i)
		res, err := st.Resolve(cat, st.Strata[i].Cells[0])
		if err != nil {
			t.Fatal(err)
		}
		var has []string
		for _, r := range describe(w) {
			has = append(has, r.Name)
		}
		for _, name := range w.Responses {
			if !slices.Contains(has, name) {
				t.Errorf("%s is asked for %s, of %q", st.Strata[i].Key, name, has)
			}
		}
		if len(w.Responses) == 0 || !slices.Equal(w.Responses, res.Workload.Responses) || len(w.Responses) == len(st.Workloads[st.Strata[i].Workload].Responses) {
			t.Errorf("%s: %q of %q; a trial is asked for %q", st.Strata[i].Key, w.Responses, st.Workloads[st.Strata[i].Workload].Responses, res.Workload.Responses)
		}
	}
}
