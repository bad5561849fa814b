package trial

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/param"
	"tare/record"
	"tare/sandbox"
	"tare/workload"
)

// launching is a kind whose sandboxes are a command's whole lifecycle; it counts those
// that live.
type launching struct {
	kind
	traits sandbox.Traits
	alive  atomic.Int64
	copies []string // references of the copies that the launches used
}

func (l *launching) Traits(options map[string]string) sandbox.Traits {
	out := l.traits
	out.Traits = l.kind.Traits(options).Traits
	return out
}

func (l *launching) Launch(ctx context.Context, spec sandbox.Spec, c sandbox.Command, mode sandbox.LaunchMode) (sandbox.Launch, error) {
	l.alive.Add(1)
	defer l.alive.Add(-1)
	_, _ = io.WriteString(c.Stdout, "x\n")
	facts := map[string]string{record.FactNode: "n1", "pod": spec.Name}
	if c.Args[0] == "/pause" {
		<-ctx.Done()
		return sandbox.Launch{Facts: facts}, ctx.Err()
	}
	got := sandbox.Launch{Instruction: 2, Exited: 3, Deleted: 4, Facts: facts}
	if l.copies = append(l.copies, spec.Copy); spec.Copy != "" {
		got.Pulled = 1000
	}
	if mode == sandbox.Phased {
		got.Boot = []sandbox.BootPhase{{Name: "sandbox", Took: 3 * time.Second}, {Name: "ready", Took: time.Second}}
	}
	return got, nil
}

// launchLoad is a workload of the given roles that keeps what it is to parse.
type launchLoad struct {
	load
	roles []workload.Role
	out   []byte
}

func (l *launchLoad) Roles(param.Values) ([]workload.Role, error) { return l.roles, nil }
func (l *launchLoad) Parse(_ string, _ param.Values, out io.Reader) (record.Reading, error) {
	l.out, _ = io.ReadAll(out)
	return record.Reading{Samples: []record.Sample{{Name: "answer", Value: 1}}}, nil
}

func launchTrial(t *testing.T, role workload.Role) (*launchLoad, *record.Trial) {
	t.Helper()
	e, j := engine(t, "")
	k := &launching{kind: kind{j: j, name: "process"}}
	l := &launchLoad{load: load{j: j}, roles: []workload.Role{role}}
	e.Kinds["process"], e.Workloads["load"] = k, l
	e.Study.Timeout = 0
	// Every sandbox takes 1000 bytes.
	e.Place.(*place).available = func() int64 { return 1e9 - 1000*k.alive.Load() }
	trial, _ := e.Trial(t.Context(), first(e))
	if k.alive.Load() != 0 {
		t.Errorf("%d sandboxes still live", k.alive.Load())
	}
	return l, trial
}

func TestIdleReadsMemoryAtEachStepAndAfterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, trial := launchTrial(t, workload.Role{Name: "main", Mode: workload.Idle, Args: []string{"/pause"}, Count: 3})
		if trial.Status != record.OK {
			t.Fatalf("failed: %+v", trial.Failure)
		}
		var got []workload.IdleLine
		lines := bufio.NewScanner(bytes.NewReader(l.out))
		for lines.Scan() {
			var line workload.IdleLine
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			got = append(got, line)
		}
		want := []workload.IdleLine{{Count: 0, Available: 1e9}, {Count: 1, Available: 1e9 - 1000}, {Count: 2, Available: 1e9 - 2000}, {Count: 3, Available: 1e9 - 3000}, {Count: 0, Available: 1e9}}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

// filing is a place where each sandbox that lives has files of 500 bytes.
type filing struct {
	*place
	alive *atomic.Int64
}

func (f filing) Used(string) (int64, error) { return 500 * f.alive.Load(), nil }

// TestIdleReadsTheDisk: of sandboxes with a root of their own, though their role does not write to it.
func TestIdleReadsTheDisk(t *testing.T) {
	for own, want := range map[bool]int64{true: 1000, false: -1} {
		synctest.Test(t, func(t *testing.T) {
			e, j := engine(t, "")
			k := &launching{kind: kind{j: j, name: "process"}, traits: sandbox.Traits{OwnRoot: own}}
			l := &launchLoad{load: load{j: j}, roles: []workload.Role{{Name: "main", Mode: workload.Idle, Args: []string{"/pause"}, Count: 2}}}
			p := e.Place.(*place)
			e.Kinds["process"], e.Workloads["load"], e.Place = k, l, filing{p, &k.alive}
			if trial, _ := e.Trial(t.Context(), first(e)); trial.Status != record.OK {
				t.Fatalf("failed: %+v", trial.Failure)
			}
			got := int64(-1)
			for _, text := range bytes.Split(bytes.TrimSpace(l.out), []byte("\n")) {
				var line workload.IdleLine
				if err := json.Unmarshal(text, &line); err != nil {
					t.Fatal(err)
				}
				if line.Count == 2 && line.Disk != nil {
					got = *line.Disk
				}
			}
			if last := p.wants[len(p.wants)-1]; got != want || last.Writable != own {
				t.Errorf("a root of its own %v: %d bytes, want %d; %+v", own, got, want, last)
			}
		})
	}
}

