package advice

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tare/analyse/cause"
	"tare/record"
)

// vcpus gives a lab's last finding the treatment that a study with nested levels has.
func vcpus(f *cause.Finding) *cause.Finding {
	f.Treatment = "sandbox=vm,default_vcpus=" + level(f.Cell, "default_vcpus")
	return f
}

// TestMerged: one rule of one sandbox is one item, whatever the treatments, responses and
// present limits; each present limit keeps its own target, and each response its gain.
func TestMerged(t *testing.T) {
	l := newLab("net", map[string]string{"connections": "16"})
	latency := record.Response{Name: "latency_mean", Unit: record.Second, Better: record.Lower}
	for _, n := range []string{"2", "4"} {
		for i, limit := range []string{"1", "2"} {
			c := at("vm", "default_vcpus", n, "cpu-limit", limit)
			if i == 0 && n == "4" {
				continue
			}
			f := vcpus(l.finds(cause.Quota, "", c))
			l.measures(c, 1e9)
			l.measures(at("vm", "default_vcpus", n, "cpu-limit", "8"), 3e9)
			if i == 1 && n == "4" {
				f.Response = latency
			}
		}
		l.measures(at("vm", "default_vcpus", n, "cpu-limit", "none"), 3.1e9) // best, but 8 is within 90 % of it
	}
	l.measures(at("vm", "default_vcpus", "4", "cpu-limit", "2"), 4e9) // a latency: 8 is less
	c := at("runc", "cpu-limit", "1")
	l.finds(cause.Quota, "", c)
	var got []Item
	for _, x := range Build(l.in) {
		if x.Rule == "quota-limit" {
			got = append(got, x)
		}
	}
	if len(got) != 2 {
		t.Fatalf("%d items of two sandboxes: %+v", len(got), got)
	}
	x := got[0]
	if len(x.Cells) != 3 || !slices.Equal(x.Treatments, []string{"sandbox=vm,default_vcpus=2", "sandbox=vm,default_vcpus=4"}) || math.Abs(x.Weight-3*math.Log(2)) > 1e-9 {
		t.Errorf("%d cells of %v, weight %g", len(x.Cells), x.Treatments, x.Weight)
	}
	if len(x.Gains) != 2 || x.Gain == nil || x.Gain != &x.Gains[0] || x.Gain.Response != "throughput" || x.Gain.Cells != 2 || math.Abs(x.Gain.Ratio-3) > 0.05 ||
		x.Gains[1].Response != "latency_mean" || math.Abs(x.Gains[1].Ratio-0.75) > 0.02 {
		t.Errorf("gains: %+v", x.Gains)
	}
	if len(x.Targets) != 2 || x.Targets[0].From.Key() != "cpu-limit=1" || x.Targets[0].To.Key() != "cpu-limit=8" || len(x.Targets[0].Cells) != 1 || !slices.Equal(x.Targets[1].Responses, []string{"throughput", "latency_mean"}) {
		t.Errorf("targets: %+v", x.Targets)
	}
	if !strings.HasPrefix(x.Text, "Raise the CPU limit to 8 cores. ") || !strings.Contains(patch(x, "pod"), `cpu: "8"`) || x.Unproven != "" || patch(x, "study") != "" {
		t.Errorf("%+v", x)
	}
}

// TestTargetsByPresentLevel: the text says for each present level where it goes, and a
// target has the patch of its own.
func TestTargetsByPresentLevel(t *testing.T) {
	l := newLab("net", map[string]string{"connections": "16"})
	for _, n := range []string{"1", "2", "4"} {
		vcpus(l.finds(cause.Guest, "", at("vm", "default_vcpus", n)))
	}
	x := l.advice(t, "guest-vcpus")
	if !strings.HasPrefix(x.Text, "Boot with 2–8 vCPUs (from 1: 2, from 2: 4, from 4: 8). ") || len(x.Targets) != 3 {
		t.Fatalf("%s\n%+v", x.Text, x.Targets)
	}
	for _, to := range x.Targets {
		want := fmt.Sprintf("default_vcpus: %q", level(to.To, "default_vcpus"))
		if i := slices.IndexFunc(to.Patches, func(p Patch) bool { return p.For == "pod" }); i < 0 || !strings.Contains(to.Patches[i].Text, want) {
			t.Errorf("%s: no patch with %s: %+v", to.From, want, to.Patches)
		}
	}
	for _, w := range []string{"Remove the CPU limit, or raise it (cores, from 1: 2; from 8: 17). "} {
		l := newLab("net", map[string]string{"connections": "16"})
		for limit, cores := range map[string]float64{"1": 1.5, "8": 17} {
			c := at("runsc-systrap", "cpu-limit", limit)
			f := l.finds(cause.Quota, "", c)
			f.Price = &cause.Price{Cores: 1, Base: cores, Ratio: 1}
			l.measures(c, 1e9)
		}
		l.measures(at("runsc-systrap", "cpu-limit", "none"), 9e9)
		if x := l.advice(t, "quota-limit"); !strings.HasPrefix(x.Text, w) {
			t.Errorf("%s, want %s", x.Text, w)
		}
	}
}

