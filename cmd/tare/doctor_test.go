package main

import (
	"testing"

	"tare/cluster"
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

// TestEnoughCluster: a study needs all rights, and two classes to compare.
func TestEnoughCluster(t *testing.T) {
	native := finding{Area: cluster.AreaClass, Name: "process", Family: record.FamilyNative}
	other := finding{Area: cluster.AreaClass, Name: "gvisor", Family: record.FamilyGVisor}
	broken := other
	broken.Problem = "the pod cannot run"
	right := finding{Area: cluster.AreaPermission, Name: "pods"}
	denied := right
	denied.Problem = "you may not"
	spare := denied
	spare.Optional = true
	for _, c := range []struct {
		found []finding
		want  bool
	}{
		{[]finding{right, native, other}, true},
		{[]finding{spare, native, other}, true},
		{[]finding{right, native}, false},
		{[]finding{right, native, broken}, false},
		{[]finding{denied, native, other}, false},
	} {
		if got := enoughCluster(c.found); got != c.want {
			t.Errorf("%+v: %v, want %v", c.found, got, c.want)
		}
	}
}
