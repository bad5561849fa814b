// Package sandboxtest is the contract that every kind of sandbox fulfils, as
// tests.
//
// The data path: 1. a kind's test calls Run; 2. Run takes the host, builds a
// tree with the test binary as /tare, and a bridge; 3. each subtest starts
// sandboxes and looks at them from inside, through small programs in the test
// binary, and from the host; 4. after each, nothing of the sandbox may be left.
package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/host/state/statetest"
	"tare/internal/rootless"
	"tare/record"
	"tare/sandbox"
)

// Options say what a kind is exempt from, with a reason each in the kind's test.
type Options struct {
	// CPUOverhead is what the kind adds to a CPU limit for itself, in cores.
	CPUOverhead float64
	// NoBlock is why the sandbox cannot have a block device; "" if it can.
	NoBlock string
	// OwnDisks: the sandbox has its volumes' files in disks of its own.
	OwnDisks bool
	// Params are the kind's options in every Spec.
	Params map[string]string
	// Brief leaves out what does not depend on the kind, for one that shares its code with
	// another kind that has the whole suite.
	Brief bool
	// FreshNames makes names that no sandbox on the host has; nil: from the test's.
	FreshNames func() string
}

// A start that takes so long is slow: tests that only look share a sandbox, and Launch is
// not tried in both modes everywhere.
const slow = time.Second

// suite is one kind under test.
type suite struct {
	kind   sandbox.Kind
	opts   Options
	traits sandbox.Traits // with the options of opts
	fake   bool           // nothing runs and nothing is on the host: only the lifecycle and names are tested
	root   string
	serial int

	shared     sandbox.Instance // see any
	sharedSpec sandbox.Spec
}

// Run tests a kind. The test binary's TestMain must call Main.
func Run(t *testing.T, kind sandbox.Kind, opts Options) {
	s := &suite{kind: kind, opts: opts, traits: kind.Traits(opts.Params)}
	s.fake = s.traits.Family == record.FamilyFake
	if !s.fake {
		statetest.HostLock(t)
		if err := kind.Check(t.Context()); err != nil {
			t.Skipf("this host lacks a requirement: %v", err)
		}
		s.root = Root(t)
		s.share(t)
	}
	for _, test := range []struct {
		name string
		real bool // needs a sandbox that really runs something
		run  func(*suite, *testing.T)
	}{
		{"Described", false, (*suite).described},
		{"Traits", true, (*suite).whatItIs},
		{"CheckLeavesNothing", false, (*suite).check},
		{"NameTwiceRefused", false, (*suite).twice},
		{"StopIsIdempotent", false, (*suite).stop},
		{"StartHonoursContext", false, (*suite).startContext},
		{"Exec", true, (*suite).exec},
		{"UserAndDirectory", true, (*suite).user},
		{"Streams", true, (*suite).streams},
		{"Files", true, (*suite).files},
		{"Volumes", true, (*suite).volumes},
		{"HostRoot", true, (*suite).hostRoot},
		{"WritableRoot", true, (*suite).writableRoot},
		{"Gate", true, (*suite).gate},
		{"Cancel", true, (*suite).cancel},
		{"Descendants", true, (*suite).descendants},
		{"SandboxDies", true, (*suite).dies},
		{"CPULimit", true, (*suite).cpuLimit},
		{"MemoryLimit", true, (*suite).memoryLimit},
		{"Scope", true, (*suite).scope},
		{"Loopback", true, (*suite).loopback},
		{"Network", true, (*suite).network},
		{"Launch", true, (*suite).launch},
		{"Checkpoint", true, (*suite).checkpoint},
	} {
		if opts.Brief && !slices.Contains(brief(), test.name) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			if test.real && s.fake {
				t.Skip("runs nothing")
			}
			if rootless.Is() && slices.Contains(refused(), test.name) {
				s.refuses(t)
				t.Skipf("without root, this machine's user cannot have what %s needs; see docs/without-root.md", test.name)
			}
			test.run(s, t)
		})
	}
}

// brief are the tests of a brief suite: what the runtime itself does.
func brief() []string {
	return []string{"Described", "Traits", "CheckLeavesNothing", "Exec", "WritableRoot", "CPULimit", "MemoryLimit", "Network", "Launch", "Checkpoint"}
}

// name makes a new name.
func (s *suite) name() string {
	if s.opts.FreshNames != nil {
		return s.opts.FreshNames()
	}
	s.serial++
	return fmt.Sprintf("ct-%s-%d-%d", s.kind.Name(), os.Getpid(), s.serial)
}

