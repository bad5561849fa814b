package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/host/rootfs"
	"tare/record"
)

// misfortunes are what fault does, and what a user then reads.
var misfortunes = map[string]struct {
	phase, kind string
	says        []string
}{
	"serve": {},
	"port":  {"ready", "died", []string{"server ended", "the port is in use", "choose another port"}},
	"mute":  {"ready", "hung", []string{"server did not answer on port 7000"}},
	"lost":  {"ready", "hung", []string{"404 Not Found, not 200"}},
	"stall": {"run", "hung", []string{"client ended", "no answer within 1s"}},
	"crash": {"run", "died", []string{"server ended with exit code 3", "crashing under a client"}},
	"call":  {"run", "unsupported", []string{"system call 4000", "function not implemented", "set the program to do without"}},
	"oom":   {"run", "memory", []string{"out of memory", "64MiB", "raise the memory limit"}},
}

// TestMisfortunes: whatever goes wrong in whatever sandbox, the trial says so in a
// sentence that helps, the study goes on, and nothing is left of it.
func TestMisfortunes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	if testing.Short() {
		t.Skip("runs real sandboxes for some seconds")
	}
	kinds := []string{"process"}
	for kind, program := range map[string]string{"runc": "runc", "runsc-systrap": "runsc"} {
		if _, ok := rootfs.Lookup(program); ok {
			kinds = append(kinds, kind)
		}
	}
	hung, others := "", "  missing: {kind: fault, do: missing}\n"
	want := 0
	for do, m := range misfortunes {
		load := fmt.Sprintf("  %s: {kind: fault, do: %s, after: 50ms}\n", do, do)
		if m.kind == "hung" {
			hung += load
			want++
		} else {
			others += load
			want += len(kinds)
		}
	}
	// What waits for the timeout does so in one kind: the harness bounds it alike in all. The others have time
	// to start on a busy host.
	trials, _ := misfortune(t, "process", hung, "4s")
	more, out := misfortune(t, strings.Join(kinds, ", "), others, "30s")
	if !strings.Contains(out, "tare-no-such-program is not installed") {
		t.Errorf("the missing program is not told:\n%s", out)
	}
	if trials = append(trials, more...); len(trials) != want {
		t.Errorf("%d trials, want %d", len(trials), want)
	}
	for i := range trials {
		judgeMisfortune(t, &trials[i])
	}
}

// misfortune runs these workloads in these sandboxes, and returns the trials and what tare said. Trials fail, and
// nothing may be left of them.
func misfortune(t *testing.T, kinds, workloads, timeout string) ([]record.Trial, string) {
	t.Helper()
	text := fmt.Sprintf("study: misfortunes\nbaseline: process\nfactors: {sandbox: [%s], memory-limit: [64MiB]}\nworkloads:\n%sstop: {fixed: 1}\nretries: 0\ntimeout: %s\nsentinel: off\n", kinds, workloads, timeout)
	dir := t.TempDir()
	file, results := filepath.Join(dir, "misfortunes.yaml"), filepath.Join(dir, "r")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t)
	cmd := exec.Command(bin, "run", file, "--results", results, "--wait")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitTrials {
		t.Fatalf("%v\n%s", err, out)
	}
	for name := range snapshot(t) {
		if !before[name] && oursOf(name, cmd.Process.Pid) {
			t.Errorf("left behind: %s", name)
		}
	}
	if left := inMemory(cmd.Process.Pid); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return load(t, results), string(out)
}

func judgeMisfortune(t *testing.T, trial *record.Trial) {
	t.Helper()
	do, _ := trial.Cell.Get("workload")
	kind, _ := trial.Cell.Get("sandbox")
	want, f := misfortunes[do], trial.Failure
	if f == nil {
		f = &record.Failure{}
	}
	t.Logf("%s in %s: %s in %s: %s", do, kind, f.Kind, f.Phase, f.Reason)
	// Before the kernel kills for memory, it drops the pages of gVisor's own program, and reads them
	// again, for as long as that frees any. This can take longer than the trial may.
	if do == "oom" && kind == "runsc-systrap" && f.Kind == "hung" {
		want.kind, want.says = "hung", []string{"its memory was at the limit of 64MiB", "raise the limit"}
	}
	if f.Kind != want.kind || f.Phase != want.phase {
		t.Errorf("%s in %s: kind %q in phase %q, want %q in %q\n%s", do, kind, f.Kind, f.Phase, want.kind, want.phase, f.Tail)
	}
	for _, s := range want.says {
		if !strings.Contains(f.Reason, s) {
			t.Errorf("%s in %s: the reason %q does not say %q", do, kind, f.Reason, s)
		}
	}
	for _, w := range trial.Warnings {
		if w.Code == "left-behind" {
			t.Errorf("%s in %s: %s", do, kind, w.Text)
		}
	}
}
