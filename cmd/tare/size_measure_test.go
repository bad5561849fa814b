package main

import (
	"io"
	"math"
	"strings"
	"testing"

	"tare/analyse/overhead"
	"tare/cluster"
	"tare/cluster/pod"
	"tare/record"
	"tare/site"
)

// TestMeasureStudy: the hidden study is one that tare accepts, with as many cells as it says.
func TestMeasureStudy(t *testing.T) {
	cat, err := offered()
	if err != nil {
		t.Fatal(err)
	}
	f := measureFlags{in: []string{"vm", "runsc-systrap"}, sizes: []int{256, 512}, repeat: 4}
	st, err := parsed(f.study(cat), cat)
	if err != nil {
		t.Fatal(err)
	}
	if st.Baseline != cat.Native || st.Stop.Fixed != 4 {
		t.Errorf("%+v", st)
	}
	gvisor := measureFlags{in: []string{"runsc-systrap"}, sizes: f.sizes, repeat: 1}
	if _, err := parsed(gvisor.study(cat), cat); err != nil {
		t.Errorf("without a machine: %v", err)
	}
	pods := measureFlags{on: onCluster, in: []string{"gvisor", "kata"}, sizes: f.sizes, repeat: 3}
	nodes := offeredIn((&cluster.Brief{Classes: []pod.Class{{Name: "process"}, {Name: "gvisor", Class: "gvisor", Handler: "runsc"}, {Name: "kata", Class: "kata", Handler: "kata"}}}).Kinds())
	if st, err = parsed(pods.study(nodes), nodes); err != nil {
		t.Fatal(err)
	}
	if n := len(st.Strata); n != 2 { // each limit has its own baseline
		t.Errorf("%d strata: %+v", n, st.Strata)
	}
	f.sizes = []int{16}
	if _, err := parsed(f.study(cat), cat); err == nil || !strings.Contains(err.Error(), "192") {
		t.Errorf("a machine of 16 MiB: %v", err)
	}
}

// TestPrintPods: patches are those of the limit with the largest overhead.
func TestPrintPods(t *testing.T) {
	var out strings.Builder
	row := func(limit int64, memory int, patch string) overhead.Row {
		return overhead.Row{
			Sandbox: "gvisor", Class: "gvisor", Family: record.FamilyGVisor, Limit: limit << 20, HostMemory: overhead.Figure{Value: 1 << 20, N: 3},
			Reserve: overhead.Reserve{PodMemoryMiB: memory}, Patches: []overhead.Patch{{File: "f", Text: patch}},
		}
	}
	newApp(&out, io.Discard).printOverheads([]overhead.Row{row(256, 24, "first\n"), row(512, 26, "second\n"), row(1024, 24, "third\n")})
	got := out.String()
	for _, want := range []string{"memory limit", "gvisor   256MiB  ", "gvisor   1GiB  ", "pod's cgroup on its node", "# gvisor: f\nsecond\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, no := range []string{"first", "third", "page tables"} {
		if strings.Contains(got, no) {
			t.Errorf("%q in\n%s", no, got)
		}
	}
}

// TestInterruptedMeasure: what was measured before an interruption is printed, and says that it is too little for an interval.
func TestInterruptedMeasure(t *testing.T) {
	idle := idleTrials{seen: []overhead.Observation{
		{Sandbox: "process", Family: record.FamilyNative, Block: 1, Available: math.NaN(), Anon: 1 << 20},
		{Sandbox: "runsc-systrap", Family: record.FamilyGVisor, Block: 1, Available: math.NaN(), Anon: 21 << 20},
	}}
	var out, errs strings.Builder
	err := newApp(&out, &errs).printIdle(&idle, true, site.About{}, false)
	if exitCode(err, io.Discard) != exitInterrupted || !strings.Contains(out.String(), "20.0 (too few)") || !strings.Contains(out.String(), "an interval needs 3 repetitions") {
		t.Errorf("%v\n%s", err, out.String())
	}
	idle.seen = idle.seen[1:] // without its baseline
	out.Reset()
	if err = newApp(&out, &errs).printIdle(&idle, true, site.About{}, false); exitCode(err, io.Discard) != exitInterrupted || out.Len() > 0 {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestPrintOverheads: patches are those of the largest size, and each line stands at the margin.
func TestPrintOverheads(t *testing.T) {
	var out strings.Builder
	a := newApp(&out, io.Discard)
	small := overhead.Row{Sandbox: "vm", Family: record.FamilyVM, Size: 256 << 20, Emulated: true, GuestMemory: &overhead.Figure{Value: 64 << 20, N: 2},
		HostMemory: overhead.Figure{Value: 1 << 20, N: 2}, Patches: []overhead.Patch{{File: "f", Text: "small: 1\n"}}}
	large := small
	large.Size, large.Patches = 512<<20, []overhead.Patch{{File: "f", Text: "large:\n  memory: 1\n"}}
	a.printOverheads([]overhead.Row{small, large})
	got := out.String()
	for _, want := range []string{"vm (TCG)  256MiB   64.0 ", "TCG: software", "--repeat 3", "# vm: f\nlarge:\n  memory: 1\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "small") {
		t.Error(got)
	}
}
