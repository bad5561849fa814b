package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/host"
	"tare/host/rootfs"
	"tare/record"
)

// machines skips a test where virtual machines do not run.
func machines(t *testing.T) {
	t.Helper()
	switch {
	case os.Geteuid() != 0:
		t.Skip("needs root: control groups and namespaces")
	case testing.Short():
		t.Skip("boots machines")
	}
	if _, ok := rootfs.Lookup("qemu-system-x86_64"); !ok {
		t.Skip("no QEMU on this host")
	}
}

const machineStudy = `study: crash
seed: 7
baseline: process
factors: {sandbox: [process, vm], default_memory: [256]}
workloads:
  rr: {kind: net, mode: rr, duration: 200ms, warmup: 100ms, responses: [rate]}
stop: {fixed: 2}
sentinel: off
`

func TestKillAtAnyMomentWithMachines(t *testing.T) {
	machines(t)
	const kills = "TARE_KILLS_MACHINES"
	crash(t, killing{study: machineStudy, kills: killsOf(t, kills, 2), events: 1, after: 6 * time.Second, whole: long(kills),
		at: func(pid int) bool { return ofRun(pid, "qemu-system-x86_64") > 0 }})
}

// ofRun finds a process that a run has started, by its program and the name of its
// sandbox, which begins with the run's; 0 if there is none.
func ofRun(runPID int, program string) int {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		dir := filepath.Dir(path)
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, []byte("TARE_SANDBOX="+host.RunID(runPID)+"-")) {
			continue
		}
		args, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if name, _, _ := strings.Cut(string(args), "\x00"); err == nil && filepath.Base(name) == program {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			return pid
		}
	}
	return 0
}

// TestMachinesDieAndTheStudyGoesOn kills the hypervisor of one trial as soon as it is
// there, and the file daemon of the next in the middle of its work: each is told, tried again,
// and nothing is left. Package vm tests how else they may die.
func TestMachinesDieAndTheStudyGoesOn(t *testing.T) {
	machines(t)
	text := `study: machines
baseline: process
factors: {sandbox: [process, vm], default_memory: [256]}
workloads:
  noop: {sleeps: 30, sleep: 100ms}
stop: {fixed: 1}
retries: 2
sentinel: off
`
	dir := t.TempDir()
	file, results := filepath.Join(dir, "machines.yaml"), filepath.Join(dir, "r")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t)
	var out bytes.Buffer
	cmd := exec.Command(bin, "run", file, "--results", results, "--wait")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	kill := []struct {
		program string
		after   time.Duration
	}{{"qemu-system-x86_64", 0}, {"virtiofsd", 2 * time.Second}}
	var err error
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-time.After(20 * time.Millisecond):
			if len(kill) == 0 {
				continue
			}
			if pid := ofRun(cmd.Process.Pid, kill[0].program); pid > 0 {
				time.Sleep(kill[0].after)
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					kill = kill[1:]
					for ofRun(cmd.Process.Pid, "qemu-system-x86_64") > 0 { // the next is another machine
						time.Sleep(20 * time.Millisecond)
					}
				}
			}
		}
	}
	if err != nil || len(kill) > 0 {
		t.Fatalf("%v; not killed: %v\n%s", err, kill, &out)
	}
	good := 0
	var reasons []string
	for _, tr := range load(t, results) {
		if tr.Status == record.OK {
			good++
		} else if tr.Failure != nil {
			reasons = append(reasons, tr.Failure.Reason)
			t.Logf("%s in %s: %s", tr.Failure.Kind, tr.Failure.Phase, tr.Failure.Reason)
		}
		for _, w := range tr.Warnings {
			if w.Code == "left-behind" {
				t.Error(w.Text)
			}
		}
	}
	all := strings.Join(reasons, "\n")
	if good != 2 || len(reasons) != 2 || !strings.Contains(all, "QEMU has ended (signal: killed)") || !strings.Contains(all, "virtiofsd for root has ended (signal: killed)") {
		t.Errorf("%d good trials; %s\n%s", good, all, &out)
	}
	for name := range snapshot(t) {
		if !before[name] && oursOf(name, cmd.Process.Pid) {
			t.Errorf("left behind: %s", name)
		}
	}
}

// TestHostWithoutQEMU has an empty file where the program is, and where setup puts a newer one, which
// only the run sees.
func TestHostWithoutQEMU(t *testing.T) {
	machines(t)
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "machines.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(machineStudy, "fixed: 2", "fixed: 1", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("unshare", "-m", "sh", "-c", `for f in "$1" /usr/local/lib/tare/qemu/usr/bin/qemu-system-x86_64; do [ ! -e "$f" ] || mount --bind /dev/null "$f"; done; shift; exec "$@"`, "-",
		qemu, bin, "run", file, "--results", filepath.Join(dir, "r"), "--wait").CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("%v\n%s", err, out)
	for _, s := range []string{"this host has no qemu-system-x86_64", "apt-get install"} {
		if !strings.Contains(string(out), s) {
			t.Errorf("it does not say %q", s)
		}
	}
	if trials := load(t, filepath.Join(dir, "r")); len(trials) == 0 {
		t.Error("the study did not go on without vm")
	}
}
