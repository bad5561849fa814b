package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/agent"
	"tare/host/image"
	"tare/host/rootfs"
	"tare/host/spawn"
)

// lines is a writer to a test's log.
type lines struct{ t *testing.T }

func (l lines) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// TestMachine boots the machine and runs the most important steps. make lab-vm runs all.
func TestMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a machine, which takes minutes")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: the machine's tree is made by commands in namespaces of their own")
	}
	for _, tool := range []string{"qemu-system-x86_64", "mke2fs", "apt-get", "runsc"} {
		if _, ok := rootfs.Lookup(tool); !ok {
			t.Skipf("this host has no %s; run scripts/setup.sh run", tool)
		}
	}
	module, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	err = options{module: module, brief: true}.run(t.Context(), lines{t})
	if errors.Is(err, errNotDebian) {
		t.Skip(err)
	}
	if err != nil {
		t.Error(err)
	}
	t.Logf("took %s", time.Since(begun).Round(time.Second))
}

// The recipe is read in the same way as those of tare's own images.
func TestRecipe(t *testing.T) {
	own, err := ownRecipes()
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&image.Builder{Cache: t.TempDir(), Recipes: own}).Recipe("machine")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Files {
		if _, err := os.Stat(filepath.Join("recipe/machine", f.From)); err != nil {
			t.Error(err)
		}
	}
}

func TestChoose(t *testing.T) {
	all := allSteps()
	got, err := choose(all, []string{"study", "doctor"})
	if err != nil || len(got) != 2 || got[0].name != "doctor" || got[1].name != "study" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := choose(all, []string{"sudy"}); err == nil || !strings.Contains(err.Error(), `"sudy"`) {
		t.Errorf("an unknown step: %v", err)
	}
	if n := len(briefSteps()); n == 0 || n >= len(all) {
		t.Errorf("%d of %d steps in make test", n, len(all))
	}
}

// A skipped test counts as failed: a kind's suite skips when Check refuses the kind.
func TestSkipped(t *testing.T) {
	const out = `=== RUN   TestContract
--- PASS: TestContract (1.78s)
    --- SKIP: TestContract/runsc-systrap (1.74s)
    --- PASS: TestContract/runc (1.74s)
        --- SKIP: TestContract/runc/Checkpoint (0.00s)
PASS
`
	if got := skipped(out, []string{"Checkpoint"}); len(got) != 1 || got[0] != "TestContract/runsc-systrap" {
		t.Errorf("got %q", got)
	}
}

func TestGood(t *testing.T) {
	ok := trial{Status: "ok", Cell: map[string]string{"sandbox": "process"}}
	failed := trial{Status: "failed", Cell: map[string]string{"sandbox": "runc"}}
	if err := good([]trial{ok}, []string{"process"}); err != nil {
		t.Error(err)
	}
	if good([]trial{ok}, []string{"process", "runc"}) == nil {
		t.Error("a sandbox without a trial is good")
	}
	if good([]trial{ok, failed}, []string{"process", "runc"}) == nil {
		t.Error("a failed trial is good")
	}
	again := failed
	again.Status = "ok"
	if err := good([]trial{ok, failed, again}, []string{"process", "runc"}); err != nil {
		t.Error("a trial that was repeated:", err)
	}
}

func TestSameFigures(t *testing.T) {
	made := func(sandbox string, names ...string) trial {
		t := trial{Status: "ok", Cell: map[string]string{"workload": "disk", "sandbox": sandbox}}
		for _, n := range names {
			t.Samples = append(t.Samples, struct{ Name string }{n})
		}
		return t
	}
	all := []string{"cgroup_cpu_rate", "cgroup_memory_max", "cgroup_io_read_rate"}
	if err := sameFigures([]trial{made("process", all...), made("runc", append(all, "rate")...)}); err != nil {
		t.Error(err)
	}
	if err := sameFigures([]trial{made("process", all[:2]...), made("runc", all...)}); err == nil || !strings.Contains(err.Error(), "process has no cgroup_io_read_rate") {
		t.Errorf("a baseline without disk figures: %v", err)
	}
}

// A failed step shows its log, and the next step still runs. A step that hangs is ended.
func TestPlay(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	proc, err := spawn.Start(spawn.Options{}, cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _, _ = proc.Wait() }()
	l := &lab{vm: &vm{proc: proc}}
	var out strings.Builder
	err = l.play(t.Context(), []step{
		{"bad", true, time.Minute, func(_ context.Context, l *lab) error { l.log.printf("its log\n"); return errors.New("no luck") }},
		{"late", true, time.Millisecond, func(ctx context.Context, _ *lab) error { <-ctx.Done(); return ctx.Err() }},
		{"fine", true, time.Minute, func(context.Context, *lab) error { return nil }},
	}, &out, false)
	if !errors.Is(err, errFailed) || !strings.Contains(err.Error(), "2 of 3") {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"its log\nFAILED", "bad: no luck\n", "late: it had not ended after 1ms", "ok "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q does not say %q", out.String(), want)
		}
	}
	// Of a machine that hangs, nothing more is asked.
	err = l.play(t.Context(), []step{
		{"hangs", true, time.Minute, func(context.Context, *lab) error { return fmt.Errorf("sh: %w", agent.ErrHangs) }},
		{"never", true, time.Minute, func(context.Context, *lab) error { t.Error("a step after a machine hung"); return nil }},
	}, &out, false)
	if !errors.Is(err, errFailed) {
		t.Errorf("got %v", err)
	}
}

func TestJournalKeepsTheEnd(t *testing.T) {
	j := &journal{}
	j.printf("%s", strings.Repeat("x", 1<<20))
	j.printf("the end\n")
	if got := j.String(); len(got) > 1<<17 || !strings.HasSuffix(got, "xthe end\n") {
		t.Errorf("%d bytes, from %.10q to %q", len(got), got, got[len(got)-10:])
	}
}