// spec makes a Spec without limits and without network. When the test is over
// nothing of the sandbox may be on the host.
func (s *suite) spec(t *testing.T) sandbox.Spec {
	t.Helper()
	name := s.name()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	own := filepath.Join(dir, "own")
	for _, d := range []string{data, own} {
		if err := os.Mkdir(d, 0o755); err != nil { //nolint:gosec // a sandbox's user reads it
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if left := leftOf(t, name); len(left) > 0 {
			t.Errorf("left on the host:\n%s", strings.Join(left, "\n"))
		}
		if left, _ := os.ReadDir(own); len(left) > 0 {
			t.Errorf("left in the sandbox's directory: %v", left)
		}
	})
	return sandbox.Spec{Want: sandbox.Want{Name: name, Options: s.opts.Params}, Dir: own, Root: s.root, Mounts: MountsAtData(data)}
}

// share starts the sandbox of the tests that only look, where a start is slow.
func (s *suite) share(t *testing.T) {
	t.Helper()
	if s.traits.Takes >= slow {
		s.sharedSpec = s.spec(t)
		s.shared = s.start(t, s.sharedSpec)
	}
}

// any returns a running sandbox that the test leaves as it is.
func (s *suite) any(t *testing.T) (sandbox.Instance, sandbox.Spec) {
	t.Helper()
	if s.shared != nil {
		return s.shared, s.sharedSpec
	}
	spec := s.spec(t)
	return s.start(t, spec), spec
}

// modes are the modes of Launch that tests of something else try.
func (s *suite) modes() []sandbox.LaunchMode {
	if s.traits.Takes >= slow {
		return []sandbox.LaunchMode{sandbox.Whole}
	}
	return []sandbox.LaunchMode{sandbox.Whole, sandbox.Phased}
}

