// Package trialtest makes one trial of a workload in real sandboxes, from its real
// images, as a study would.
//
// The data path: 1. Main, in the package's TestMain, lets the test's own binary be
// /tare in the sandboxes; 2. Run builds the images that the roles name, or finds
// them in the host's cache, takes the host's lock and opens a bridge; 3. in each
// sandbox package trial makes one trial of the workload's study of one cell; 4. the
// caller looks at the trial.
package trialtest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tare/agent"
	"tare/catalogue"
	"tare/collect"
	"tare/host"
	"tare/host/image/imagetest"
	"tare/host/network"
	"tare/host/rootfs"
	"tare/host/state/statetest"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/sandbox"
	sandboxall "tare/sandbox/all"
	"tare/study"
	"tare/trial"
	"tare/volume"
	"tare/workload"
)

// Program is one of `tare internal`.
type Program func(args []string, stdout, stderr io.Writer) int

// Main is for a package's TestMain; inside are the programs that its roles run
// by `/tare internal NAME`:
//
//	func TestMain(m *testing.M) { os.Exit(trialtest.Main(m.Run, nil)) }
func Main(tests func() int, inside map[string]Program) int {
	if len(os.Args) < 3 || os.Args[1] != "internal" {
		return tests()
	}
	if os.Args[2] == "agent" {
		signal.Ignore(syscall.SIGINT)
		if err := agent.Serve(context.Background(), os.Stdin, os.Stdout, nil, agent.OwnProcess); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "agent:", err)
			return 1
		}
		return 0
	}
	if os.Args[2] == "gate" {
		return agent.Gate(os.Args[3:], os.Stderr)
	}
	if p := inside[os.Args[2]]; p != nil {
		return p(os.Args[3:], os.Stdout, os.Stderr)
	}
	_, _ = fmt.Fprintln(os.Stderr, "there is no", os.Args[2])
	return 2
}

// Bench is what trials of a workload need of the host, for one test.
type Bench struct {
	w     workload.Workload
	kinds map[string]sandbox.Kind
	place *host.Place // without directories: each trial has its own
	state string
	n     int
}

// New takes the host for the rest of the test, and gets the images and programs
// that the workload needs under each of values. A test that cannot have them is
// skipped with what the host lacks.
func New(t *testing.T, w workload.Workload, values ...param.Values) *Bench {
	t.Helper()
	if testing.Short() {
		t.Skip("trials in real sandboxes are too long for -short")
	}
	b := &Bench{w: w, kinds: map[string]sandbox.Kind{}, place: &host.Place{Images: map[string]host.Image{}}, state: t.TempDir()}
	var needs, points []string
	whole := false // the host's own root is wanted
	for _, v := range values {
		v, err := param.Fill(w.Params(), v)
		if err != nil {
			t.Fatal(err)
		}
		roles, err := w.Roles(v)
		if err != nil {
			t.Fatal(err)
		}
		for i := range roles {
			needs = append(needs, roles[i].Needs...)
			for _, v := range roles[i].Volumes {
				points = append(points, v.Path())
			}
			if whole = whole || roles[i].Image == volume.HostRoot; roles[i].Image == volume.HostRoot {
				continue
			}
			if name := roles[i].Image; name != "" && b.place.Images[name].Root == "" {
				b.place.Images[name] = host.Image{Root: imagetest.Tree(t, name), Image: trial.Image{Digest: name}} // may take a minute, so before the lock
			}
		}
	}
	b.place.Root = root(t, needs)
	if whole {
		img, err := host.WholeRoot(t.Context(), t.TempDir(), points)
		if err != nil {
			t.Fatal(err)
		}
		b.place.Images[volume.HostRoot] = img
	}
	statetest.HostLock(t)
	statetest.Unchanged(t, fmt.Sprintf("trial%d-", os.Getpid()))
	for _, k := range sandboxall.Kinds(sandboxall.Env{StateDir: b.state}) {
		b.kinds[k.Name()] = k
	}
	var err error
	if b.place.Bridge, err = network.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.place.Bridge.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// root is the tree of roles without an image.
func root(t *testing.T, needs []string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := rootfs.Build(t.Context(), t.TempDir(), self, needs)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Missing) > 0 {
		t.Skipf("not installed: %s", strings.Join(tree.Missing, ", "))
	}
	return tree.Path
}