// TestIdleExpectsEachStart: many slow starts do not count as a hang.
func TestIdleExpectsEachStart(t *testing.T) {
	e, j := engine(t, "")
	k := &launching{kind: kind{j: j, name: "process"}, traits: sandbox.Traits{Takes: 5 * time.Second}}
	role := workload.Role{Name: "main", Mode: workload.Idle, Args: []string{"/pause"}, Count: 100, Expect: time.Second}
	e.Kinds["process"], e.Workloads["load"], e.Study.Timeout = k, &launchLoad{load: load{j: j}, roles: []workload.Role{role}}, 0
	trial := e.begin(first(e))
	if err := trial.resolve(); err != nil {
		t.Fatal(err)
	}
	if got := e.Expected(first(e).Cell); got < 500*time.Second || trial.timeout() < 2*got {
		t.Errorf("expected %v, timeout %v", got, trial.timeout())
	}
}

func TestIdleSandboxThatEndsFailsTheTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, trial := launchTrial(t, workload.Role{Name: "main", Mode: workload.Idle, Args: []string{"/ends"}, Count: 3})
		if trial.Failure == nil || trial.Failure.Kind != "died" {
			t.Errorf("status %s, failure %+v", trial.Status, trial.Failure)
		}
	})
}

func TestLaunchGoesThroughBothModes(t *testing.T) {
	l, trial := launchTrial(t, workload.Role{Name: "main", Mode: workload.Launch, Args: []string{"/hello"}, Count: 2})
	if trial.Status != record.OK {
		t.Fatalf("failed: %+v", trial.Failure)
	}
	if n := bytes.Count(l.out, []byte(`"mode":"whole"`)); n != 2 {
		t.Errorf("%d whole launches, want 2: %s", n, l.out)
	}
	if n := bytes.Count(l.out, []byte(`"mode":"phased"`)); n != 2 {
		t.Errorf("%d phased launches, want 2: %s", n, l.out)
	}
	var got []string // of each phased launch its steps, and their sum
	for _, s := range trial.Samples {
		if s.Name == record.SandboxBoot || s.Name == record.SandboxLaunch {
			got = append(got, fmt.Sprintf("%s %s %g", s.Name, s.Labels, s.Value))
		}
	}
	one := []string{"sandbox_boot end=main,phase=sandbox,sandbox=process 3", "sandbox_boot end=main,phase=ready,sandbox=process 1", "sandbox_launch end=main,sandbox=process 4"}
	if d := cmp.Diff(slices.Concat(one, one), got); d != "" {
		t.Error(d)
	}
}

// TestLaunchFacts: a trial whose sandboxes are launches records what was in force for the first of them.
func TestLaunchFacts(t *testing.T) {
	for mode, role := range map[workload.Mode]workload.Role{
		workload.Launch: {Args: []string{"/hello"}, Count: 4, Burst: 2},
		workload.Idle:   {Args: []string{"/pause"}, Count: 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			role.Name, role.Mode = "main", mode
			_, trial := launchTrial(t, role)
			if trial.Status != record.OK {
				t.Fatalf("%s: failed: %+v", mode, trial.Failure)
			}
			first := map[workload.Mode]string{workload.Launch: "-main-0whole", workload.Idle: "-main-0idle"}[mode]
			if pod := trial.Facts["main.pod"]; trial.Facts["main.node"] != "n1" || !strings.HasSuffix(pod, first) {
				t.Errorf("%s: %v, want those of %s", mode, trial.Facts, first)
			}
		})
	}
}

// TestLifecycle: another sandbox lives and ends before the role's own, and its time is kept.
func TestLifecycle(t *testing.T) {
	for _, asked := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			_, trial := launchTrial(t, workload.Role{Name: "main", Mode: workload.Exec, Args: []string{"call"}, Lifecycle: asked})
			if trial.Status != record.OK {
				t.Fatalf("failed: %+v", trial.Failure)
			}
			var got []record.Sample
			for _, s := range trial.Samples {
				if s.Name == record.SandboxLife {
					got = append(got, s)
				}
			}
			if (len(got) == 1) != asked || asked && (got[0].Value != 4e-9 || got[0].Labels.Get(record.LabelSandbox) != "process") {
				t.Errorf("asked %v: %+v", asked, got)
			}
		})
	}
}

