package all

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKinds(t *testing.T) {
	kinds, err := Kinds(Env{StateDir: t.TempDir()}, []Def{{Name: "youki", Runtime: "youki"}, {Name: "vm-10", Kind: "vm", Runtime: "/opt/qemu-10", Args: []string{"-overcommit", "mem-lock=off"}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range kinds {
		got = append(got, k.Name())
		if k.About() == "" {
			t.Errorf("%s does not say what it is", k.Name())
		}
	}
	want := []string{"process", "runc", "crun", "runsc-systrap", "runsc-ptrace", "runsc-kvm", "vm", "fake", "youki", "vm-10"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestDefsAreChecked(t *testing.T) {
	for want, d := range map[string]Def{
		"already":             {Name: "runc", Runtime: "runc"},
		"runtime is missing":  {Name: "mine"},
		"becomes a directory": {Name: "../etc", Runtime: "runc"},
		`did you mean "oci"`:  {Name: "mine", Kind: "oic", Runtime: "runc"},
	} {
		if _, err := Kinds(Env{}, []Def{d}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want it to say %q", d, err, want)
		}
	}
}

func TestMissingRuntimeSaysWhatToDo(t *testing.T) {
	kinds, err := Kinds(Env{StateDir: t.TempDir()}, []Def{{Name: "mine", Runtime: "no-such-runtime"}, {Name: "machine", Kind: "vm", Runtime: "no-such-runtime"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds[len(kinds)-2:] {
		err := k.Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), "no-such-runtime") || !strings.Contains(err.Error(), "install") {
			t.Errorf("%s: got %v", k.Name(), err)
		}
	}
}