// start starts a sandbox that is stopped with the test.
func (s *suite) start(t *testing.T, spec sandbox.Spec) sandbox.Instance {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	inst, err := s.kind.Start(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if err := inst.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return inst
}

// result is what a command did.
type result struct {
	exit           sandbox.Exit
	err            error
	stdout, stderr string
}

// run runs /tare internal try ARGS.
func run(ctx context.Context, inst sandbox.Instance, args ...string) result {
	return command(ctx, inst, nil, append([]string{"/tare", "internal", "try"}, args...)...)
}

func command(ctx context.Context, inst sandbox.Instance, env []string, args ...string) result {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	var r result
	r.exit, r.err = inst.Exec(ctx, sandbox.Command{Args: args, Env: env, Stdout: &out, Stderr: &errs})
	r.stdout, r.stderr = out.String(), errs.String()
	return r
}

// good fails the test unless the command ended well.
func (r result) good(t *testing.T) result {
	t.Helper()
	if r.err != nil || r.exit.Code != 0 {
		t.Fatalf("exit %+v, error %v\nstdout: %.500s\nstderr: %.500s", r.exit, r.err, r.stdout, r.stderr)
	}
	return r
}

func (s *suite) described(t *testing.T) {
	if s.kind.Name() == "" || strings.ContainsAny(s.kind.Name(), " /") || s.kind.About() == "" {
		t.Errorf("name %q, about %q", s.kind.Name(), s.kind.About())
	}
	for _, p := range s.kind.Params() {
		if p.Help == "" {
			t.Errorf("parameter %s has no help", p.Name)
		}
		if _, err := p.Check(p.Default); err != nil {
			t.Errorf("the default of %s is not valid: %v", p.Name, err)
		}
	}
	if s.traits.Family == "" || s.traits.Native == "" || min(s.traits.Settle, s.traits.Takes, s.traits.CheckWithin) < 0 {
		t.Errorf("traits without a family or a native counterpart, or with a negative time: %+v", s.traits)
	}
	if s.traits.Family == record.FamilyNative && s.traits.Native != s.kind.Name() {
		t.Errorf("%s is of family %s, but its native counterpart is %s; set another family, or Native: %q", s.kind.Name(), s.traits.Family, s.traits.Native, s.kind.Name())
	}
	if d, ok := s.kind.(sandbox.Definable); ok {
		if word, about := d.Base(); word == "" || about == "" {
			t.Errorf("the word for definitions is %q, about %q", word, about)
		}
		for _, k := range d.Keys() {
			if k.Name == "" || k.Name == "kind" || k.Help == "" {
				t.Errorf("key %+v of a definition: write a name other than kind, and a help text", k)
			}
		}
	}
}

// whatItIs holds the traits against a running sandbox.
func (s *suite) whatItIs(t *testing.T) {
	inst, _ := s.any(t)
	here, err := kernel()
	if err != nil {
		t.Fatal(err)
	}
	in := run(t.Context(), inst, "kernel").good(t).stdout
	if s.traits.OwnKernel == record.Yes && in == here || s.traits.OwnKernel == record.No && in != here {
		t.Errorf("OwnKernel is %q, but the sandbox's kernel is %q and the host's is %q", s.traits.OwnKernel, in, here)
	}
	found := inst.Facts()[record.FactAccelerator]
	if emulated := found == record.AcceleratorTCG; s.traits.Emulated == record.Yes && !emulated || s.traits.Emulated == record.No && emulated {
		t.Errorf("Emulated is %q, but the fact accelerator is %q", s.traits.Emulated, found)
	}
	if s.traits.Family == record.FamilyVM && found == "" {
		t.Errorf("a virtual machine whose facts do not tell the %s", record.FactAccelerator)
	}
}

func (s *suite) check(t *testing.T) {
	if err := s.kind.Check(t.Context()); err != nil {
		t.Errorf("the second Check says %v", err)
	}
	// By this process: the tests of other kinds may be checking now.
	if left := leftOf(t, fmt.Sprintf("check-%s-%d-", s.kind.Name(), os.Getpid())); len(left) > 0 {
		t.Errorf("Check left on the host:\n%s", strings.Join(left, "\n"))
	}
}

func (s *suite) twice(t *testing.T) {
	_, other := s.any(t)
	other.Dir = t.TempDir()
	if inst, err := s.kind.Start(t.Context(), other); err == nil {
		_ = inst.Stop(t.Context())
		t.Error("a second sandbox of the same name was started")
	}
}

func (s *suite) stop(t *testing.T) {
	inst := s.start(t, s.spec(t))
	ended := make(chan error, 1)
	if !s.fake {
		go func() { ended <- run(t.Context(), inst, "stubborn").err }()
		time.Sleep(50 * time.Millisecond)
	}
	for range 3 {
		if err := inst.Stop(t.Context()); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
	if !s.fake {
		select {
		case err := <-ended:
			if err == nil {
				t.Error("the command in a stopped sandbox ended without an error")
			}
		case <-time.After(time.Minute):
			t.Error("the command in a stopped sandbox does not end")
		}
	}
	if r := command(t.Context(), inst, nil, "/tare-hello"); r.err == nil {
		t.Error("a command was run in a stopped sandbox")
	}
}

func (s *suite) startContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if inst, err := s.kind.Start(ctx, s.spec(t)); err == nil {
		_ = inst.Stop(t.Context())
		t.Error("started with a context that is done")
	}
}

func (s *suite) launch(t *testing.T) {
	l, ok := s.kind.(sandbox.Launcher)
	if !ok {
		t.Skip("this kind cannot make one command a sandbox's whole lifecycle")
	}
	for _, mode := range []sandbox.LaunchMode{sandbox.Whole, sandbox.Phased} {
		t.Run(string(mode), func(t *testing.T) {
			var out bytes.Buffer
			got, err := l.Launch(t.Context(), s.spec(t), sandbox.Command{Args: []string{"/tare-hello"}, Stdout: &out}, mode)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != "x\n" || got.Exit.Code != 0 {
				t.Errorf("printed %q, exit %+v", out.String(), got.Exit)
			}
			steps := []time.Duration{got.Instruction, got.Exited, got.Deleted}
			if mode == sandbox.Phased {
				// The first instruction may come before `start` has returned.
				steps = []time.Duration{got.Created, got.Started, got.Exited, got.Deleted}
				if got.Instruction < got.Created || got.Instruction > got.Exited+time.Millisecond {
					t.Errorf("the first instruction at %v of %+v", got.Instruction, got)
				}
			}
			last := time.Duration(1) // each step takes time
			for _, d := range steps {
				if d < last {
					t.Errorf("steps go backwards: %+v", got)
					break
				}
				last = d
			}
			t.Logf("%+v", got)
		})
	}
	t.Run("fails", func(t *testing.T) {
		got, err := l.Launch(t.Context(), s.spec(t), sandbox.Command{Args: []string{"/no-such-program"}}, sandbox.Whole)
		if err == nil && got.Exit.Code == 0 {
			t.Errorf("a program that is not there ran: %+v", got)
		}
	})
}
