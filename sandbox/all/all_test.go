package all

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/param"
	"tare/record"
	"tare/sandbox"
)

func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds(Env{StateDir: t.TempDir()}) {
		if seen[k.Name()] {
			t.Errorf("two kinds are called %s", k.Name())
		}
		seen[k.Name()] = true
		if k.About() == "" {
			t.Errorf("%s does not say what it is", k.Name())
		}
		if k.Traits(nil).Family == "" {
			t.Errorf("%s does not say of which family it is", k.Name())
		}
	}
	if !seen[sandbox.Native] {
		t.Errorf("the kind %s, which the others name as their native counterpart, is not listed", sandbox.Native)
	}
}

// define makes the kind of a definition.
func define(t *testing.T, kind string, keys param.Values) (sandbox.Kind, error) {
	t.Helper()
	for _, b := range Bases(Kinds(Env{StateDir: t.TempDir()})) {
		if word(b) == kind {
			return b.Define("mine", keys)
		}
	}
	t.Fatalf("no kind %s can be defined", kind)
	return nil, nil
}

func TestDefinitions(t *testing.T) {
	if _, err := define(t, "oci", param.Values{}); err == nil || !strings.Contains(err.Error(), "runtime is missing") {
		t.Errorf("no runtime: %v", err)
	}
	for _, c := range []struct {
		kind, runtime, args string
		want                record.Traits
	}{
		{"oci", "youki", "--debug", record.Traits{Family: record.FamilyContainer, Runtime: "youki", Flags: []string{"debug"}, OwnKernel: record.No, Emulated: record.No}},
		{"oci", "/opt/runsc-2026", "--platform=kvm\n-network=host", record.Traits{Family: record.FamilyGVisor, Runtime: "runsc-2026", Platform: "kvm", Flags: []string{"platform=kvm", "network=host"}, OwnKernel: record.Yes, Emulated: record.No}},
		{"oci", "runsc", "", record.Traits{Family: record.FamilyGVisor, Runtime: "runsc", Platform: "systrap", OwnKernel: record.Yes, Emulated: record.No}},
		{"oci", "kata-runtime", "", record.Traits{Family: record.FamilyVM, Runtime: "kata-runtime", OwnKernel: record.Yes}},
		{"oci", "/opt/odd", "", record.Traits{Family: record.FamilyContainer, Runtime: "odd"}},
		{"vm", "/opt/qemu-10", "-overcommit\nmem-lock=off", record.Traits{Family: record.FamilyVM, Runtime: "qemu-10", Flags: []string{"overcommit", "mem-lock=off"}, OwnKernel: record.Yes}},
	} {
		k, err := define(t, c.kind, param.Values{"runtime": c.runtime, "args": c.args})
		if err != nil {
			t.Fatal(err)
		}
		c.want.Native = sandbox.Native
		if diff := cmp.Diff(c.want, k.Traits(nil).Traits); diff != "" || k.Name() != "mine" {
			t.Errorf("%s %s (-want +got):\n%s", k.Name(), c.runtime, diff)
		}
	}
}

func TestMissingRuntimeSaysWhatToDo(t *testing.T) {
	for _, kind := range []string{"oci", "vm"} {
		k, err := define(t, kind, param.Values{"runtime": "no-such-runtime"})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such-runtime") || !strings.Contains(err.Error(), "install") {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}
