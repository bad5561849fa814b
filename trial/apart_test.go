package trial

import (
	"testing"

	"tare/record"
	"tare/study"
)

// TestApart: both ends are pinned, the one that is not isolated too. A place with too few
// cores leaves them to the scheduler, and the trial says so.
func TestApart(t *testing.T) {
	for cores, want := range map[int]map[string]string{2: {"server": "0", "client": "1"}, 1: {"server": "", "client": ""}} {
		e, _ := engine(t, "")
		at := e.Place.(*place)
		at.cores = cores
		c := &e.Study.Strata[0].Cells[0]
		*c = append(*c, record.Level{Factor: study.FactorCPUs, Value: study.ApartCPUs})
		tr, _ := e.Trial(t.Context(), first(e))
		if tr.Status != record.OK {
			t.Fatalf("%+v", tr.Failure)
		}
		for _, w := range at.wants {
			if w.CPUs != want[w.Role] || tr.Facts[w.Role+record.FactCPUs] != want[w.Role] {
				t.Errorf("%d cores: %s is pinned to %q, and the fact says %q; want %q", cores, w.Role, w.CPUs, tr.Facts[w.Role+record.FactCPUs], want[w.Role])
			}
		}
		if warned := hasWarning(tr, "not-apart"); warned != (cores < 2) {
			t.Errorf("%d cores: warned %v", cores, warned)
		}
	}
}

func hasWarning(tr *record.Trial, code string) bool {
	for _, w := range tr.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}
