package objects

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
)

// TestLate: a percentile that is the time of a pod or claim that was late is only a lower bound, and has a sample that says so.
func TestLate(t *testing.T) {
	h := NewHistogram()
	for range 8 {
		Note(h, time.Second)
	}
	for range 2 {
		Note(h, 15*time.Second) // the timeout
	}
	times, err := Encode(h)
	if err != nil {
		t.Fatal(err)
	}
	for late, want := range map[int][]string{0: nil, 2: {"bound_p95", "bound_p99"}} {
		var rd record.Reading
		if err := (&Claims{Way: []Stage{{Name: BoundTo, Times: times, Late: late}}}).samples(&rd, "1"); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range rd.Samples {
			if s.Name == record.StepLate {
				got = append(got, s.Labels.Get(record.LabelFigure))
			}
		}
		if len(got) != len(want) || len(got) > 0 && (got[0] != want[0] || got[1] != want[1]) {
			t.Errorf("%d late: %q, want %q", late, got, want)
		}
	}
	// All steps together: eight claims are in time, two are late, so the response is a bound, too.
	var rd record.Reading
	r := report{steps: []Step{{Claims: &Claims{Bound: 8, Bind: 1, Gone: 8, Remove: 1, Way: []Stage{{Name: BoundTo, Times: times, Late: 2}}}}}}
	if err := r.claims(&rd); err != nil {
		t.Fatal(err)
	}
	if tr := (&record.Trial{Samples: rd.Samples}); tr.AtLeast("bound_p50") || !tr.AtLeast("bound_p95") {
		t.Errorf("the samples of all steps are %v", rd.Samples)
	}
	if err := (&Claims{Way: []Stage{{Name: BoundTo, Times: times, Late: 11}}}).samples(&record.Reading{}, "1"); err == nil {
		t.Error("more claims are late than there are")
	}
}

// TestLatePods: three of the four pods of the last step, and so of all twelve, did not run in time. So both percentiles of that step, but
// only the 99th of all, are lower bounds.
func TestLatePods(t *testing.T) {
	b, err := os.ReadFile("testdata/pods.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	at := strings.LastIndex(text, `"never":0`)
	v, err := param.Fill(New().Params(), param.Values{"count": "12"})
	if err != nil {
		t.Fatal(err)
	}
	rd, err := New().Parse(roleLoad, v, strings.NewReader(text[:at]+strings.Replace(text[at:], "0", "3", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if tr := (&record.Trial{Samples: rd.Samples}); tr.AtLeast("pod_start_p50") || !tr.AtLeast("pod_start_p99") || tr.AtLeast("api_latency_p99") {
		t.Errorf("of all steps: %v", rd.Samples)
	}
	var got []string
	for _, s := range rd.Samples {
		if step := s.Labels.Get(record.LabelStep); s.Name == record.StepLate && step != "" {
			got = append(got, step+" "+s.Labels.Get(record.LabelFigure))
		}
	}
	if want := []string{"3 pod_start_p50", "3 pod_start_p99"}; !slices.Equal(got, want) {
		t.Errorf("of a step: %q, want %q", got, want)
	}
}
