package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/host/state/statetest"
)

// alone is an ordinary user whose processes no other test's `tare clean` ends.
const alone = "65533"

// withoutRoot returns tare as that user runs it, with a new home.
func withoutRoot(t *testing.T) (home string, tare func(args ...string) *exec.Cmd) {
	t.Helper()
	home = t.TempDir()
	if err := os.Chmod(filepath.Dir(home), 0o755); err != nil { // above t.TempDir is one that only root can read
		t.Fatal(err)
	}
	if out, err := exec.Command("chown", alone+":"+alone, home).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return home, func(args ...string) *exec.Cmd {
		as := []string{"--reuid", alone, "--regid", alone, "--clear-groups", bin}
		cmd := exec.Command("setpriv", append(as, args...)...)
		cmd.Dir = home
		cmd.Env = append(os.Environ(), append(ownState(home), "HOME="+home)...)
		return cmd
	}
}

// TestWithoutRoot: what an ordinary user can have is measured, and what is missing is told in a
// line; a killed run leaves nothing that the user's `tare clean` does not remove.
func TestWithoutRoot(t *testing.T) {
	statetest.HostLock(t)
	statetest.Unchanged(t)
	home, tare := withoutRoot(t)
	if out, err := tare("doctor").CombinedOutput(); err != nil {
		t.Skipf("no user namespaces here: %v\n%s", err, out)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	write("long.yaml", "study: long\nbaseline: process\ncompare: sandbox\nfactors: {sandbox: [process, runc]}\nworkloads:\n  noop: {sleeps: 1000, sleep: 100ms}\nstop: {fixed: 1}\n")
	started := func(pid int, _ string) bool { return ofRun(pid, "tare") > 0 }
	killed := func() {
		t.Helper()
		if said, _, err := endAt(t, tare("run", "long.yaml", "-o", "long"), syscall.SIGKILL, started, 100*time.Millisecond); err == nil {
			t.Fatalf("the run ended before it was killed:\n%s", said)
		}
	}
	killed()

	write("short.yaml", `study: short
baseline: process
compare: sandbox
factors: {sandbox: [process, runc, crun, runsc-systrap], cpu-limit: [none, 1]}
workloads:
  noop: {sleeps: 1}
  net: {duration: 500ms}
stop: {fixed: 1}
`)
	out, err := tare("run", "short.yaml", "-o", "short").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "which an earlier run left behind") || strings.Contains(string(out), "which this run left behind") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	const skipped = "without root a sandbox has no limits of CPU, memory or processors"
	for _, k := range []string{"process", "runc", "crun", "runsc-systrap"} {
		said := string(out)
		if !strings.Contains(said, "tare: "+k+": cgroup: "+skipped) && !strings.Contains(said, "tare: "+k+": this host has no program") {
			t.Errorf("%s does not say in a line what is missing", k)
		}
	}
	full, err := tare("report", "short", "--full").CombinedOutput()
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(full)), " "), skipped) {
		t.Errorf("the report does not say why limits are missing: %v\n%s", err, full)
	}

	weighed, err := tare("weigh", "--budget", "2s", "-o", "weighed", "--", "true").CombinedOutput()
	if err != nil || !strings.Contains(string(weighed), "\nprocess ") || strings.Count(string(weighed), "without the collector cgroup") != 1 {
		t.Errorf("%v\n%s", err, weighed)
	}

	killed()
	if out, err := tare("clean").CombinedOutput(); err != nil || !strings.Contains(string(out), "removed directory") {
		t.Errorf("%v\n%s", err, out)
	}
	left, err := exec.Command("find", filepath.Join(home, ".state"), "-mindepth", "3", "!", "-name", "bridge.lock").Output()
	if err != nil || len(left) > 0 {
		t.Errorf("left: %s, %v", left, err)
	}
}
