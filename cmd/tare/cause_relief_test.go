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

// relief is a cause that is made and relieved.
type relief struct {
	cause cause.Name
	least float64 // times as good as before
	study string
	wants []wanted
	part  bool             // the setting relieves only a part: of the cost, more than half may stay
	needs func(*testing.T) // skips the test on hosts that cannot run it
}

// reliefs are causes, a study that makes each, what its findings say of cells, and what the
// relief gains. The causes are strong, so that a host that others use shows them too.
var reliefs = []relief{
	{cause: cause.Quota, least: 1.5, study: `compare: cpu-limit
baseline: none
factors: {sandbox: [runc], cpu-limit: [none, "0.15"]}
workloads:
  loop: {kind: cpu, threads: 1, duration: 1s, warmup: 0s}`,
		wants: []wanted{
			{levels: map[string]string{"cpu-limit": "0.15"}, cause: cause.Quota},
			{levels: map[string]string{"cpu-limit": "none"}, cause: cause.GuestOne},
		}},
	{cause: cause.Link, least: 2, study: `compare: link-rate
baseline: none
factors: {sandbox: [runc], link-rate: [none, 10Mbit]} # a busy host has more than twice that too
workloads:
  stream: {kind: net, mode: stream, size: 64KiB, connections: 4, duration: 1s, warmup: 200ms}`,
		wants: []wanted{{levels: map[string]string{"link-rate": "10Mbit"}, cause: cause.Link}}},
	{cause: cause.Path, least: 2, study: `compare: link-delay
baseline: none
factors: {sandbox: [runc], link-delay: [none, 2ms]}
workloads:
  rr: {kind: net, mode: rr, size: [16B, 1KiB, 4KiB], duration: 500ms, warmup: 100ms}`,
		wants: []wanted{ // 2 ms more each way, whatever the size
			{levels: map[string]string{"link-delay": "2ms", "size": "16B"}, cause: cause.Path, check: addsFour},
			{levels: map[string]string{"link-delay": "2ms", "size": "4KiB"}, cause: cause.Path, check: addsFour},
		}},
	// A disk that QEMU encrypts, read by large requests: the thread that serves it has most of the work.
	// fio takes half a second to start in an emulated machine.
	{cause: cause.Helper, least: 1.2, needs: machines, study: `compare: disk
baseline: raw
factors: {sandbox: [vm], disk: [raw, luks], io_threads: [1], rootfs: [block], default_memory: [256]}
workloads:
  read: {kind: fio, rw: randread, bs: 1MiB, size: 64MiB, engine: libaio, iodepth: 16, cache: direct, duration: 4s, warmup: 500ms}`,
		wants: []wanted{{levels: map[string]string{"disk": "luks"}, cause: cause.Helper, role: "iothread"}}},
	// Two busy threads on one processor of a machine; on two they do twice as much.
	{cause: cause.Guest, least: 1.3, needs: machines, study: `compare: default_vcpus
baseline: "2"
factors: {sandbox: [vm], default_vcpus: [1, 2], default_memory: [256]}
workloads:
  many: {kind: cpu, threads: 2, max-prime: 2000, duration: 1s, warmup: 1s, responses: [events]}`,
		wants: []wanted{{levels: map[string]string{"default_vcpus": "1"}, cause: cause.Guest}}},
	// Writes that wait until the disk has them, in a file system in a file, beside writes past the page cache.
	{cause: cause.Fsync, least: 1.5, study: `compare: fsync
baseline: "0"
factors: {sandbox: [process]}
workloads:
  write: {kind: fio, rw: randwrite, bs: 4KiB, size: 64MiB, fsync: [0, 1], cache: direct, target: image, duration: 1s, warmup: 300ms, responses: [iops]}`,
		wants: []wanted{{levels: map[string]string{"fsync": "1"}, cause: cause.Fsync}}},
	// One request in flight, on a disk that does far more with four.
	{cause: cause.Depth, least: 1.5, study: `compare: iodepth
baseline: "4"
factors: {sandbox: [process]}
workloads:
  read: {kind: fio, rw: randread, bs: 4KiB, size: 256MiB, engine: libaio, iodepth: [1, 4], cache: direct, duration: 1s, warmup: 300ms, responses: [iops]}`,
		wants: []wanted{{levels: map[string]string{"iodepth": "1"}, cause: cause.Depth}}},
	// A loop of system calls that each stop the program twice.
	{cause: cause.Interception, least: 1.2, part: true, study: `baseline: process
factors: {sandbox: [process, runsc-ptrace]} # relieved by systrap, which intercepts too
workloads:
  calls: {kind: syscall, call: getpid, duration: 1s, warmup: 200ms}
calls: on`,
		wants: []wanted{{levels: map[string]string{"sandbox": "runsc-ptrace"}, cause: cause.Interception}}},
}

