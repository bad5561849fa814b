package advice

import (
	"math"
	"strings"
	"testing"

	"tare/analyse/cause"
	"tare/analyse/cpucost"
	"tare/analyse/stat"
	"tare/record"
)

func TestGain(t *testing.T) {
	l := newLab("net", map[string]string{"connections": "16"})
	one, two, four, eight := at("vm", "default_vcpus", "1"), at("vm", "default_vcpus", "2"), at("vm", "default_vcpus", "4"), at("vm", "default_vcpus", "8")
	l.finds(cause.Helper, "vhost", one)
	l.measures(one, 1e9)
	l.measures(two, 1.95e9)
	l.measures(four, 2e9) // best, but two reaches 90 % of it
	l.measures(eight, 1.2e9)
	l.in.Costs = []cpucost.Cost{{CellKey: record.CellKey{Cell: one}, Unit: "GB", Value: 0.9, Cores: 1.8}, {CellKey: record.CellKey{Cell: two}, Unit: "GB", Value: 1.35, Cores: 4.5, Estimate: stat.Estimate{Ratio: 2.5}}}
	x := l.advice(t, "vhost-queues")
	g := x.Gain
	if g == nil || g.To.Key() != two.Key() || g.From.Key() != one.Key() || g.Pairs != 6 || g.Cells != 1 || g.Lo > 1.95 || g.Hi < 1.95 || g.Lo < 1.8 {
		t.Fatalf("gain: %+v", g)
	}
	if x.Contradicted || x.Unproven != "" || patch(x, "pod") == "" {
		t.Errorf("%+v", x)
	}
	for _, w := range []string{"1.5 × the CPU", "4.5 cores instead of 1.8", "2.5 × the baseline's"} {
		if !strings.Contains(x.Price, w) {
			t.Errorf("price %q has no %q", x.Price, w)
		}
	}
}

// TestGainOfLatency: less is better, and the ratio stays that of the response.
func TestGainOfLatency(t *testing.T) {
	l := newLab("net", map[string]string{"connections": "16"})
	from, to := at("runsc-ptrace"), at("runsc-systrap")
	f := l.finds(cause.Interception, "", from)
	f.Response = record.Response{Name: "latency_mean", Unit: record.Second, Better: record.Lower}
	l.measures(from, 1e-4)
	l.measures(to, 4e-5)
	l.measures(at("runsc-host"), 1e-6) // has another network too
	x := l.advice(t, "interception-systrap")
	if x.Contradicted || x.Gain == nil || x.Gain.To.Key() != to.Key() || math.Abs(x.Gain.Ratio-0.4) > 0.02 || x.Gain.Hi > 0.5 {
		t.Errorf("%+v %+v", x, x.Gain)
	}
}

func TestFlagOfOwnSandbox(t *testing.T) {
	l := newLab("net", nil)
	from, to := at("runsc-systrap"), at("runsc-host")
	l.finds(cause.Helper, "sentry", from)
	l.measures(from, 1e9)
	l.measures(to, 3e9)
	if x := l.advice(t, "gvisor-host-network"); x.Gain == nil || x.Gain.To.Key() != to.Key() {
		t.Errorf("%+v", x)
	}
}

// TestContradicted: what was measured goes before what a rule says.
func TestContradicted(t *testing.T) {
	for name, v := range map[string]float64{"a loss": 0.8, "no gain": 1.001} {
		l := newLab("net", map[string]string{"connections": "2"})
		one, two := at("vm", "default_vcpus", "1"), at("vm", "default_vcpus", "2")
		l.finds(cause.Helper, "vhost", one)
		l.finds(cause.GuestOne, "", at("runc"))
		l.measures(one, 1e9)
		l.measures(two, v*1e9)
		x := l.advice(t, "vhost-queues")
		if !x.Contradicted || len(x.Patches) > 0 || x.Gain == nil || !strings.Contains(x.Text, "found "+name) || x.Unproven != "" {
			t.Errorf("%s: %+v", name, x)
		}
		if all := Build(l.in); all[0].Contradicted {
			t.Errorf("what does not help comes first")
		}
	}
}

// TestFewBlocks: without an interval there is no gain, and what to measure is said.
func TestFewBlocks(t *testing.T) {
	l := newLab("net", map[string]string{"connections": "16"})
	one, two := at("vm", "default_vcpus", "1"), at("vm", "default_vcpus", "2")
	l.finds(cause.Helper, "vhost", one)
	l.values[one.Key()] = map[int]float64{1: 1e9, 2: 1.1e9}
	l.values[two.Key()] = map[int]float64{1: 2e9, 2: 1.9e9}
	x := l.advice(t, "vhost-queues")
	if x.Gain != nil || x.Contradicted || !strings.Contains(x.Unproven, "need n >= 3") || patch(x, "pod") == "" {
		t.Errorf("%+v", x)
	}
}

