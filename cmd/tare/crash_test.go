package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/host"
	"tare/host/rootfs"
	"tare/host/state"
	"tare/host/state/statetest"
	"tare/record"
	"tare/store"
)

// The study on fake has two short trials for each kill. The real one has both ends,
// containers and gVisor. The third has what the suite's workloads need:
// probed servers, files laid out before, writable roots, data in memory, saved
// sandboxes.
const (
	fakeStudy = `study: crash
baseline: fake
seed: 7
factors: {sandbox: [fake]}
workloads:
  a: {kind: noop, sleeps: [1, 2, 3, 4, 5, 6]}
  b: {kind: noop, sleeps: 9}
stop: {fixed: %d}
collect: {rate: 100Hz}
`
	realStudy = `study: crash
seed: 7
factors: {sandbox: [process, runc, crun, runsc-systrap]}
workloads:
  rr: {kind: net, mode: rr, duration: 200ms, warmup: 100ms, responses: [rate]}
  startup: {kind: startup, repeats: 1, responses: [total]}
stop: {fixed: %d}
sentinel: {every: 2} # by count, so that two runs have one order; too few of them to see a change
`
	interruptStudy = `study: interrupted
seed: 7
baseline: runsc-systrap
factors: {sandbox: [runsc-systrap]}
workloads:
  startup: {kind: startup, repeats: 1, responses: [total]}
  idle: {kind: noop, sleeps: 2}
stop: {fixed: 20}
sentinel: off
`
	suiteStudy = `study: crash
seed: 7
factors: {sandbox: [process, runc, runsc-systrap]}
workloads:
  served: {kind: fault, do: serve}
  saved: {kind: checkpoint, repeats: 1}
  root: {kind: fio, target: root, cache: dropped, size: 16MiB, duration: 300ms, warmup: 0s, responses: [throughput]}
  memory: {kind: fio, target: bind, size: 16MiB, duration: 300ms, warmup: 0s, responses: [throughput]}
stop: {fixed: 1}
sentinel: off
`
)

// How many kills there are, if not the few of each test run: `make kills` sets them.
const (
	fakeKills = "TARE_KILLS_FAKE"
	realKills = "TARE_KILLS_REAL"
)

// killsOf is the number in the variable, or few.
func killsOf(t *testing.T, variable string, few int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is not a number of kills", variable, text)
	}
	if n == 0 {
		t.Skipf("%s is 0", variable)
	}
	return n
}

func TestKillAtAnyMomentOnFake(t *testing.T) {
	n := killsOf(t, fakeKills, 50)
	crash(t, fmt.Sprintf(fakeStudy, max(25, n/2)), n, 30*time.Millisecond, 500*time.Millisecond)
}

func TestKillAtAnyMomentForReal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	n := killsOf(t, realKills, 5)
	crash(t, fmt.Sprintf(realStudy, max(3, n/4)), n, 500*time.Millisecond, 5*time.Second)
}

// TestInterruptLeavesNothing sends one SIGINT at random moments: the run ends by itself, and
// leaves nothing on the host, without `tare clean`.
func TestInterruptLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	if _, ok := rootfs.Lookup("runsc"); !ok {
		t.Skip("needs runsc, which leaves the most when it is interrupted; `make setup` builds it")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "study.yaml")
	if err := os.WriteFile(file, []byte(interruptStudy), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("moments from seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range killsOf(t, realKills, 4) {
		before := snapshot(t)
		out, pid, err := endAt(t, syscall.SIGINT, time.Duration(r.Int64N(int64(3*time.Second))),
			"run", file, "-o", filepath.Join(dir, strconv.Itoa(n)), "--wait")
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != exitInterrupted) {
			t.Fatalf("%v\n%s", err, out)
		}
		for name := range snapshot(t) {
			// Files of other runs, which other tests killed, do not count.
			other := strings.HasPrefix(name, "file ") && !strings.Contains(name, host.RunID(pid)) && !strings.Contains(name, "/oci/runsc-systrap")
			if !before[name] && !other && oursOf(name, pid) {
				t.Errorf("run %s left behind: %s; it said\n%s", host.RunID(pid), name, out)
			}
		}
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, "left behind") || strings.Contains(line, "cannot remove") {
				t.Logf("interrupt %d: %s", n, line)
			}
		}
	}
}