// TestRelieved makes causes on purpose in real sandboxes, and wants them named. It has each
// relieved by `tare advise --verify`, and wants the improvement to be seen.
func TestRelieved(t *testing.T) {
	realCauses(t)
	for _, c := range reliefs {
		t.Run(string(c.cause), func(t *testing.T) {
			if c.needs != nil {
				c.needs(t)
			}
			const tries = 3
			var shows *made
			for try := 1; ; try++ {
				var wrong, busy string
				wrong, busy, shows = c.attempt(t, shows)
				switch {
				case wrong+busy == "":
					return
				case try < tries:
					t.Logf("once more: %s%s", wrong, busy)
					calm(t)
				case wrong != "":
					t.Fatalf("in %d tries, the last time: %s", tries, wrong)
				default:
					t.Skip(busy)
				}
			}
		})
	}
}

// attempt makes the cause, unless got is a study that shows it, and has it relieved. shows is the
// study if only the relief is not as it should be: the next attempt needs no other one.
func (c *relief) attempt(t *testing.T, got *made) (wrong, busy string, shows *made) {
	t.Helper()
	if got == nil {
		got = (&madeCause{study: c.study, blocks: stat.MinN}).once(t) // advice needs intervals
		if wrong, busy = judged(t, got, c.wants); wrong != "" {
			return wrong, busy, nil
		}
	}
	text, measured, excused := relieve(t, got.results, c.cause, c.least, c.part)
	switch {
	case text == "":
		return "", busy, nil
	case excused || undecided(t, got, c.wants):
		return "", text, nil
	case measured && busy == "":
		shows = got
	}
	return text, busy, shows
}

// judged says which findings are not as they should be, and which of them are excused because
// others had the host.
func judged(t *testing.T, got *made, wants []wanted) (wrong, busy string) {
	t.Helper()
	for _, w := range wants {
		switch text, excused := w.judge(t, got); {
		case text == "":
		case excused:
			busy += text + "\n"
		default:
			wrong += text + "\n"
		}
	}
	return wrong, busy
}

// undecided reports whether noise on the host hid the cost of the cell with the cause. Tare then proposes no setting for the cell.
func undecided(t *testing.T, got *made, wants []wanted) bool {
	t.Helper()
	for _, w := range wants {
		if f := w.find(t, got); !f.Baseline && f.Undecided {
			t.Logf("%s: the cost is not decided", f.Cell)
			return true
		}
	}
	return false
}

