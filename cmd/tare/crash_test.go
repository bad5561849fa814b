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
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/host"
	"tare/host/rootfs"
	"tare/host/state/statetest"
	"tare/record"
	"tare/site/claim"
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
	n := killsOf(t, fakeKills, 20)
	crash(t, killing{study: fmt.Sprintf(fakeStudy, max(15, n/2)), kills: n, events: 12, after: 100 * time.Millisecond, by: ordinary(t), whole: true})
}

func TestKillAtAnyMomentForReal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	n := killsOf(t, realKills, 3)
	crash(t, killing{study: fmt.Sprintf(realStudy, max(1, n/4)), kills: n, events: 6, after: 2 * time.Second, whole: long(realKills)})
}

// long tells whether `make kills` runs the test: it then also runs the study once without a
// kill. In each test run the study on fake alone does so.
func long(variable string) bool { return os.Getenv(variable) != "" }

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
	for n := range killsOf(t, realKills, 2) {
		before := snapshot(t)
		// The time starts when it holds the host: others may hold it first.
		out, pid, err := endAt(t, tareBy{}.command("run", file, "-o", filepath.Join(dir, strconv.Itoa(n)), "--wait"), syscall.SIGINT,
			func(pid int, _ string) bool { return holds(pid) }, time.Duration(r.Int64N(int64(3*time.Second))))
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

// endAt runs a command and sends it a signal some time after it is as it shall be by its process
// and what it printed.
func endAt(t *testing.T, cmd *exec.Cmd, sig syscall.Signal, is func(pid int, out string) bool, after time.Duration) (out string, pid int, err error) {
	t.Helper()
	var said locked
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid = cmd.Process.Pid
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for len(ended) == 0 && !is(pid, said.String()) {
		time.Sleep(5 * time.Millisecond)
	}
	select {
	case err = <-ended:
	case <-time.After(after):
		_ = cmd.Process.Signal(sig)
		err = <-ended
	}
	return said.String(), pid, err
}

// locked is a buffer that is read while it is written.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestKillAtAnyMomentOfTheSuite(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	if testing.Short() {
		t.Skip("takes a minute")
	}
	n := killsOf(t, realKills, 3)
	for _, pid := range crash(t, killing{study: suiteStudy, kills: n, events: 10, after: 2 * time.Second, whole: long(realKills)}) {
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

// killing is a study that is killed, and when.
type killing struct {
	study  string
	kills  int
	events int                // a kill comes after so many at most, and not before the first
	after  time.Duration      // at most so long after the event
	at     func(pid int) bool // instead of events: what a kill comes after
	by     tareBy
	whole  bool // the study is resumed, and compared with one that ran without a kill
}

// crash runs a study, kills it with SIGKILL at random moments, and holds that
// every trial announced as finished is stored, that the study resumes to the
// order it would have had, and that `tare clean` leaves the host as it was. It returns
// the killed processes. The moments are counted in what the run has announced, so a busy host
// gets the same ones.
func crash(t *testing.T, k killing) (pids []int) {
	dir := t.TempDir()
	file := filepath.Join(dir, "study.yaml")
	if err := os.WriteFile(file, []byte(k.study), 0o644); err != nil {
		t.Fatal(err)
	}
	k.by.own(t, dir)
	seed := rand.Uint64()
	t.Logf("moments from seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))

	before := k.by.snapshot(t)
	results := filepath.Join(dir, "results")
	announced := map[int]bool{}
	late := 0 // runs that had ended before their moment
	for n := range k.kills {
		events := 1 + r.IntN(k.events)
		if n == k.kills-1 && len(announced) == 0 {
			events = max(events, 3) // of a trial's two, whatever the order
		}
		is := func(_ int, out string) bool { return strings.Count(out, `"event":`) >= events }
		if k.at != nil {
			is = func(pid int, _ string) bool { return k.at(pid) }
		}
		out, pid, err := endAt(t, k.by.command("run", file, "-o", results, "--json", "--wait"), syscall.SIGKILL, is, time.Duration(r.Int64N(int64(k.after))))
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
	k.by.clean(t, pids...)
	for name := range k.by.snapshot(t) {
		if !before[name] && oursOf(name, pids...) {
			t.Errorf("`tare clean` left %s", name)
		}
	}
	if len(announced) == 0 && k.at == nil {
		t.Error("no trial ever finished: the moments are too early to show anything")
	}
	if !k.whole {
		return pids
	}

	k.by.run(t, "run", file, "-o", results, "--wait")
	whole := filepath.Join(dir, "whole")
	k.by.run(t, "run", file, "-o", whole, "--wait")
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
	var holder claim.Holder
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
