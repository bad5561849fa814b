package analyse

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/record"
)

func TestCommon(t *testing.T) {
	cell := func(levels ...string) Treatment {
		c := record.Cell{{Factor: "sandbox", Value: levels[0]}}
		for i := 1; i < len(levels); i += 2 {
			c = append(c, record.Level{Factor: levels[i], Value: levels[i+1]})
		}
		return Treatment{Key: c.Key(), Cell: c}
	}
	for name, c := range map[string]struct {
		ts   []Treatment
		want []Common
		name string // of the last treatment, without what is common
	}{
		"one bound for all machines": {
			[]Treatment{cell("process"), cell("vm", "vcpus", "1", "max", "4"), cell("vm", "vcpus", "2", "max", "4")},
			[]Common{{record.Level{Factor: "max", Value: "4"}, []string{"vm"}}}, "sandbox=vm,vcpus=2"},
		"of two kinds": {
			[]Treatment{cell("process"), cell("vm", "max", "4"), cell("vm-new", "max", "4")},
			[]Common{{record.Level{Factor: "max", Value: "4"}, []string{"vm", "vm-new"}}}, "sandbox=vm-new"},
		"two levels":       {[]Treatment{cell("process"), cell("vm", "max", "4"), cell("vm-new", "max", "8")}, nil, "sandbox=vm-new,max=8"},
		"some are without": {[]Treatment{cell("process"), cell("vm"), cell("vm", "max", "4")}, nil, "sandbox=vm,max=4"},
		"nothing nested":   {[]Treatment{cell("process"), cell("runc")}, nil, "sandbox=runc"},
		"no cells":         {[]Treatment{{}}, nil, ""},
	} {
		got := common(c.ts)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
		r := &Result{Treatments: c.ts, Common: got}
		if d := r.Distinct(c.ts[len(c.ts)-1].Cell).Key(); d != c.name {
			t.Errorf("%s: distinct %q, want %q", name, d, c.name)
		}
		seen := map[string]bool{}
		for _, x := range c.ts {
			seen[r.Distinct(x.Cell).Key()] = true
		}
		if len(seen) != len(c.ts) {
			t.Errorf("%s: two treatments have one name: %v", name, seen)
		}
	}
}