// TestSharedTarget: cells that lead to one and the same are no two independent ratios.
func TestSharedTarget(t *testing.T) {
	l := newLab("net", map[string]string{"connections": "16"})
	free := at("vm", "cpu-limit", "none")
	for _, limit := range []string{"1", "2"} {
		c := at("vm", "cpu-limit", limit)
		f := l.finds(cause.Quota, "", c)
		f.Price = &cause.Price{Unit: "GB", Cores: 1.2, Base: 1.8, Ratio: 2.5}
		l.measures(c, 1e9)
	}
	l.measures(free, 2e9)
	x := l.advice(t, "quota-limit")
	if x.Gain == nil || x.Gain.Cells != 2 || x.Gain.Pairs != 6 || len(x.Cells) != 2 {
		t.Fatalf("%+v %+v", x, x.Gain)
	}
	if v, _ := x.Sets.Get("cpu-limit"); v != "none" || !strings.Contains(x.Text, "or raise it to 5 cores") || !strings.Contains(patch(x, "pod"), "cpu: null") {
		t.Errorf("%s: %s\n%s", v, x.Text, patch(x, "pod"))
	}
}

// TestOrder: the costliest first.
func TestOrder(t *testing.T) {
	l := newLab("net", nil)
	l.finds(cause.GuestOne, "", at("runc"))
	little := 0.9
	l.in.Findings[0].Ratio = &little
	l.finds(cause.Link, "", at("vm"))
	l.finds(cause.Untold, "", at("runsc-systrap")) // as dear as the dearest
	l.finds(cause.None, "", at("crun")).Costs = false
	got := Build(l.in)
	if len(got) != 4 || got[2].Rule != "tell-apart" || got[3].Rule != "no-setting" || got[0].Rule != "link" || got[1].Rule != "guest-one" || math.Abs(got[0].Weight-math.Log(2)) > 1e-9 {
		t.Errorf("%+v", got)
	}
}

// TestNoBaseline: what bounds a cell is advised on also where nothing says what it costs.
func TestNoBaseline(t *testing.T) {
	l := newLab("net", nil)
	f := l.finds(cause.Link, "", at("vm"))
	f.Ratio, f.Costs = nil, false
	if x := l.advice(t, "link"); x.Weight != 0 {
		t.Errorf("%+v", x)
	}
	f = l.finds(cause.Link, "", at("process"))
	f.Baseline = true
	if x := l.advice(t, "link"); len(x.Cells) != 1 {
		t.Errorf("the baseline is advised on: %+v", x)
	}
}

// TestRoomByQuota: what was used against the quota tells where no price does.
func TestRoomByQuota(t *testing.T) {
	for cores, rule := range map[float64]string{1: "vhost-queues", 4.5: "vhost-limited", 0: "vhost-limited"} {
		l := newLab("net", map[string]string{"connections": "16"})
		c := at("vm", "default_vcpus", "1", "cpu-limit", "8")
		l.finds(cause.Helper, "vhost", c)
		l.in.Quotas = []cpucost.Quota{{CellKey: record.CellKey{Cell: c}, Endpoint: "client", Cores: 0.1 * cores}, {CellKey: record.CellKey{Cell: c}, Endpoint: "server", Cores: cores}}
		l.advice(t, rule)
	}
}

// TestNotSure: the blocks that a gain asks for grow with those that there are, and nothing says that they decide.
func TestNotSure(t *testing.T) {
	l := newLab("net", map[string]string{"connections": "16"})
	l.finds(cause.Helper, "vhost", at("vm", "default_vcpus", "1"))
	l.measures(at("vm", "default_vcpus", "1"), 1e9)
	l.values[at("vm", "default_vcpus", "2").Key()] = map[int]float64{1: 0.8e9, 2: 1.5e9, 3: 1.1e9, 4: 0.9e9, 5: 1.4e9, 6: 1.2e9}
	x := l.advice(t, "vhost-queues")
	const want = "More blocks narrow it (four times as many halve the interval): tare run STUDY --set stop.fixed=24"
	if !strings.Contains(x.Unproven, want) {
		t.Errorf("%q has no %q", x.Unproven, want)
	}
}
