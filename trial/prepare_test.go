package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/param"
	"tare/sandbox"
	"tare/workload"
)

// TestSkipNamesTheSandboxOnce: Check mostly begins with the sandbox's name, but
// need not.
func TestSkipNamesTheSandboxOnce(t *testing.T) {
	for says, want := range map[string]string{
		"process: needs root":           "process: needs root",
		"process does not work here\n":  "process does not work here",
		"needs root":                    "process: needs root",
		"processes cannot be made":      "process: processes cannot be made",
		"runc: the process: needs root": "process: runc: the process: needs root",
	} {
		e, _ := engine(t, "")
		e.Kinds["process"].(*kind).check = errors.New(says)
		skips, err := e.Skips(t.Context())
		if err != nil || len(skips) != 1 {
			t.Fatalf("%q: %v, %v", says, skips, err)
		}
		if got := skips[0].Reason; got != want {
			t.Errorf("%q is reported as %q, want %q", says, got, want)
		}
	}
	e, _ := engine(t, "")
	if skips, err := e.Skips(t.Context()); err != nil || len(skips) != 0 {
		t.Errorf("a sandbox that works: %s", fmt.Sprint(skips, err))
	}
}

// slowToCheck is a kind that says how long Check may take.
type slowToCheck struct{ kind }

func (*slowToCheck) Traits(map[string]string) sandbox.Traits {
	return sandbox.Traits{CheckWithin: 90 * time.Second}
}

// TestTryingIsTold: who wants to hear it knows before what is being tried, with its bound,
// and when that has ended, well or not.
func TestTryingIsTold(t *testing.T) {
	e, _ := engine(t, "")
	j := &journal{}
	e.Trying = func(kind string, within time.Duration) func() {
		j.note("trying %s, %v", kind, within)
		return func() { j.note("done") }
	}
	for _, says := range []error{nil, errors.New("does not work")} {
		e.Kinds["process"] = &slowToCheck{kind{name: "process", check: says}}
		if _, err := e.Skips(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"trying process, 1m30s", "done", "trying process, 1m30s", "done"}, j.lines); d != "" {
		t.Error(d)
	}
}

// choosy is a kind that lacks something for some options.
type choosy struct {
	kind
	lacks error
}

func (*choosy) CheckOptions(map[string]string) error            { return nil }
func (k *choosy) CheckHere(context.Context, sandbox.Spec) error { return k.lacks }

func TestSkipWhatIsNotPossibleHere(t *testing.T) {
	for lacks, want := range map[string]string{"": "", "accel = kvm: no machine boots with it": "process: accel = kvm: no machine boots with it"} {
		e, _ := engine(t, "")
		k := &choosy{kind: kind{name: "process"}}
		if lacks != "" {
			k.lacks = errors.New(lacks)
		}
		e.Kinds["process"] = k
		skips, err := e.Skips(t.Context())
		if err != nil || len(skips) > 1 || (len(skips) == 1) != (want != "") || want != "" && skips[0].Reason != want {
			t.Errorf("%q: %v, %v; want %q", lacks, skips, err, want)
		}
	}
}

// roleLoad is a workload of the given roles.
type roleLoad struct {
	load
	roles []workload.Role
}

func (l *roleLoad) Roles(param.Values) ([]workload.Role, error) { return l.roles, nil }

func TestImagesAreAskedForByNameAndNotTheHost(t *testing.T) {
	e, j := engine(t, "")
	e.Workloads["load"] = &roleLoad{load: load{j: j}, roles: []workload.Role{
		{Name: "server", Mode: workload.Exec, Image: "redis", Needs: []string{"redis-server"}, Background: true},
		{Name: "client", Mode: workload.Exec, Image: "alpha"},
		{Name: "helper", Mode: workload.Exec, Needs: []string{"wrk"}},
	}}
	images, err := e.NeedsImages()
	if d := cmp.Diff([]string{"alpha", "redis"}, images); d != "" || err != nil {
		t.Errorf("images %v: %s", err, d)
	}
	needs, err := e.Needs()
	if d := cmp.Diff([]string{"wrk"}, needs); d != "" || err != nil {
		t.Errorf("needs %v: %s", err, d)
	}
	skip := func() string {
		t.Helper()
		skips, err := e.Skips(t.Context())
		if err != nil || len(skips) > 1 {
			t.Fatalf("%v, %v", skips, err)
		}
		if len(skips) == 0 {
			return ""
		}
		return skips[0].Reason
	}
	if got := skip(); got != "" {
		t.Errorf("a place with all that is asked for: %q", got)
	}
	e.Place.(*place).lacks = errors.New("image alpha: no package alpha; run apt-get update")
	if got, want := skip(), "image alpha: no package alpha; run apt-get update"; got != want {
		t.Errorf("a missing image: %q, want %q", got, want)
	}
}

func TestNetworkIsMadeForTwoEndsOrAProbe(t *testing.T) {
	for name, c := range map[string]struct {
		roles []workload.Role
		want  bool
	}{
		"one end":   {[]workload.Role{{Name: "main", Mode: workload.Exec}}, false},
		"two ends":  {[]workload.Role{{Name: "a", Mode: workload.Exec}, {Name: "b", Mode: workload.Exec}}, true},
		"a probe":   {[]workload.Role{{Name: "main", Mode: workload.Launch, Probe: &workload.Probe{Port: 80}}}, true},
		"launching": {[]workload.Role{{Name: "main", Mode: workload.Launch}}, false},
	} {
		e, j := engine(t, "")
		e.Workloads["load"] = &roleLoad{load: load{j: j}, roles: c.roles}
		if got, err := e.NeedsNetwork(); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestFullDiskBeforeTheStart: a disk without room for the sandbox's directories is told like one that fills up later.
func TestFullDiskBeforeTheStart(t *testing.T) {
	e, _ := engine(t, "")
	e.Place.(*place).prepare = &fs.PathError{Op: "mkdir", Path: "/d", Err: syscall.ENOSPC}
	tr, _ := e.Trial(t.Context(), first(e))
	if tr.Failure == nil || tr.Failure.Kind != "disk" || tr.Failure.Reason != "mkdir /d: no space left on device; free some space, or choose another disk with --data" {
		t.Errorf("%+v", tr.Failure)
	}
}
