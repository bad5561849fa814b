package main

import (
	"testing"

	"tare/record"
)

// TestEnough: something to compare is the native kind and another that really runs, whatever
// their names are.
func TestEnough(t *testing.T) {
	is := func(families ...record.Family) (out []finding) {
		for _, f := range families {
			out = append(out, finding{Area: "sandbox", Name: "some-" + string(f), Family: f})
		}
		return out
	}
	broken := is(record.FamilyVM)
	broken[0].Problem = "no QEMU"
	for _, c := range []struct {
		found []finding
		want  bool
	}{
		{is(record.FamilyNative, record.FamilyContainer), true},
		{is(record.FamilyNative, record.FamilyFake), false},
		{is(record.FamilyContainer, record.FamilyVM), false},
		{append(is(record.FamilyNative), broken...), false},
		{append(is(record.FamilyNative), finding{Area: "workload", Name: "noop"}), false},
	} {
		if got := enough(c.found); got != c.want {
			t.Errorf("%+v: %v, want %v", c.found, got, c.want)
		}
	}
}
