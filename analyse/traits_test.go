package analyse

import (
	"testing"

	"tare/record"
	"tare/study"
)

// TestTraitsOfTrials: what trials record counts more than what the study says, and the study
// tells where trials are of before they recorded it. Names say nothing.
func TestTraitsOfTrials(t *testing.T) {
	st := &study.Study{Compare: "sandbox", Traits: map[string]record.Traits{
		"runc": {Family: record.FamilyContainer}, "mine": {Family: record.FamilyContainer},
	}}
	trial := func(level string, facts map[string]string) *record.Trial {
		return &record.Trial{Cell: record.Cell{{Factor: "sandbox", Value: level}}, Status: record.OK, Facts: facts}
	}
	a := &analysis{study: st, trials: []*record.Trial{
		trial("runc", map[string]string{"main.where": "runc"}),
		trial("mine", nil),
		trial("mine", record.Traits{Family: record.FamilyVM}.Facts("main")),
		trial("vm", nil),
	}}
	got := a.traits()
	for level, want := range map[string]record.Family{"runc": record.FamilyContainer, "mine": record.FamilyVM, "vm": ""} {
		if got[level].Family != want {
			t.Errorf("%s is of family %q, want %q", level, got[level].Family, want)
		}
	}
}
