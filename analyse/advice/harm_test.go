package advice

import (
	"strings"
	"testing"

	"tare/analyse/cause"
	"tare/record"
)

// TestHarm: what a proven setting costs another workload in the same sandbox is said; what
// is not surely worse, or of another sandbox, is not.
func TestHarm(t *testing.T) {
	for _, c := range []struct {
		name    string
		sandbox string
		after   float64
		warns   bool
	}{
		{"a round trip of twice the time", "vm", 2e-4, true},
		{"a round trip of the same time", "vm", 1e-4, false},
		{"a shorter one", "vm", 5e-5, false},
		{"of a sandbox that nothing is advised for", "runc", 2e-4, false},
	} {
		l := newLab("net", map[string]string{"connections": "16"})
		one, two := at("vm", "default_vcpus", "1"), at("vm", "default_vcpus", "2")
		l.finds(cause.Helper, "vhost", one)
		l.measures(one, 1e9)
		l.measures(two, 2e9)
		other := func(vcpus string) record.Cell {
			x := at(c.sandbox, "default_vcpus", vcpus)
			x[0].Value = "round-trip"
			return x
		}
		f := l.finds(cause.None, "", other("1"))
		f.Costs, f.Workload, f.Stratum = false, "round-trip", "workload=round-trip"
		f.Response = record.Response{Name: "rtt", Unit: record.Second, Better: record.Lower}
		l.measures(other("1"), 1e-4)
		l.measures(other("2"), c.after)
		x := l.advice(t, "vhost-queues")
		if got := strings.Contains(x.Warning, "It costs elsewhere, as measured: rtt of round-trip is "); got != c.warns || x.Gain == nil {
			t.Errorf("%s: warning %q", c.name, x.Warning)
		}
		l.in.Modelled = true
		if x = l.advice(t, "vhost-queues"); strings.Contains(x.Warning, "measured:") || strings.Contains(x.Warning, "as modelled: ") != c.warns {
			t.Errorf("%s, modelled: warning %q", c.name, x.Warning)
		}
	}
}