// endAt runs the binary and sends it a signal some time after it holds the host.
func endAt(t *testing.T, sig syscall.Signal, after time.Duration, args ...string) (out string, pid int, err error) {
	t.Helper()
	cmd := exec.Command(bin, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid = cmd.Process.Pid
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// The time starts when it holds the host: others may hold it first.
	for held := false; !held && len(ended) == 0; time.Sleep(5 * time.Millisecond) {
		held = holds(pid)
	}
	time.Sleep(after)
	_ = cmd.Process.Signal(sig)
	err = <-ended
	return said.String(), pid, err
}

func TestKillAtAnyMomentOfTheSuite(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	if testing.Short() {
		t.Skip("takes a minute")
	}
	for _, pid := range crash(t, suiteStudy, 6, 300*time.Millisecond, 6*time.Second) {
		if left := inMemory(pid); len(left) > 0 {
			t.Errorf("`tare clean` left %v", left)
		}
	}
}

// inMemory lists a run's directories on memory file systems; others have theirs beside it.
func inMemory(pid int) (left []string) {
	for _, base := range []string{"/dev/shm", "/run"} {
		found, _ := filepath.Glob(base + "/tare-" + host.RunID(pid) + "-*")
		left = append(left, found...)
	}
	return left
}

// mostLater bounds the moments that are added while no trial has finished, each twice as late as
// the one before.
const mostLater = 4

// crash runs a study, kills it with SIGKILL at random moments, and holds that
// every trial announced as finished is stored, that the study resumes to the
// order it would have had, and that `tare clean` leaves the host as it was. It returns
// the killed processes.
func crash(t *testing.T, text string, kills int, shortest, longest time.Duration) (pids []int) {
	dir := t.TempDir()
	file := filepath.Join(dir, "study.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("moments from seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))

	before := snapshot(t)
	results := filepath.Join(dir, "results")
	announced := map[int]bool{}
	late := 0 // runs that had ended before their moment
	// On a busy host the checks before the first trial may outlast all moments: then later ones follow.
	for n := 0; n < kills || len(announced) == 0 && n < kills+mostLater; n++ {
		if n >= kills {
			shortest, longest = longest, 2*longest
		}
		out, pid, err := endAt(t, syscall.SIGKILL, shortest+time.Duration(r.Int64N(int64(longest-shortest))),
			"run", file, "-o", results, "--json", "--wait")
		pids = append(pids, pid)
		if err == nil {
			late++
		}
		for _, seq := range finished(out) {
			announced[seq] = true
		}
		if !store.Exists(results) {
			continue
		}
		kept := map[int]bool{}
		for _, tr := range load(t, results) {
			kept[tr.Seq] = true
		}
		for seq := range announced {
			if !kept[seq] {
				t.Fatalf("trial %d was announced as finished and is lost", seq)
			}
		}
	}
	t.Logf("%d runs, %d of them over before they were killed; %d trials announced, none lost", len(pids), late, len(announced))
	clean(t, pids...)
	for name := range snapshot(t) {
		if !before[name] && oursOf(name, pids...) {
			t.Errorf("`tare clean` left %s", name)
		}
	}
	if len(announced) == 0 {
		t.Error("no trial ever finished: the moments are too early to show anything")
	}

	tare(t, "run", file, "-o", results, "--wait")
	whole := filepath.Join(dir, "whole")
	tare(t, "run", file, "-o", whole, "--wait")
	if got, want := order(load(t, results)), order(load(t, whole)); !slices.Equal(got, want) {
		t.Errorf("the resumed study ran\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return pids
}

// oursOf tells whether a thing of a snapshot may be of runs with these processes.
func oursOf(thing string, pids ...int) bool {
	var ids []string
	for _, pid := range pids {
		ids = append(ids, host.RunID(pid)+"-")
	}
	return statetest.Ours(thing, ids...)
}

// holds tells whether the process has the host.
func holds(pid int) bool {
	var holder state.Holder
	raw, err := os.ReadFile(filepath.Join(host.DefaultDirs().Run, "lock"))
	return err == nil && json.Unmarshal(raw, &holder) == nil && holder.Pid == pid
}

// finished lists the trials whose end was announced.
func finished(out string) []int {
	var seqs []int
	lines := bufio.NewScanner(strings.NewReader(out))
	for lines.Scan() {
		var e struct {
			Event string
			Trial int
		}
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Event == "end" {
			seqs = append(seqs, e.Trial)
		}
	}
	return seqs
}

func load(t *testing.T, dir string) []record.Trial {
	t.Helper()
	db, err := store.OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	trials, err := db.Trials()
	if err != nil {
		t.Fatal(err)
	}
	return trials
}

// order is the good trials as the plan asked for them.
func order(trials []record.Trial) []string {
	slices.SortFunc(trials, func(a, b record.Trial) int { return cmp.Compare(a.Seq, b.Seq) })
	var out []string
	for _, tr := range trials {
		if tr.Status == record.OK {
			out = append(out, tr.Cell.Key())
		}
	}
	return out
}

// tare runs the binary to its end, again while another test holds the host.
func tare(t *testing.T, args ...string) string {
	t.Helper()
	for {
		out, err := exec.Command(bin, args...).CombinedOutput()
		if err == nil {
			return string(out)
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitHeld {
			t.Fatalf("tare %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// clean is `tare clean`; after it no directory of these runs may exist.
func clean(t *testing.T, pids ...int) {
	t.Helper()
	tare(t, "clean")
	d := host.DefaultDirs()
	for _, pid := range pids {
		for _, base := range []string{d.Run, d.Data} {
			if left, _ := filepath.Glob(filepath.Join(base, host.RunID(pid)+"*")); len(left) > 0 {
				t.Errorf("`tare clean` left %v", left)
			}
		}
	}
}

// snapshot is taken while nobody else uses the host.
func snapshot(t *testing.T) map[string]bool {
	t.Helper()
	var out map[string]bool
	t.Run("snapshot", func(t *testing.T) {
		statetest.HostLock(t)
		out = statetest.Snapshot(t)
	})
	return out
}