// filling is a place whose nodes can be filled. It notes what it is asked for.
type filling struct {
	Place
	asked []string
}

func (f *filling) Fill(_ context.Context, trial, node string, percent int) (string, error) {
	f.asked = append(f.asked, fmt.Sprintf("%s %s %d", trial, node, percent))
	if percent > 90 {
		return "", errors.New("no room")
	}
	return fmt.Sprintf("%d pods", percent), nil
}

// TestFilledNode: the node is filled before the first launch, and the trial says how full it was. A place that cannot is a reason
// why the trial failed.
func TestFilledNode(t *testing.T) {
	for percent, want := range map[int]record.Status{80: record.OK, 95: record.Failed} {
		e, j := engine(t, "")
		role := workload.Role{Name: "main", Mode: workload.Launch, Args: []string{"/hello"}, Count: 1, Fill: percent}
		at := &filling{Place: e.Place}
		e.Kinds["process"], e.Workloads["load"], e.Place = &launching{kind: kind{j: j, name: "process"}}, &launchLoad{load: load{j: j}, roles: []workload.Role{role}}, at
		next := first(e)
		next.Node = "n1"
		trial, _ := e.Trial(t.Context(), next)
		if trial.Status != want || len(at.asked) != 1 || at.asked[0] != fmt.Sprintf("x-1 n1 %d", percent) {
			t.Errorf("%d %%: %s, %+v, asked %q", percent, trial.Status, trial.Failure, at.asked)
		}
		if f := trial.Failure; want == record.Failed && (f.Phase != PhasePrepare || f.Kind != "start" || !strings.Contains(f.Reason, "cannot be filled: no room")) {
			t.Errorf("%+v", f)
		}
		if want == record.OK && trial.Facts["main"+record.FactFilled] != "80 pods" {
			t.Errorf("facts: %v", trial.Facts)
		}
	}
}

// copying is a place with two copies of each image.
type copying struct {
	Place
	given int
}

func (c *copying) Prepare(_ context.Context, want sandbox.Want) (sandbox.Spec, error) {
	return sandbox.Spec{Want: want}, nil
}

func (c *copying) Copy(_ context.Context, image, node string) (string, error) {
	if c.given++; c.given > 2 {
		return "", errors.New("no more copies")
	}
	return fmt.Sprintf("%s on %s, %d", image, node, c.given), nil
}

// TestColdLaunch: each launch of a cold role has its own copy, and the trial keeps the size of the pulled image. Without copies, the
// trial fails and says why. Other roles get no copies.
func TestColdLaunch(t *testing.T) {
	for _, c := range []struct {
		count  int
		cold   bool
		want   record.Status
		copies []string
	}{
		{1, true, record.OK, []string{" on n1, 1", " on n1, 2"}}, {2, true, record.Failed, []string{" on n1, 1", " on n1, 2"}}, {1, false, record.OK, []string{"", ""}},
	} {
		e, j := engine(t, "")
		role := workload.Role{Name: "main", Mode: workload.Launch, Args: []string{"/hello"}, Count: c.count, Cold: c.cold}
		k := &launching{kind: kind{j: j, name: "process"}}
		e.Kinds["process"], e.Workloads["load"], e.Place = k, &launchLoad{load: load{j: j}, roles: []workload.Role{role}}, &copying{Place: e.Place}
		next := first(e)
		next.Node = "n1"
		trial, _ := e.Trial(t.Context(), next)
		if d := cmp.Diff(c.copies, k.copies); d != "" || trial.Status != c.want {
			t.Errorf("%+v: %s, %+v, %s", c, trial.Status, trial.Failure, d)
		}
		if f := trial.Failure; c.want == record.Failed && (f.Kind != "start" || !strings.Contains(f.Reason, "no more copies")) {
			t.Errorf("%+v", f)
		}
		pulled := 0
		for _, s := range trial.Samples {
			if s.Name == record.SandboxPulled && s.Value == 1000 && s.Labels.Get(record.LabelSandbox) == "process" {
				pulled++
			}
		}
		if c.want == record.OK && (pulled > 0) != c.cold {
			t.Errorf("%+v: %d sizes", c, pulled)
		}
	}
}
