package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/analyse/cause"
	"tare/record"
)

// A cause is made on purpose, in real sandboxes, by the engine that users run; the verdict
// must name it. What others do on the host at the same time is a cause as well: where that
// is seen in the readings themselves, the case is made once more, and then skipped.

// madeCause is one cause and what makes it.
type madeCause struct {
	study  string // without its name, seed and stopping rule
	wants  []wanted
	before func(t *testing.T) // brings about what no study can
}

// wanted is what the findings must say of cells with these levels.
type wanted struct {
	levels map[string]string // factor to level
	cause  cause.Kind
	role   string // of a helper
	check  func(*testing.T, *cause.Finding)
}

const madeStudy = `study: made
seed: 1
%s
stop: {fixed: 1}
sentinel: off
`

// otherLoad is how many cores others may use on the host while a cause is made: beyond it
// a small host is full of them, and says so.
const otherLoad = 0.4

func (m *madeCause) run(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	if testing.Short() {
		t.Skip("runs real sandboxes for some seconds")
	}
	if m.before != nil {
		m.before(t)
	}
	for attempt := 1; ; attempt++ {
		found, others := m.once(t)
		var wrong []string
		for _, w := range m.wants {
			f := w.find(t, found)
			if f.Cause == w.cause && (w.role == "" || f.Role == w.role) {
				t.Logf("%s: %s %s, confidence %.2f: %s", f.Cell, f.Cause, f.Role, f.Confidence, f.Text)
				if w.check != nil {
					w.check(t, f)
				}
				continue
			}
			text := fmt.Sprintf("%s: %s %s among %v, want %s %s: %s", f.Cell, f.Cause, f.Role, f.Among, w.cause, w.role, f.Text)
			for _, r := range f.Readings {
				text += fmt.Sprintf("\n\t%s %s: %s %.4g", r.About, r.Says, r.Name, r.Value)
			}
			wrong = append(wrong, text)
		}
		switch {
		case len(wrong) == 0:
			return
		case attempt == 1:
			t.Logf("once more, others used %.1f cores: %s", others, strings.Join(wrong, "\n"))
		case others > otherLoad:
			t.Skipf("others used %.1f cores of this host meanwhile: %s", others, strings.Join(wrong, "\n"))
		default:
			t.Fatal(strings.Join(wrong, "\n"))
		}
	}
}

// find is the finding of the cell; a host that cannot run it skips the test.
func (w *wanted) find(t *testing.T, found []cause.Finding) *cause.Finding {
	t.Helper()
	for i := range found {
		has := true
		for factor, level := range w.levels {
			v, _ := found[i].Cell.Get(factor)
			has = has && v == level
		}
		if has {
			return &found[i]
		}
	}
	t.Skipf("no finding of %v: this host did not run the cell", w.levels)
	return nil
}

