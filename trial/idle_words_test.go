package trial

import (
	"strings"
	"testing"
	"time"

	"tare/record"
	"tare/workload"
)

// TestIdleWords: what a sandbox used between its turns is said of the sandbox, not of the role.
func TestIdleWords(t *testing.T) {
	labels := record.MakeLabels(record.LabelEndpoint, "main")
	tr := &trial{rec: &record.Trial{}, set: set{endpoints: []*endpoint{{role: workload.Role{Name: "main"}, kind: &kind{name: "runsc"}}}}}
	for turn := range 2 {
		at := time.Duration(turn) * 2 * time.Second
		tr.evidence.Series = append(tr.evidence.Series, record.Series{Name: record.CgroupCPU, Labels: labels, T: []time.Duration{at, at + time.Second}, V: []float64{float64(turn) * 1.03, 1}})
	}
	tr.keepIdle()
	if len(tr.rec.Warnings) != 1 || !strings.HasPrefix(tr.rec.Warnings[0].Text, "runsc used 3 % of a core while idle; leave turns out") {
		t.Errorf("%+v", tr.rec.Warnings)
	}
}
