package collecttest

import (
	"testing"

	"tare/collect"
	"tare/record"
	"tare/sandbox"
)

// Figures opens a collector for the rest of the test. It returns a function that reads it
// once: values by NAME{LABELS}, without the reader's own cost.
func Figures(t *testing.T, c collect.Collector, scopes ...sandbox.LocalScope) func() map[string]float64 {
	t.Helper()
	p := open(t, c, scopes)
	return func() map[string]float64 {
		t.Helper()
		got, err := p.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, s := range got {
			if s.Name != record.CollectorCPU {
				out[s.Name+"{"+string(s.Labels)+"}"] = s.Value
			}
		}
		return out
	}
}

// AllocatesNothing checks that a probe allocates nothing from its second Read on.
func AllocatesNothing(t *testing.T, p collect.Probe) {
	t.Helper()
	var dst []record.Sample
	if n := testing.AllocsPerRun(50, func() { // after a first run that does not count
		var err error
		if dst, err = p.Read(dst[:0]); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a Read", n)
	}
}
