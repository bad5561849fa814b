package analyse

import (
	"testing"

	"tare/record"
)

// TestLevelAtLeast: a level is a lower bound if the value is one in half of the trials or more.
func TestLevelAtLeast(t *testing.T) {
	response := record.Response{Name: "pod_start_p99", Unit: record.Second}
	for late, want := range []bool{false, false, true, true, true} {
		trials, values := make(map[int]*record.Trial), make(map[int]float64)
		for block := range 4 {
			var rd record.Reading
			if block < late {
				rd.Value(record.StepLate, record.Count, 1, record.LabelFigure, response.Name)
			}
			trials[block], values[block] = &record.Trial{Samples: rd.Samples}, 15
		}
		if got := level(trials, values, response); got.AtLeast != want {
			t.Errorf("%d of 4 trials are late: %t", late, got.AtLeast)
		}
	}
}
