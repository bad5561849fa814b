package advice

import (
	"strings"
	"testing"

	"tare/analyse/cause"
	"tare/record"
)

// TestSplit: what helps most cells and surely harms one is advised to those that it helps.
func TestSplit(t *testing.T) {
	l := newLab("net", map[string]string{"connections": "16"})
	one, two := at("vm", "default_vcpus", "1", "cpu-limit", "1"), at("vm", "default_vcpus", "2", "cpu-limit", "1")
	for _, c := range []record.Cell{one, two} {
		l.finds(cause.Quota, "", c)
		l.measures(c, 2e9)
	}
	l.in.Factors[3].Levels = []string{"none", "1"}
	l.measures(swap(one, "cpu-limit", none), 1.4e9)
	l.measures(swap(two, "cpu-limit", none), 4e9)
	var helps, harms int
	for _, x := range Build(l.in) {
		if x.Rule != "quota-limit" {
			continue
		}
		for _, c := range x.Cells {
			switch {
			case c.Key() == one.Key() && x.Contradicted && len(x.Patches) == 0:
				harms++
			case c.Key() == two.Key() && !x.Contradicted && x.Gain != nil && x.Gain.Cells == 1 && x.Gain.Lo > 1.8:
				helps++
				if !strings.Contains(x.Warning, "default_vcpus") || !strings.Contains(x.Warning, "no vCPUs are hot-plugged") {
					t.Errorf("the vCPUs that go with the limit are not warned of: %s", x.Warning)
				}
			default:
				t.Errorf("%s in %+v", c, x)
			}
		}
	}
	if helps != 1 || harms != 1 {
		t.Errorf("%d cells advised, %d warned of a loss; want 1 each", helps, harms)
	}
	// Asked for one alone, gains and cells are of that one.
	l.in.Only = func(c record.Cell) bool { return c.Key() == two.Key() }
	if items := Build(l.in); len(items) != 1 || len(items[0].Cells) != 1 || items[0].Contradicted || items[0].Gain.Ratio < 1.8 {
		t.Errorf("%+v", items)
	}
	l.in.Only = func(c record.Cell) bool { return c.Key() == one.Key() }
	if items := Build(l.in); len(items) != 1 || !items[0].Contradicted || len(items[0].Cells) != 1 {
		t.Errorf("%+v", items)
	}
}

// TestSplitChooses: a cell that the best target harms has its own best one.
func TestSplitChooses(t *testing.T) {
	l := newLab("net", map[string]string{"connections": "16"})
	one, two := at("vm", "default_vcpus", "1", "cpu-limit", "1"), at("vm", "default_vcpus", "2", "cpu-limit", "1")
	for _, c := range []record.Cell{one, two} {
		l.finds(cause.Quota, "", c)
		l.measures(c, 1e9)
	}
	l.measures(swap(one, "cpu-limit", "2"), 1.5e9)
	l.measures(swap(two, "cpu-limit", "2"), 1.1e9)
	l.measures(swap(one, "cpu-limit", none), 0.7e9)
	l.measures(swap(two, "cpu-limit", none), 9e9)
	x := l.advice(t, "quota-limit")
	for _, to := range x.Targets {
		for _, c := range to.Cells {
			want := none
			if c.Key() == one.Key() {
				want = "2"
			}
			if got := level(to.To, "cpu-limit"); got != want {
				t.Errorf("%s is led to %s, want %s", c, got, want)
			}
		}
	}
	if len(x.Cells) != 2 || x.Contradicted {
		t.Errorf("%+v", x)
	}
}

// TestProvenFirst: what the run that was asked for has measured is taken, and nothing
// further asked for in its place.
func TestProvenFirst(t *testing.T) {
	l := newLab("net", map[string]string{"connections": "16"})
	l.in.Factors[3].Levels = []string{"1", "3"}
	low, high := at("vm", "cpu-limit", "1"), at("vm", "cpu-limit", "3")
	l.finds(cause.Quota, "", low)
	dear := 0.1 // against a baseline with the same limit
	l.finds(cause.Quota, "", high).Ratio = &dear
	l.measures(low, 1e9)
	l.measures(high, 1.6e9)
	x := l.advice(t, "quota-limit")
	if v, _ := x.Sets.Get("cpu-limit"); v != "3" || x.Unproven != "" || x.Gain == nil || patch(x, "study") != "" || !strings.Contains(patch(x, "pod"), `cpu: "3"`) || !strings.HasPrefix(x.Text, "Raise the CPU limit to 3 cores. ") {
		t.Errorf("%+v", x)
	}
	l.in.Only = func(c record.Cell) bool { return c.Key() == high.Key() }
	if x := l.advice(t, "quota-limit"); x.Unproven == "" || level(x.Sets, "cpu-limit") == "3" {
		t.Errorf("of the cell that has it already: %+v", x)
	}
}

// TestInterruptsAreNoWorkers: measured gains go before the count of workers.
func TestInterruptsAreNoWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		cell, more record.Cell
		times      float64
		rule, want string
	}{
		"vCPUs":       {at("vm", "default_vcpus", "1"), at("vm", "default_vcpus", "2"), 1.4, "guest-vcpus", "interrupts need processor time"},
		"limit":       {at("vm", "default_vcpus", "1", "cpu-limit", "1"), at("vm", "default_vcpus", "1", "cpu-limit", "2"), 1.4, "guest-limit", "to 2 cores"},
		"vhost":       {at("vm", "default_vcpus", "1"), at("vm", "default_vcpus", "2"), 1.4, "vhost-queues", "Boot with 2"},
		"no gain":     {at("vm", "default_vcpus", "1"), at("vm", "default_vcpus", "2"), 1, "guest-enough-vcpus", "No measurement shows"},
		"a loss":      {at("vm", "default_vcpus", "1"), at("vm", "default_vcpus", "2"), 0.8, "guest-enough-vcpus", "No measurement shows"},
		"not of both": {at("vm", "default_vcpus", "1"), nil, 0, "guest-enough-vcpus", "No measurement shows"},
	} {
		l := newLab("net", map[string]string{"connections": "1"})
		f := l.finds(cause.Guest, "", c.cell)
		if name == "vhost" {
			f.Cause, f.Role = cause.Helper, "vhost"
		}
		l.measures(c.cell, 1e9)
		if c.more != nil {
			l.measures(c.more, c.times*1e9)
		}
		x := l.advice(t, c.rule)
		if gained := x.Gain != nil && x.Gain.Lo > 1.3; gained != (c.times > 1) || x.Contradicted || !strings.Contains(x.Text, c.want) {
			t.Errorf("%s: %+v", name, x)
		}
	}
}