// Each runs a trial in the baseline, in runc and in gVisor, one subtest each, and
// gives those that ended well to check. A sandbox that the host cannot run is
// skipped.
func (b *Bench) Each(t *testing.T, v param.Values, isolate string, check func(*testing.T, *record.Trial)) {
	t.Helper()
	b.In(t, Kinds(), v, isolate, check)
}

// Kinds are the sandboxes of Each: the baseline, runc and gVisor.
func Kinds() []string { return []string{"process", "runc", GVisor} }

// GVisor is the kind that differs most from the baseline. A case that does not depend on the
// kind runs in it alone.
const GVisor = "runsc-systrap"

// In is Each for some kinds of sandbox.
func (b *Bench) In(t *testing.T, kinds []string, v param.Values, isolate string, check func(*testing.T, *record.Trial)) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			if err := b.kinds[kind].Check(t.Context()); err != nil {
				t.Skip(err)
			}
			tr := b.Trial(t, v, kind, isolate)
			if tr.Status != record.OK {
				t.Fatalf("%+v", tr.Failure)
			}
			check(t, tr)
		})
	}
}

// Trial runs one trial in the sandbox of that kind; isolate is the end that is in
// it, "" for a workload of one end.
func (b *Bench) Trial(t *testing.T, v param.Values, kind, isolate string) *record.Trial {
	t.Helper()
	return b.trial(t, v, kind, isolate, nil)
}

// Counted runs the counting trial of a workload of one end, natively: its calls are
// counted by that collector.
func (b *Bench) Counted(t *testing.T, v param.Values, by collect.Collector) *record.Trial {
	t.Helper()
	return b.trial(t, v, "process", "", by)
}

func (b *Bench) trial(t *testing.T, v param.Values, kind, isolate string, counting collect.Collector) *record.Trial {
	t.Helper()
	filled, err := param.Fill(b.w.Params(), v)
	if err != nil {
		t.Fatal(err)
	}
	roles, err := b.w.Roles(filled)
	if err != nil {
		t.Fatal(err)
	}
	cat := catalogue.Of([]workload.Workload{b.w}, slices.Collect(maps.Values(b.kinds)), nil)
	info := cat.Workloads[b.w.Name()]
	info.Endpoints = len(roles) // under these parameters
	cat.Workloads[b.w.Name()] = info
	text := fmt.Sprintf("study: one\nbaseline: %q\nfactors:\n  sandbox: [%q]\n", kind, kind)
	if isolate != "" {
		text += fmt.Sprintf("  isolate: [%s]\n", isolate)
	}
	text += fmt.Sprintf("workloads:\n  it:\n    kind: %s\n", b.w.Name())
	for name, value := range v {
		text += fmt.Sprintf("    %s: %q\n", name, value)
	}
	text += "stop: {fixed: 1}\nsentinel: off\n"
	st, err := study.Parse("one.yaml", []byte(text), cat, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.n++
	e := &trial.Maker{
		ID: fmt.Sprintf("trial%d-%d", os.Getpid(), b.n), Study: st, Catalogue: cat, Kinds: b.kinds,
		Workloads: map[string]workload.Workload{b.w.Name(): b.w},
		Place: &host.Place{
			State: filepath.Join(b.state, "trials"), Data: t.TempDir(), Memory: t.TempDir(),
			Root: b.place.Root, Images: b.place.Images, Bridge: b.place.Bridge,
		},
	}
	next := plan.Next{Cell: st.Strata[0].Cells[0], Block: 1, Attempt: 1, Seq: 1}
	if counting != nil {
		e.Counting, next.Counting, next.Cell = counting, true, study.CountingCell(next.Cell)
	}
	tr, ev := e.Trial(t.Context(), next)
	if tr.Status != record.OK {
		for _, r := range ev.Raw {
			t.Logf("%s: %.2000s", r.Name, r.Data)
		}
	}
	return tr
}
