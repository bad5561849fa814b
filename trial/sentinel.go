package trial

import (
	"slices"

	"tare/plan"
	"tare/record"
)

// keepWait sums up, in a trial of the sentinel, how long threads waited for a
// processor meanwhile: the machine's pressure stall ("some" of cpu, Documentation/
// accounting/psi.rst), and where the kernel has none, the workload's own run-queue
// wait. It has no labels, so that whoever loads trials for a plan has it.
func (t *trial) keepWait() {
	for _, from := range []struct {
		name   string
		labels record.Labels
	}{
		{"system_pressure_rate", record.MakeLabels("resource", "cpu", "who", "some")},
		{"run_wait_rate", record.MakeLabels("end", t.firstRole(), "role", "workload")},
	} {
		i := slices.IndexFunc(t.rec.Samples, func(s record.Sample) bool { return s.Name == from.name && s.Labels == from.labels })
		if i >= 0 {
			t.rec.Samples = append(t.rec.Samples, record.Sample{
				Name: plan.WaitSample, Unit: record.Fraction, Kind: record.Value, Value: t.rec.Samples[i].Value,
			})
			return
		}
	}
}

// firstRole is the name of the first role.
func (t *trial) firstRole() string {
	if len(t.roles) == 0 {
		return ""
	}
	return t.roles[0].Name
}
