package overhead

import (
	"math"
	"strings"
	"testing"
	"time"

	"tare/record"
)

const mib = 1 << 20

// trial makes one with readings every 250 ms for 4 s. The first half is what a start costs, and does not count.
func trial(sandbox string, family record.Family, block int, facts map[string]string, gauges, rates map[string]float64) (*record.Trial, record.Evidence) {
	t := &record.Trial{Status: record.OK, Block: block, Cell: record.Cell{{Factor: "sandbox", Value: sandbox}}, Facts: map[string]string{"main.family": string(family)}}
	for k, v := range facts {
		t.Facts[k] = v
	}
	var e record.Evidence
	add := func(name string, labels record.Labels, kind record.SampleType, at func(i int) float64) {
		s := record.Series{Name: name, Labels: labels, Kind: kind}
		for i := range 17 {
			s.T, s.V = append(s.T, time.Duration(i)*250*time.Millisecond), append(s.V, at(i))
		}
		e.Series = append(e.Series, s)
	}
	for name, v := range gauges {
		add(name, record.MakeLabels("end", "main"), record.Gauge, func(i int) float64 {
			if i < 6 {
				return 9 * v
			}
			return v
		})
	}
	for role, v := range rates {
		add(record.CPUTime, record.MakeLabels("end", "main", "role", role), record.Counter, func(i int) float64 {
			return 1 + v*max(0, float64(i-8))*0.25
		})
	}
	add(record.CPUTime, record.MakeLabels("role", "harness"), record.Counter, func(i int) float64 { return float64(i) }) // of no sandbox
	return t, e
}

func observed(t *testing.T, tr *record.Trial, e record.Evidence) Observation {
	t.Helper()
	o, ok := Observe(tr, e)
	if !ok {
		t.Fatalf("%s cannot be used", tr.Cell)
	}
	return o
}

func lab(t *testing.T, blocks int) []Observation {
	t.Helper()
	var all []Observation
	for b := 1; b <= blocks; b++ {
		tr, e := trial("process", record.FamilyNative, b, nil, map[string]float64{record.CgroupAnon: 8 * mib, record.CgroupShmem: 0, record.CgroupKernel: mib}, map[string]float64{"workload": 0.004})
		all = append(all, observed(t, tr, e))
		tr, e = trial("vm", record.FamilyVM, b, map[string]string{"main.memory": "512MiB", "main.accelerator": "tcg"},
			map[string]float64{record.GuestMemory: 424 * mib, record.CgroupAnon: 60 * mib, record.CgroupShmem: 100 * mib, record.CgroupKernel: 4 * mib},
			map[string]float64{"vcpu": 0.024 + 0.002*float64(b-2), "vmm": 0.006, "virtiofsd": 0.004})
		all = append(all, observed(t, tr, e))
		tr, e = trial("runsc", record.FamilyGVisor, b, nil, map[string]float64{record.CgroupAnon: 17 * mib, record.CgroupShmem: 9 * mib, record.CgroupKernel: 3 * mib},
			map[string]float64{"sentry": 0.01, "workload": 0.01})
		all = append(all, observed(t, tr, e))
	}
	return all
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6*math.Max(math.Abs(a), math.Abs(b))+1e-12 }

func TestOf(t *testing.T) {
	rows := Of(lab(t, 3))
	if len(rows) != 2 || rows[0].Sandbox != "runsc" || rows[1].Sandbox != "vm" {
		t.Fatalf("%+v", rows)
	}
	g := rows[0]
	if g.GuestMemory != nil || !near(g.HostMemory.Value, 20*mib) || !near(g.HostCPU.Value, 0.016) || g.PageTables != 0 || len(g.Patches) != 1 {
		t.Errorf("%+v", g)
	}
	v := rows[1]
	if !near(v.GuestMemory.Value, 80*mib) || !near(v.GuestMemory.Hi, 80*mib) || !near(v.HostMemory.Value, 64*mib) || !near(v.HostCPU.Value, 0.01) || v.PageTables != mib || !v.Emulated {
		t.Errorf("%+v", v)
	}
	if c := v.GuestCPU; c.N != 3 || !(c.Lo < 0.02 && c.Value < 0.0201 && c.Value > 0.0199 && c.Hi > 0.021) {
		t.Errorf("an interval over three blocks: %+v", c)
	}
	// The guest's part is in the pod's: 80, 64 and 1 MiB, rounded up to 2.
	if r := v.Reserve; r.GuestMemoryMiB != 80 || r.PodMemoryMiB != 146 || r.PodCPU < r.GuestVCPUs+0.009 {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"memory: \"146Mi\"", "up to 512 MiB", "overhead_memory = 80\n", "overhead_vcpus = 0.0"} {
		if all := v.Patches[0].Text + v.Patches[1].Text; !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}

// TestFew: there is no interval from two blocks, and the patch has the mean.
func TestFew(t *testing.T) {
	v := Of(lab(t, 2))[1]
	if v.GuestMemory.Hi != 0 || v.GuestMemory.N != 2 || v.Reserve.GuestMemoryMiB != 80 {
		t.Errorf("%+v %+v", v.GuestMemory, v.Reserve)
	}
}

func TestUseless(t *testing.T) {
	gauges, rates := map[string]float64{record.CgroupAnon: mib}, map[string]float64{"vcpu": 0.1}
	for name, change := range map[string]func(*record.Trial, *record.Evidence){
		"failed":       func(t *record.Trial, _ *record.Evidence) { t.Status = record.Failed },
		"no series":    func(_ *record.Trial, e *record.Evidence) { e.Series = nil },
		"silent guest": func(*record.Trial, *record.Evidence) {},
		"unknown size": func(t *record.Trial, _ *record.Evidence) { delete(t.Facts, "main.memory") },
		"three readings": func(_ *record.Trial, e *record.Evidence) {
			for i := range e.Series {
				e.Series[i].T, e.Series[i].V = e.Series[i].T[:3], e.Series[i].V[:3]
			}
		},
	} {
		tr, e := trial("vm", record.FamilyVM, 1, map[string]string{"main.memory": "512MiB"}, gauges, rates)
		change(tr, &e)
		if o, ok := Observe(tr, e); ok {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
