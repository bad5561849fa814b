package model_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/model"
	"tare/record"
	"tare/sizing"
	"tare/trial"
)

// sample is the one of a name and labels.
func sample(t *testing.T, tr *record.Trial, name string, labels record.Labels) float64 {
	t.Helper()
	n, v := 0, 0.0
	for _, s := range tr.Samples {
		if s.Name == name && s.Labels == labels {
			n, v = n+1, s.Value
		}
	}
	if n != 1 {
		t.Fatalf("%d samples %s{%s}", n, name, labels)
	}
	return v
}

// TestSizedBy: the rule of runtime-rs is one machine for limit and overhead, with one queue.
func TestSizedBy(t *testing.T) {
	c, err := model.Default().SizedBy(sizing.Pod{CPULimit: 2, MemoryLimit: 1 << 30}, sizing.Runtime{Flavour: sizing.RS, VCPUs: 4, OverheadVCPUs: 0.2})
	if err != nil || c.Guest.Boot != 3 || c.Guest.Hotplugged != 0 || c.Helper.Threads != 1 || c.Quota.Cores != 2.25 || c.Check() != nil {
		t.Errorf("%+v %+v %+v, %v", c.Guest, c.Helper, c.Quota, err)
	}
}

func TestTrial(t *testing.T) {
	c, err := model.Default().Sized(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.Seed = rand.Uint64()
	t.Log("seed", c.Seed)
	c.Load.Connections, c.Load.Size = 16, 4096
	c.Load.Warmup, c.Load.Duration = 0.23, 0.51 // edges between two readings of the collectors
	r := run(t, c)
	cell := record.Cell{{Factor: "sandbox", Value: "vm"}}
	tr, evidence := r.Trial(cell, 3, 7)
	if d := cmp.Diff(cell, tr.Cell); d != "" || tr.Block != 3 || tr.Seq != 7 || tr.Attempt != 1 || tr.Status != record.OK {
		t.Errorf("%s %+v", d, tr)
	}
	want := []record.Phase{{Name: trial.PhaseWarmup, Duration: 230 * time.Millisecond}, {Name: trial.PhaseRun, Offset: 230 * time.Millisecond, Duration: 510 * time.Millisecond}}
	if d := cmp.Diff(want, tr.Phases); d != "" || tr.Duration != 740*time.Millisecond {
		t.Errorf("%s, %s", tr.Duration, d)
	}
	if tr.Facts["server.accelerator"] != model.Accelerator {
		t.Errorf("%v", tr.Facts)
	}
	if len(evidence.Series) != len(r.Reading.Series) {
		t.Errorf("%d series of %d", len(evidence.Series), len(r.Reading.Series))
	}
	// Figures of the window are the model's own totals.
	tot := r.Totals
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*math.Abs(want)+1e-9 {
			t.Errorf("%s: %g, want %g", what, got, want)
		}
	}
	end := record.Labels("end=server")
	near("cores", sample(t, tr, "cgroup_cpu_rate", end), tot.CPU/tot.Window)
	near("quota", sample(t, tr, "cpu_quota_mean", end), 1.25)
	near("link rate", sample(t, tr, "link_rate_max", end), c.Path.LinkRate)
	if v := sample(t, tr, record.ThreadBusiest, "end=server,role=vcpu"); v <= 0.1 || v > 1.01 {
		t.Errorf("busiest vCPU %g", v)
	}
	if v := sample(t, tr, record.GuestBusiest, end); v <= 0.1 || v > 1 {
		t.Errorf("busiest core of the guest %g", v)
	}
	if v, ok := tr.Sample("rate"); !ok || v <= 0 {
		t.Errorf("rate %g", v)
	}
	seen := map[string]bool{}
	for _, s := range tr.Samples {
		id := s.Name + "{" + string(s.Labels) + "}"
		if seen[id] {
			t.Errorf("%s twice", id)
		}
		seen[id] = true
	}
}

// TestLink: what the wire carried is what the load counted, less what was under way
// at the edges; a link that is too slow is full, with a queue before it.
func TestLink(t *testing.T) {
	for _, mode := range []model.Mode{model.RR, model.Stream} {
		c := model.Default()
		c.Seed = rand.Uint64()
		t.Log("seed", c.Seed)
		c.Load.Mode, c.Load.Connections, c.Load.Size = mode, 8, 16384
		c.Guest.Boot, c.Helper.Threads = 8, 8
		r := run(t, c)
		tr, _ := r.Trial(nil, 1, 1)
		end := record.Labels("end=server")
		in, out := sample(t, tr, "link_received_rate", end), sample(t, tr, "link_sent_rate", end)
		bytes := r.Totals.Bytes / r.Totals.Window
		under := float64(c.Load.Connections*c.Load.Window) * 65536 / r.Totals.Window
		if math.Abs(in-bytes) > under {
			t.Errorf("%s: %g B/s in, %g counted", mode, in, bytes)
		}
		if mode == model.RR && math.Abs(out-bytes) > under || mode == model.Stream && out != 0 {
			t.Errorf("%s: %g B/s out, %g counted", mode, out, bytes)
		}
		c.Path.LinkRate = bytes / 3
		tr, _ = run(t, c).Trial(nil, 1, 1)
		if full := sample(t, tr, "link_received_rate", end) / c.Path.LinkRate; full < 0.97 || full > 1.001 {
			t.Errorf("%s: a link of a third of the rate is %g full", mode, full)
		}
		if q := sample(t, tr, "link_backlog_mean", end); q < 16384 {
			t.Errorf("%s: %g B wait before a full link", mode, q)
		}
	}
}

func TestCall(t *testing.T) {
	c := model.Default()
	c.Isolation, c.Kernel.Price = model.Sentry, 2e-6
	seed := rand.Uint64()
	t.Log("seed", seed)
	differ := false
	for i := range uint64(20) {
		c.Seed = seed + i
		took, added := c.Call()
		if math.Abs(added/2e-6-1) > 6*c.Noise.Trial || took <= added {
			t.Errorf("%g s, %g of them added", took, added)
		}
		again, _ := c.Call()
		n := c.Native(0)
		native, none := n.Call()
		if again != took || none != 0 || math.Abs(native+added-took) > 1e-15 {
			t.Errorf("%g and %g, natively %g and %g", took, again, native, none)
		}
		c.Seed++
		other, _ := c.Call()
		differ = differ || other != took
	}
	if !differ {
		t.Error("trials do not differ")
	}
}