// once runs the study, one block, and returns the findings and the CPU, in cores, that
// others used on the host in the busiest of its trials.
func (m *madeCause) once(t *testing.T) (found []cause.Finding, others float64) {
	t.Helper()
	dir := t.TempDir()
	file, results := filepath.Join(dir, "made.yaml"), filepath.Join(dir, "r")
	if err := os.WriteFile(file, fmt.Appendf(nil, madeStudy, m.study), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, bin, "run", file, "--results", results, "--wait").CombinedOutput(); err != nil {
		t.Logf("%v\n%s", err, out) // a sandbox that the host lacks, or a study that cannot be run
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, bin, "report", results, "--json")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var doc struct {
		Causes []cause.Finding `json:"causes"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, tr := range load(t, results) {
		if tr.Status != record.OK {
			t.Fatalf("%s: %+v", tr.Cell, tr.Failure)
		}
		for _, w := range tr.Warnings {
			if w.Code == "left-behind" {
				t.Error(w.Text)
			}
		}
		others = max(others, elsewhere(&tr))
	}
	return doc.Causes, others
}

// elsewhere is the CPU that the host used over the measured time and no end of the trial.
func elsewhere(tr *record.Trial) float64 {
	var host, ours float64
	for _, s := range tr.Samples {
		switch s.Name {
		case "system_cpu" + record.RateSuffix:
			if mode := s.Labels.Get(record.LabelMode); !slices.Contains([]string{"idle", "iowait"}, mode) {
				host += s.Value
			}
		case record.CgroupCPU + record.RateSuffix:
			ours += s.Value
		}
	}
	return host - ours
}

// TestCauseQuota: half a core, for a loop that wants a whole one.
func TestCauseQuota(t *testing.T) {
	m := madeCause{
		study: `compare: cpu-limit
baseline: none
factors: {sandbox: [runc], cpu-limit: [none, "0.5"]}
workloads:
  loop: {kind: cpu, threads: 1, duration: 2s, warmup: 1s}`,
		wants: []wanted{
			{levels: map[string]string{"cpu-limit": "0.5"}, cause: cause.Quota},
			{levels: map[string]string{"cpu-limit": "none"}, cause: cause.GuestOne},
		},
	}
	m.run(t)
}

// TestCauseOfMachines: a quota around a machine, one processor for eight threads, and one
// thread on two processors.
func TestCauseOfMachines(t *testing.T) {
	machines(t)
	m := madeCause{
		study: `baseline: process
factors: {sandbox: [process, vm], cpu-limit: [none, "0.5"], default_vcpus: [1, 2], default_memory: [256]}
workloads:
  many: {kind: cpu, threads: 8, duration: 2s, warmup: 1s}
  one: {kind: cpu, threads: 1, duration: 2s, warmup: 1s}
exclude:
  - {workload: one, cpu-limit: "0.5"}
  - {workload: one, default_vcpus: 1}
  - {workload: many, default_vcpus: 2}`,
		wants: []wanted{
			{levels: map[string]string{"sandbox": "vm", "workload": "many", "cpu-limit": "0.5"}, cause: cause.Quota},
			{levels: map[string]string{"sandbox": "vm", "workload": "many", "cpu-limit": "none"}, cause: cause.Guest},
			{levels: map[string]string{"sandbox": "vm", "workload": "one"}, cause: cause.GuestOne},
		},
	}
	m.run(t)
}

// TestCauseIOThread: a disk that QEMU encrypts, read by large requests: the thread that
// serves it has most of the work.
func TestCauseIOThread(t *testing.T) {
	machines(t)
	m := madeCause{
		study: `compare: disk
baseline: raw
factors: {sandbox: [vm], disk: [raw, luks], io_threads: [1], rootfs: [block], default_memory: [256]}
workloads:
  read: {kind: fio, rw: randread, bs: 1MiB, size: 64MiB, engine: libaio, iodepth: 16, cache: direct, duration: 2s, warmup: 500ms}`,
		wants: []wanted{{levels: map[string]string{"disk": "luks"}, cause: cause.Helper, role: "iothread"}},
	}
	m.run(t)
}

// TestCausePath: 2 ms more each way, whatever the size.
func TestCausePath(t *testing.T) {
	m := madeCause{
		study: `compare: link-delay
baseline: none
factors: {sandbox: [runc], link-delay: [none, 2ms]}
workloads:
  rr: {kind: net, mode: rr, size: [16B, 1KiB, 4KiB], duration: 1s, warmup: 200ms}`,
		wants: []wanted{
			{levels: map[string]string{"link-delay": "2ms", "size": "16B"}, cause: cause.Path, check: addsFour},
			{levels: map[string]string{"link-delay": "2ms", "size": "4KiB"}, cause: cause.Path, check: addsFour},
		},
	}
	m.run(t)
}

// addsFour: a round trip takes two delays more. A busy host adds to it, and takes nothing away.
func addsFour(t *testing.T, f *cause.Finding) {
	t.Helper()
	if f.Added == nil {
		t.Errorf("%s: no time that is added", f.Cell)
	} else if f.Added.Hi < 0.004 {
		t.Errorf("%s: %v to %v s are added, want 0.004 or more", f.Cell, f.Added.Lo, f.Added.Hi)
	}
}

// TestCauseLink: streams into a link of 100 Mbit/s.
func TestCauseLink(t *testing.T) {
	m := madeCause{
		study: `compare: link-rate
baseline: none
factors: {sandbox: [runc], link-rate: [none, 100Mbit]}
workloads:
  stream: {kind: net, mode: stream, size: 64KiB, connections: 4, duration: 1s, warmup: 300ms}`,
		wants: []wanted{{levels: map[string]string{"link-rate": "100Mbit"}, cause: cause.Link}},
	}
	m.run(t)
}

// TestCauseInterception: a loop of system calls that each stop the program twice.
func TestCauseInterception(t *testing.T) {
	m := madeCause{
		study: `baseline: process
factors: {sandbox: [process, runsc-ptrace]}
workloads:
  calls: {kind: syscall, call: getpid, duration: 1s, warmup: 200ms}
calls: on`,
		wants: []wanted{{levels: map[string]string{"sandbox": "runsc-ptrace"}, cause: cause.Interception}},
	}
	m.run(t)
}

// TestCauseHost: others have work for every processor three times over.
func TestCauseHost(t *testing.T) {
	m := madeCause{
		before: contend,
		study: `compare: sandbox
baseline: process
factors: {sandbox: [process, runc]}
workloads:
  loop: {kind: cpu, threads: 2, duration: 2s, warmup: 1s}`,
		wants: []wanted{
			{levels: map[string]string{"sandbox": "process"}, cause: cause.Host},
			{levels: map[string]string{"sandbox": "runc"}, cause: cause.Host},
		},
	}
	m.run(t)
}

// contend starts busy loops, three a processor, that end with the test or a minute later.
func contend(t *testing.T) {
	t.Helper()
	cpus, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		t.Skip(err)
	}
	last := strings.TrimSpace(string(cpus[strings.LastIndexAny(string(cpus), "-,")+1:]))
	var n int
	if _, err := fmt.Sscan(last, &n); err != nil {
		t.Fatal(err)
	}
	for range 3 * (n + 1) {
		cmd := exec.Command("timeout", "90", "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Signal(os.Interrupt) // timeout(1) passes it on
			_ = cmd.Wait()                       // it says that it was interrupted
		})
	}
}
