package analyse

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
	"tare/study"
)

// TestBoots: of each treatment its own steps; the other end's start, in a sandbox of
// another kind, is not among them.
func TestBoots(t *testing.T) {
	cell := func(start string) record.Cell {
		return record.Cell{{Factor: "workload", Value: "net"}, {Factor: "sandbox", Value: "vm"}, {Factor: "start", Value: start}}
	}
	trial := func(start, step string, seconds float64) *record.Trial {
		s := func(name, labels string, v float64) record.Sample {
			return record.Sample{Name: name, Labels: record.Labels(labels), Unit: record.Second, Value: v}
		}
		return &record.Trial{Status: record.OK, Cell: cell(start), Samples: []record.Sample{
			s("sandbox_start", "end=server,sandbox=vm", seconds+1), s("sandbox_start", "end=client,sandbox=process", 0.02),
			s(record.SandboxBoot, "end=server,phase=process,sandbox=vm", 0.5), s(record.SandboxBoot, "end=server,phase="+step+",sandbox=vm", seconds),
		}}
	}
	a := &analysis{study: &study.Study{Compare: "sandbox", Strata: []study.Stratum{{Key: "workload=net", Shared: record.Cell{{Factor: "workload", Value: "net"}},
		Cells: []record.Cell{cell("boot"), cell("snapshot")}}}}}
	for _, v := range []float64{3, 9, 4} {
		a.trials = append(a.trials, trial("boot", "kernel", v), trial("snapshot", "resume", v/10))
	}
	bad := trial("boot", "kernel", 100)
	bad.Status = record.Failed
	a.trials = append(a.trials, bad)
	r := &Result{Treatments: a.treatments()}
	got := a.boots(r)
	if len(got) != 2 {
		t.Fatalf("%d treatments: %+v", len(got), got)
	}
	want := []PhaseTime{{Name: "process", Trials: 3, Median: 500 * time.Millisecond}, {Name: "kernel", Trials: 3, Median: 4 * time.Second}}
	if d := cmp.Diff(want, got[0].Phases); d != "" || got[0].Starts != 3 || got[0].Start != 5*time.Second {
		t.Errorf("%+v: %s", got[0], d)
	}
	if got[0].Hi != 0 || got[0].Phases[1].Hi != 0 {
		t.Errorf("an interval of three starts: %+v", got[0])
	}
	for _, v := range []float64{2, 5, 6} {
		a.trials = append(a.trials, trial("boot", "kernel", v))
	}
	if more := a.boots(r)[0]; more.Lo != 3*time.Second || more.Hi != 10*time.Second || more.Phases[1].Lo != 2*time.Second || more.Phases[1].Hi != 9*time.Second || more.Phases[0].Lo != 500*time.Millisecond {
		t.Errorf("of six starts: %+v", more)
	}
	if p := got[0].Phases[0]; p.Fine != 0 || p.Poll != 0 {
		t.Errorf("a virtual machine polled by a kubelet: %+v", p)
	}
	if p := got[1].Phases; len(p) != 2 || p[1].Name != "resume" || p[1].Median != 400*time.Millisecond {
		t.Errorf("from a snapshot: %+v", p)
	}
}

// TestBootsOfLaunches: launched pods are told apart by how many start at once and how full their node is. A trial of many counts
// once, and each step says how fine it is known.
func TestBootsOfLaunches(t *testing.T) {
	shared := func(burst, fill string) record.Cell {
		return record.Cell{{Factor: "workload", Value: "start"}, {Factor: "burst", Value: burst}, {Factor: "node-fill", Value: fill}}
	}
	cell := func(burst string) record.Cell {
		return append(shared(burst, "80"), record.Level{Factor: "sandbox", Value: "gvisor"})
	}
	a := &analysis{study: &study.Study{Compare: "sandbox"}}
	for _, burst := range []string{"1", "16"} {
		s := study.Stratum{Key: burst, Shared: shared(burst, "80"), Cells: []record.Cell{cell(burst)}}
		a.study.Strata = append(a.study.Strata, s)
	}
	trial := func(burst string, seconds ...float64) *record.Trial {
		out := &record.Trial{Status: record.OK, Cell: cell(burst)}
		for _, v := range seconds {
			for _, name := range []string{"schedule", "sandbox"} {
				out.Samples = append(out.Samples, record.Sample{Name: record.SandboxBoot, Labels: record.Labels("end=main,phase=" + name + ",sandbox=gvisor"), Unit: record.Second, Value: v})
			}
			if burst == "16" { // those are cold
				out.Samples = append(out.Samples, record.Sample{Name: record.SandboxPulled, Labels: "end=main,sandbox=gvisor", Unit: record.Byte, Value: 1e6 * v})
			}
			out.Samples = append(out.Samples, record.Sample{Name: record.SandboxLaunch, Labels: "end=main,sandbox=gvisor", Unit: record.Second, Value: 2 * v})
		}
		return out
	}
	for i := range 6 {
		a.trials = append(a.trials, trial("1", 1, 2+float64(i), 90), trial("16", 5, 6, 7))
	}
	got := a.boots(&Result{Treatments: a.treatments()})
	if len(got) != 2 || got[0].Levels.Key() != "burst=1" || got[1].Levels.Key() != "burst=16" {
		t.Fatalf("%+v", got)
	}
	// Beside the start of another workload's sandbox, they have their workload's name.
	other := record.Cell{{Factor: "workload", Value: "rr"}, {Factor: "sandbox", Value: "gvisor"}}
	both := *a
	both.study = &study.Study{Compare: "sandbox", Strata: append(slices.Clone(a.study.Strata), study.Stratum{Key: "rr", Shared: other[:1], Cells: []record.Cell{other}})}
	both.trials = append(slices.Clone(a.trials), &record.Trial{Status: record.OK, Cell: other, Samples: []record.Sample{
		{Name: record.SandboxBoot, Labels: "end=main,phase=schedule,sandbox=gvisor", Unit: record.Second, Value: 1},
	}})
	if mixed := both.boots(&Result{Treatments: both.treatments()}); len(mixed) != 3 || mixed[0].Levels != nil || mixed[1].Levels.Key() != "workload=start,burst=1" {
		t.Errorf("with another workload: %+v", mixed)
	}
	if got[0].Pulled != 0 || got[1].Pulled != 6e6 {
		t.Errorf("pulled: %g and %g bytes", got[0].Pulled, got[1].Pulled)
	}
	b := got[0]
	if b.Starts != 18 || b.Start != 9*time.Second || b.Lo != 4*time.Second || b.Hi != 14*time.Second {
		t.Errorf("the whole: %+v", b)
	}
	for _, p := range b.Phases {
		poll := time.Duration(0)
		if p.Name == "sandbox" {
			poll = volumesPoll
		}
		if p.Trials != 6 || p.Fine != heardLate || p.Poll != poll {
			t.Errorf("%+v", p)
		}
	}
}
