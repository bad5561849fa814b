package trial

import (
	"errors"
	"testing"

	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/workload"
)

// unlimited is a sandbox that ignores its limits.
type unlimited struct{ sandbox.Instance }

func (unlimited) Doubts() []record.Warning {
	return []record.Warning{{Code: "other"}, {Code: record.LimitNotInForce, Text: "none is in force"}}
}

// TestVoidLimits: a trial whose limits are not in force counts with a warning, or fails with the reason.
func TestVoidLimits(t *testing.T) {
	for _, void := range []bool{false, true} {
		x := &trial{set: set{maker: &Maker{Study: &study.Study{VoidLimits: void}}}, rec: &record.Trial{}}
		err := x.boot(&endpoint{role: workload.Role{Name: "main"}, inst: unlimited{}})
		var f *failure
		if errors.As(err, &f) != void || void && (f.kind != "limit" || f.role != "main") || len(x.rec.Warnings) != 2 {
			t.Errorf("void %v: %v, %v", void, err, x.rec.Warnings)
		}
	}
}