// TestGainFirst: what was measured to help goes before what costs more and was not measured.
func TestGainFirst(t *testing.T) {
	l := newLab("fio", map[string]string{"jobs": "16"})
	for _, rw := range []string{"read", "write", "randread"} {
		l.finds(cause.Path, "", at("vm", "cpu-limit", "1", "rw", rw))
	}
	c := at("vm", "cpu-limit", "1", "rw", "randwrite")
	l.finds(cause.Quota, "", c)
	l.measures(c, 1e9)
	l.measures(at("vm", "cpu-limit", "8", "rw", "randwrite"), 3e9)
	var rules []string
	for _, x := range Build(l.in) {
		rules = append(rules, x.Rule)
		if strings.Contains(x.Text, "round trip") {
			t.Errorf("a disk has no round trips: %s", x.Text)
		}
	}
	if !slices.Equal(rules, []string{"quota-limit", "path-depth"}) {
		t.Errorf("%v", rules)
	}
}

// TestVainApart: what helps from one present level and not from another is two items.
func TestVainApart(t *testing.T) {
	l := newLab("net", map[string]string{"connections": "16"})
	one, two := at("vm", "default_vcpus", "1"), at("vm", "default_vcpus", "2")
	vcpus(l.finds(cause.Helper, "vhost", one))
	vcpus(l.finds(cause.Helper, "vhost", two))
	l.measures(one, 1e9)
	l.measures(two, 2e9)
	l.measures(at("vm", "default_vcpus", "4"), 1.5e9)
	items := Build(l.in)
	if len(items) != 2 || items[0].Contradicted || !items[1].Contradicted || !strings.Contains(items[1].Text, "(default_vcpus from 2 to 4). The readings point to it, but the study measured it and found a loss.") {
		t.Errorf("%+v", items)
	}
}

// TestNoSettingMerged: what sets nothing is one item of all sandboxes; treatments that
// cost nothing are one line, and so is what loses next to nothing.
func TestNoSettingMerged(t *testing.T) {
	l := newLab("net", nil)
	l.finds(cause.GuestOne, "", at("vm"))
	l.finds(cause.GuestOne, "", at("runc"))
	l.finds(cause.None, "", at("crun")).Costs = false
	l.finds(cause.None, "", at("youki")).Costs = false
	loses := 0.98
	l.finds(cause.Link, "", at("runsc-systrap")).Ratio = &loses
	items := Build(l.in)
	if len(items) != 3 || items[0].Rule != "guest-one" || len(items[0].Treatments) != 2 || items[0].Brief ||
		items[1].Rule != "link" || !items[1].Brief || items[2].Rule != "no-setting" || len(items[2].Treatments) != 2 || !items[2].Brief {
		t.Errorf("%+v", items)
	}
}

// TestBoth: the sizing rule is said first, and only where the cells show both of its ends.
func TestBoth(t *testing.T) {
	for name, c := range map[string]struct {
		free, limited map[string]float64
		said          bool
	}{
		"both ends":        {map[string]float64{"1": 1e9, "2": 1.9e9, "4": 2e9}, map[string]float64{"1": 8e8, "2": 6e8, "4": 5e8}, true},
		"no gain":          {map[string]float64{"1": 1e9, "2": 1e9, "4": 1e9}, map[string]float64{"1": 8e8, "2": 6e8, "4": 5e8}, false},
		"no loss":          {map[string]float64{"1": 1e9, "2": 1.9e9, "4": 2e9}, map[string]float64{"1": 8e8, "2": 8e8, "4": 9e8}, false},
		"a gain with both": {map[string]float64{"1": 1e9, "2": 1.9e9, "4": 2e9}, map[string]float64{"1": 8e8, "2": 9e8, "4": 1e9}, false},
	} {
		l := newLab("net", map[string]string{"connections": "16"})
		native := at("process")
		l.finds(cause.None, "", native).Baseline = true
		l.measures(native, 2.5e9)
		for limit, values := range map[string]map[string]float64{"none": c.free, "1": c.limited} {
			for _, n := range []string{"1", "2", "4"} {
				cell := at("vm", "default_vcpus", n, "cpu-limit", limit)
				vcpus(l.finds(cause.GuestOne, "", cell))
				l.measures(cell, values[n])
			}
		}
		items := Build(l.in)
		x := items[0]
		if (x.Rule == "vcpus-or-limit") != c.said {
			t.Errorf("%s: %s comes first", name, x.Rule)
			continue
		}
		if !c.said {
			continue
		}
		if len(x.Cells) != 2 || len(x.Gains) != 3 || len(x.Patches) > 0 || len(x.Sets) > 0 || !strings.Contains(x.Text, "Without a limit 2 vCPUs") || !strings.Contains(x.Text, "Under a limit of 1 more") {
			t.Fatalf("%s: %+v", name, x)
		}
		for i, want := range []float64{1.9, 1.9 / 2.5, 5. / 8} {
			if g := x.Gains[i]; math.Abs(g.Ratio-want) > 0.03 || g.Than == "" || !(g.Lo < g.Ratio && g.Ratio < g.Hi) {
				t.Errorf("%s: gain %d is %+v, want %g", name, i, g, want)
			}
		}
	}
}
