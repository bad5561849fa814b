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

// podTrial makes one of a pod with a limit.
func podTrial(t *testing.T, class string, family record.Family, block int, limit string, facts map[string]string, anon, shared, kernel float64, rates map[string]float64) Observation {
	t.Helper()
	all := map[string]string{"main." + record.FactRuntimeClass: class}
	for k, v := range facts {
		all[k] = v
	}
	tr, e := trial(class, family, block, all, map[string]float64{record.CgroupAnon: anon * mib, record.CgroupShmem: shared * mib, record.CgroupKernel: kernel * mib}, rates)
	tr.Cell = append(tr.Cell, record.Level{Factor: "memory-limit", Value: limit})
	return observed(t, tr, e)
}

// TestPods: the same program's pod of the default class with the same limit, in the same block, is taken off. The machine
// of one of Kata's is apart if its memory is shared, and overhead_* are those of runtime-rs.
func TestPods(t *testing.T) {
	var all []Observation
	for b := 1; b <= 3; b++ {
		for limit, more := range map[string]float64{"256MiB": 0, "512MiB": 16} {
			all = append(all,
				podTrial(t, "", record.FamilyNative, b, limit, nil, 20+more, 0, 2, map[string]float64{"workload": 0.002}),
				podTrial(t, "gvisor", record.FamilyGVisor, b, limit, nil, 40+2*more, 22, 6, map[string]float64{"sentry": 0.006}))
		}
		vm := map[string]float64{"vcpu": 0.022, "vmm": 0.006, "virtiofsd": 0.004}
		for class, sizing := range map[string]string{"kata-a": "rs", "kata-b": "go", "kata-c": ""} {
			all = append(all, podTrial(t, class, record.FamilyVM, b, "256MiB", map[string]string{"main.sizing": sizing}, 60, 120, 4, vm))
		}
		all = append(all, podTrial(t, "kata-fc", record.FamilyVM, b, "256MiB", map[string]string{"main.sizing": "rs"}, 160, 0, 4, vm))
	}
	rows := Of(all)
	if len(rows) != 6 {
		t.Fatalf("%d rows: %+v", len(rows), rows)
	}
	for i, want := range []float64{46, 62} { // 40+22+6 - 22, 72+22+6 - 38
		if g := rows[i]; g.Sandbox != "gvisor" || !near(g.HostMemory.Value, want*mib) || g.HostMemory.N != 3 || !near(g.HostCPU.Value, 0.004) || g.PageTables != 0 {
			t.Errorf("%+v", g)
		}
	}
	if got, want := rows[1].Patches, `kubectl patch runtimeclass gvisor --type merge -p '{"overhead":{"podFixed":{"memory":"62Mi","cpu":"10m"}}}'`+"\n"; len(got) != 1 || got[0].Text != want {
		t.Errorf("%+v", got)
	}
	for i, patches := range []int{2, 1, 1} {
		k := rows[2+i]
		if k.GuestMemory == nil || !near(k.GuestMemory.Value, 100*mib) || !near(k.GuestCPU.Value, 0.02) || !near(k.HostMemory.Value, 64*mib) || !near(k.HostCPU.Value, 0.01) || k.PageTables != mib/2 {
			t.Errorf("%+v", k)
		}
		if len(k.Patches) != patches {
			t.Errorf("%s, runtime %q: %+v", k.Class, k.Kata, k.Patches)
		}
	}
	if p := rows[2].Patches[1]; p.Text != "overhead_vcpus = 0.02\noverhead_memory = 100\n" {
		t.Errorf("%+v", p)
	}
	// Anonymous memory of a machine is in one figure with the rest.
	if f := rows[5]; f.GuestMemory != nil || !near(f.HostMemory.Value, 142*mib) || len(f.Patches) != 1 {
		t.Errorf("%+v", f)
	}
}

// TestNone: a class that is the default one by another name costs about zero, on both sides of it. It has an interval, and no patch.
func TestNone(t *testing.T) {
	var all []Observation
	for b, more := range []float64{-0.2, 0.3, 0.05} {
		all = append(all,
			podTrial(t, "", record.FamilyNative, b+1, "256MiB", nil, 20, 0, 2, map[string]float64{"workload": 0.002}),
			podTrial(t, "runc", record.FamilyContainer, b+1, "256MiB", nil, 20+more, 0, 2, map[string]float64{"workload": 0.002}))
	}
	r := Of(all)[0]
	// Of -0.2, 0.3 and 0.05: s = 0.25, t(2) = 4.303, so 0.621 on both sides of 0.05.
	if f := r.HostMemory; !near(f.Value, 0.05*mib) || math.Abs(f.Lo/mib+0.571) > 1e-3 || math.Abs(f.Hi/mib-0.671) > 1e-3 || f.N != 3 {
		t.Errorf("%+v", f)
	}
	if r.Reserve.PodMemoryMiB != 2 || r.Patches == nil || len(r.Patches) != 0 {
		t.Errorf("%+v %+v", r.Reserve, r.Patches)
	}
}
