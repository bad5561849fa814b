package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/analyse/cause"
	"tare/analyse/stat"
)

// TestRelieved makes causes on purpose in real sandboxes, has each relieved by `tare advise
// --verify`, and wants the improvement to be seen. The causes are strong, so that a host
// that others use shows them too.
func TestRelieved(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	if testing.Short() {
		t.Skip("runs real sandboxes for a minute")
	}
	for _, c := range []struct {
		cause cause.Name
		least float64 // times as good as before
		study string
		part  bool             // the setting relieves only a part: of the cost, more than half may stay
		needs func(*testing.T) // skips the test on hosts that cannot run it
	}{
		{cause: cause.Quota, least: 1.5, study: `compare: cpu-limit
baseline: none
factors: {sandbox: [runc], cpu-limit: [none, "0.15"]}
workloads:
  loop: {kind: cpu, threads: 1, duration: 1s, warmup: 0s}`},
		{cause: cause.Link, least: 2, study: `compare: link-rate
baseline: none
factors: {sandbox: [runc], link-rate: [none, 10Mbit]} # a busy host has more than twice that too
workloads:
  stream: {kind: net, mode: stream, size: 64KiB, connections: 4, duration: 1s, warmup: 200ms}`},
		{cause: cause.Path, least: 2, study: `compare: link-delay
baseline: none
factors: {sandbox: [runc], link-delay: [none, 2ms]}
workloads:
  rr: {kind: net, mode: rr, duration: 1s, warmup: 200ms}`},
		{cause: cause.Helper, least: 1.2, needs: machines, study: `compare: disk
baseline: raw
factors: {sandbox: [vm], disk: [raw, luks], io_threads: [1], rootfs: [block], default_memory: [256]}
workloads:
  read: {kind: fio, rw: randread, bs: 1MiB, size: 64MiB, engine: libaio, iodepth: 16, cache: direct, duration: 4s, warmup: 500ms}`},
		{cause: cause.Interception, least: 1.2, part: true, study: `baseline: process
factors: {sandbox: [process, runsc-ptrace]} # relieved by systrap, which intercepts too
workloads:
  calls: {kind: syscall, call: getpid, duration: 1s, warmup: 200ms}
calls: on`},
	} {
		t.Run(string(c.cause), func(t *testing.T) {
			if c.needs != nil {
				c.needs(t)
			}
			const tries = 3
			for try := 1; ; try++ {
				wrong, others := relieve(t, c.study, c.cause, c.least, c.part)
				switch {
				case wrong == "":
					return
				case try < tries:
					t.Logf("once more: %s", wrong)
					calm(t)
				case others > otherLoad:
					t.Skipf("%s: others used %.1f cores of this host meanwhile", wrong, others)
				default:
					t.Fatalf("in %d tries, the last time: %s", tries, wrong)
				}
			}
		})
	}
}

// relieve runs a study and has its causes relieved. wrong says what is not as it should be. others
// is the CPU that others used in half of the trials at least, in cores, if no cause was named that a
// setting relieves: those who have the host are the cause then, or hide it. A wrong outcome of a
// cause is wrong on a busy host too. Where the setting relieves a part, the whole interval of the
// gain must be above 1.
func relieve(t *testing.T, study string, made cause.Name, least float64, part bool) (wrong string, others float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	dir := t.TempDir()
	file, results := filepath.Join(dir, "relief.yaml"), filepath.Join(dir, "r")
	text := "study: relief\nseed: 1\n" + study + "\nstop: {fixed: 3}\nsentinel: off\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(ctx, bin, "run", file, "--results", results, "--wait")
	if out, err := run.CombinedOutput(); err != nil {
		if run.ProcessState != nil && run.ProcessState.ExitCode() == exitHost {
			t.Skipf("this host can run nothing of it: %s", out)
		}
		t.Fatalf("tare run: %v\n%s", err, out)
	}
	var said strings.Builder
	cmd := exec.CommandContext(ctx, bin, "advise", results, "--verify", "--json", "--wait")
	cmd.Stderr = &said
	out, err := cmd.Output()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == exitHost || !strings.Contains(string(out), `"outcome"`) {
		return fmt.Sprintf("no cause is named that a setting relieves: %v\n%s\n%s", err, out, &said), usualOthers(t, results)
	}
	if err != nil {
		t.Fatalf("tare advise --verify: %v\n%s\n%s", err, out, &said)
	}
	var doc struct {
		Verified []verification `json:"verified"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	seen := ""
	for _, v := range doc.Verified {
		line := fmt.Sprintf("%s, %s: %s %s", v.Cause, v.moves(), v.Outcome, v.Why)
		if v.Gain != nil {
			line += fmt.Sprintf(", %.3g (%.3g to %.3g) times as good", v.Gain.Ratio, v.Gain.Lo, v.Gain.Hi)
		}
		t.Log(line)
		seen += line + "\n"
		if v.Cause == string(made) && v.Gain != nil && v.Gain.Ratio >= least &&
			(v.Outcome == outcomeConfirmed || part && v.Gain.HasInterval() && v.Gain.Lo > 1) {
			return "", 0
		}
	}
	return fmt.Sprintf("%s is not confirmed with a gain of %g at least:\n%s\n%s", made, least, seen, &said), 0
}

// usualOthers is the CPU that others used during the middle trial, in cores.
func usualOthers(t *testing.T, results string) float64 {
	t.Helper()
	var all []float64
	for _, tr := range load(t, results) {
		all = append(all, elsewhere(&tr))
	}
	return stat.Median(all)
}

// TestRelievedHost relieves a busy host. No setting does that, so the test ends the programs
// that contend for the processors. The same cell then does more work.
func TestRelievedHost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	if testing.Short() {
		t.Skip("runs real sandboxes for some seconds")
	}
	m := madeCause{study: `compare: sandbox
baseline: runc
factors: {sandbox: [runc]}
workloads:
  loop: {kind: cpu, threads: 2, duration: 1s, warmup: 0s, responses: [events]}`}
	// A trial's control group has the largest weight, so the contenders do not take all that
	// they want. Others on the host may begin to work when the contenders end.
	const tries = 4
	var a, b float64
	for range tries {
		events := map[string]float64{}
		for _, when := range []string{"contended", "relieved"} {
			t.Run(when, func(t *testing.T) {
				if when == "contended" {
					contend(t) // until this subtest ends
				}
				got := m.once(t)
				if len(got.found) == 0 {
					t.Skipf("this host ran nothing of it: %+v", got.skips)
				}
				events[when] = got.values["events"]
			})
		}
		if a, b = events["contended"], events["relieved"]; b >= 1.1*a {
			return
		}
	}
	t.Errorf("in %d tries, the last time: %g events a second beside contenders, %g without: want 1.1 times as many", tries, a, b)
}
