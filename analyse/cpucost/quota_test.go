package cpucost

import (
	"math"
	"testing"

	"tare/record"
)

// limited is a trial with a quota of 1.5 cores, throttled in so many of ten periods.
func limited(block int, throttled float64, more ...record.Sample) *record.Trial {
	t := &record.Trial{Seq: block, Block: block, Attempt: 1, Status: record.OK, Cell: record.Cell{{Factor: "sandbox", Value: "vm"}}}
	add := func(name string, v float64, labels ...string) {
		t.Samples = append(t.Samples, record.Sample{Name: name, Labels: record.MakeLabels(labels...), Value: v})
	}
	add(quotaMean, 1.5, "end", "server")
	add(periodsRate, 10, "end", "server")
	add(throttledPeriods, throttled, "end", "server")
	add(throttledTime, 0.25, "end", "server")
	add(periodsRate, 0, "end", "client") // no limit
	add(byRole, 0.9, "end", "server", "role", "vcpu")
	add(byRole, 0.3, "end", "server", "role", "vhost")
	add(byRole, 0.1, "end", "server", "role", string(record.RoleHarness))
	add(byRole, 0.7, "end", "client", "role", "workload")
	add(byGroup, 1.3, "end", "server")
	t.Samples = append(t.Samples, more...)
	return t
}

func TestQuotas(t *testing.T) {
	r := new(Reader)
	trials := map[int]*record.Trial{1: limited(1, 2), 2: limited(2, 8, record.Sample{Name: quotaMean, Labels: "end=server", Value: math.NaN()})}
	for _, x := range trials {
		r.Take(x)
		if len(x.Samples) != 0 {
			t.Errorf("%d samples are kept twice", len(x.Samples))
		}
	}
	got := Quotas(r, []Stratum{{Cost: Cost{CellKey: record.CellKey{Workload: "net", Stratum: "s"}}, Cells: []Cell{
		{Treatment: "vm", Trials: trials}, {Treatment: "runc", Trials: map[int]*record.Trial{1: {Seq: 9}}},
	}}})
	if len(got) != 1 {
		t.Fatalf("%d quotas, want that of the server alone: %+v", len(got), got)
	}
	q := got[0]
	if q.Endpoint != "server" || q.Treatment != "vm" || q.Trials != 2 || q.Quota != 1.5 || math.Abs(q.Cores-1.2) > 1e-12 || math.Abs(q.Used()-0.8) > 1e-12 {
		t.Errorf("%+v", q)
	}
	if q.Throttled != 0.5 || q.Time != 0.25 {
		t.Errorf("throttled %v of the periods, %v s a second; want 0.5 and 0.25", q.Throttled, q.Time)
	}
	if len(q.Roles) != 2 || q.Roles[0].Role != "vcpu" || math.Abs(q.Roles[0].Part-0.75) > 1e-12 || math.Abs(q.Roles[1].Cores-0.3) > 1e-12 {
		t.Errorf("roles %+v", q.Roles)
	}
	if got := Quotas(new(Reader), []Stratum{{Cells: []Cell{{Trials: trials}}}}); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}

// A quota alone is no CPU figure: costs and their source stay as they are.
func TestQuotaIsNoCPU(t *testing.T) {
	r := new(Reader)
	x := &record.Trial{Samples: []record.Sample{{Name: quotaMean, Labels: "end=main", Value: 2}}}
	r.Read(x)
	if r.source() != "" || r.any {
		t.Error("a quota was taken for CPU that was used")
	}
	if _, ok := r.cores(x, []string{"main"}, map[string]float64{}); ok {
		t.Error("an end without a CPU figure has one")
	}
}