// relieve has the causes of a study relieved. wrong says what is not as it should be; measured, that
// the cause was named and its relief measured. It is excused if no cause was named that a setting relieves, and others used otherLoad in half of
// the trials at least: they are the cause then, or hide it. A wrong outcome of a cause is wrong
// on a busy host too. Where the setting relieves a part, the whole interval of the gain must be
// above 1.
func relieve(t *testing.T, results string, made cause.Name, least float64, part bool) (wrong string, measured, excused bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	forgetReliefs(t, results)
	var said strings.Builder
	cmd := exec.CommandContext(ctx, bin, "advise", results, "--verify", "--json", "--wait")
	cmd.Stderr = &said
	out, err := cmd.Output()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == exitHost || !strings.Contains(string(out), `"outcome"`) {
		others := usualOthers(t, results)
		return fmt.Sprintf("no cause is named that a setting relieves (others used %.1f cores): %v\n%s\n%s", others, err, out, &said), false, others > otherLoad
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
		measured = measured || v.Cause == string(made) && v.Gain != nil
		if v.Cause == string(made) && v.Gain != nil && v.Gain.Ratio >= least &&
			(v.Outcome == outcomeConfirmed || part && v.Gain.HasInterval() && v.Gain.Lo > 1) {
			return "", true, false
		}
	}
	return fmt.Sprintf("%s is not confirmed with a gain of %g at least:\n%s\n%s", made, least, seen, &said), measured, false
}

// forgetReliefs removes what was measured of reliefs before: a complete one is not measured again.
func forgetReliefs(t *testing.T, results string) {
	t.Helper()
	old, err := filepath.Glob(results + "-verify-*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
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

// TestRelievedIOLimit: a container whose control group may read 100 times a second does more once
// it may read as it likes. No factor of a study sets that limit, so the test does.
func TestRelievedIOLimit(t *testing.T) {
	realCauses(t)
	m := madeCause{study: `baseline: process
factors: {sandbox: [process, runc]}
workloads:
  read: {kind: fio, rw: randread, bs: 4KiB, size: 16MiB, engine: libaio, iodepth: 4, cache: direct, duration: 2s, warmup: 500ms, responses: [iops]}`}
	iops := map[string]float64{}
	for _, when := range []string{"limited", "relieved"} {
		t.Run(when, func(t *testing.T) {
			if when == "limited" {
				limitReads(t, 100) // until this subtest ends
			}
			got := m.once(t)
			f := (&wanted{levels: map[string]string{"sandbox": "runc"}}).find(t, got)
			if (f.Cause == cause.IOLimit) != (when == "limited") {
				t.Errorf("%s: %s", f.Cause, f.Text)
			}
			for _, tr := range load(t, got.results) {
				if box, _ := tr.Cell.Get("sandbox"); box == "runc" {
					iops[when], _ = tr.Sample("iops")
				}
			}
		})
	}
	if !t.Failed() && !t.Skipped() && iops["relieved"] < 3*iops["limited"] {
		t.Errorf("%g reads a second with the limit, %g without: want three times as many", iops["limited"], iops["relieved"])
	}
}

// TestRelievedHost: others have work for every processor three times over, and the host is the
// cause. No setting relieves that, so the test ends the programs that contend for the processors.
// The same cell then does more work.
func TestRelievedHost(t *testing.T) {
	realCauses(t)
	m := madeCause{study: `compare: sandbox
baseline: process
factors: {sandbox: [process, runc]}
workloads:
  loop: {kind: cpu, threads: 2, duration: 1s, warmup: 1s, responses: [events]}`}
	wants := []wanted{
		{levels: map[string]string{"sandbox": "process"}, cause: cause.Host},
		{levels: map[string]string{"sandbox": "runc"}, cause: cause.Host, or: cause.Untold}, // the host is as full natively
	}
	// A trial's control group has the largest weight, so the contenders do not take all that
	// they want. Others on the host may begin to work when the contenders end.
	const tries = 4
	var a, b float64
	var wrong, busy string
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
				if when == "contended" {
					wrong, busy = judged(t, got, wants)
				}
				for _, v := range got.events {
					events[when] += v
				}
			})
		}
		a, b = events["contended"], events["relieved"]
		if wrong+busy == "" && b >= 1.1*a {
			return
		}
		t.Logf("%g events a second beside contenders, %g without; %s%s", a, b, wrong, busy)
	}
	if wrong == "" && b >= 1.1*a {
		t.Skip(busy)
	}
	t.Errorf("in %d tries, the last time: %g events a second beside contenders, %g without: want 1.1 times as many; %s", tries, a, b, wrong)
}
