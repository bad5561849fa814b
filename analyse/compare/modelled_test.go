package compare

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tare/record"
)

// asModelled is a side whose trials say that a model made them.
func asModelled(s Folder) Folder {
	s.Trials = slices.Clone(s.Trials)
	for i := range s.Trials {
		s.Trials[i].Facts = map[string]string{"server.accelerator": record.AcceleratorModel}
	}
	return s
}

func TestModelledAndMeasuredAreNotCompared(t *testing.T) {
	a, b := planted(2, 2, "", 1)
	for _, sides := range [][2]Folder{{a, asModelled(b)}, {asModelled(a), b}} {
		_, err := Compare([]Folder{sides[0]}, []Folder{sides[1]}, Options{Describe: describe})
		var refusal *Refusal
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "not compared") {
			t.Errorf("modelled beside measured: %v", err)
		}
	}
	if res := mustCompare(t, a, b, Options{}); res.Modelled {
		t.Error("measured ones are said to be modelled")
	}
	res := mustCompare(t, asModelled(a), asModelled(b), Options{})
	if !res.Modelled || !slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.Contains(w, "modelled") }) {
		t.Errorf("nothing says that both are modelled: %v", res.Warnings)
	}
}
