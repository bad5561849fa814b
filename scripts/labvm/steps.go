package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// compared are the sandboxes that must work in the machine.
func compared() []string { return []string{"process", "runc", "crun", "runsc-systrap", "runsc-ptrace"} }

// allSteps are all steps, in the order in which they run.
func allSteps() []step {
	out := []step{
		{name: "machine", brief: true, within: time.Minute, run: machine},
		{name: "doctor", brief: true, within: 4 * time.Minute, run: doctor},
	}
	for _, s := range suites() {
		out = append(out, step{"contract " + s.name, s.brief, s.within, s.contract})
	}
	for _, p := range collectorTests() {
		out = append(out, step{"tests " + p, false, 10 * time.Minute, func(ctx context.Context, l *lab) error {
			return l.tests(ctx, p, leftOut, []string{"TestHostRefusesItself"}) // which is about version 1
		}})
	}
	return append(out,
		step{"capture", false, 2 * time.Minute, capture},
		step{"study", true, 4 * time.Minute, small},
		step{"container", true, 4 * time.Minute, container},
		step{"protected", true, time.Minute, protected},
		step{"kill", true, 6 * time.Minute, kill},
		step{"ordinary user", false, 3 * time.Minute, ordinary},
		step{"no controllers", false, 5 * time.Minute, withoutControllers},
		step{"first study", false, 40 * time.Minute, first},
		step{"first study in a container", false, 40 * time.Minute, firstInContainer},
	)
}

// briefSteps are those of make test.
func briefSteps() []step {
	return slices.DeleteFunc(allSteps(), func(s step) bool { return !s.brief })
}

// machine checks that the machine is as intended: systemd, only version 2, /run noexec.
func machine(ctx context.Context, l *lab) error {
	out, err := l.sh(ctx, `
cat /proc/1/comm
stat -fc %T /sys/fs/cgroup
grep -c ' - cgroup ' /proc/self/mountinfo || true
grep ' /run ' /proc/self/mountinfo
systemctl is-system-running || systemctl --failed`)
	if err != nil {
		return err
	}
	lines := strings.Split(out, "\n")
	if len(lines) < 5 || lines[0] != "systemd" || lines[1] != "cgroup2fs" || lines[2] != "0" || !strings.Contains(lines[3], "noexec") {
		return errors.New("this machine lacks systemd, a pure cgroup v2 tree, or a noexec /run")
	}
	l.fresh, err = l.look(ctx)
	if err == nil && len(l.fresh.left) > 0 {
		err = fmt.Errorf("the machine never ran tare, but has leftovers of tare: %s", strings.Join(l.fresh.left, "; "))
	}
	return err
}

// doctor must find every sandbox except those that need KVM or machines.
func doctor(ctx context.Context, l *lab) error {
	out, err := l.tare(ctx, "doctor", "--json")
	if err != nil {
		return err
	}
	report, err := readDoctor(out)
	if err != nil {
		return err
	}
	problem := map[string]string{}
	for _, f := range report.Findings {
		if f.Area == "sandbox" {
			problem[f.Name] = f.Problem
		}
	}
	var wrong []string
	for _, n := range compared() {
		if p, found := problem[n]; !found || p != "" {
			wrong = append(wrong, cmp.Or(p, n+" is missing"))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("doctor says: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// suite is the contract suite of one sandbox.
type suite struct {
	name, pkg, run string
	brief          bool
	within         time.Duration
	quick          []string // those of its tests that make test runs
}

func suites() []suite {
	// Each test of gVisor's limits takes a minute on an emulated processor.
	quick := []string{"CheckLeavesNothing", "Exec", "Scope"}
	return []suite{
		{"process", processTests, "TestContract", true, 10 * time.Minute, append(slices.Clone(quick), "CPULimit", "MemoryLimit")},
		{"runc", ociTests, "TestContract/^runc$", false, 10 * time.Minute, nil},
		{"crun", ociTests, "TestContract/^crun$", false, 10 * time.Minute, nil},
		{"runsc-systrap", ociTests, "TestContract/^runsc-systrap$", true, 20 * time.Minute, quick},
		{"runsc-ptrace", ociTests, "TestContract/^runsc-ptrace$", false, 20 * time.Minute, nil},
	}
}

func (s suite) contract(ctx context.Context, l *lab) error {
	run := s.run
	if !l.full {
		run += "/^(" + strings.Join(s.quick, "|") + ")$"
	}
	// Skipped on every host if the kind cannot do it.
	err := l.tests(ctx, s.pkg, "-test.run='"+run+"'", []string{"Checkpoint", "Launch"})
	// A suite that ran out of time leaves its sandboxes, and any of them what the runtimes set in
	// the root group. The next step is not to be blamed for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	_, unclean := l.tare(ctx, "clean")
	return errors.Join(err, unclean)
}

// leftOut is a test of how much of short processes tare sees. It sees less if they start
// slowly, and an emulated processor takes a fifth of a second to start one.
const leftOut = "-test.skip='TestRolesAddUpOnHost/processes_of_0.3_s'"

var skippedRE = regexp.MustCompile(`(?m)^\s*--- SKIP: (\S+)`)

// tests runs a package's test binary with the flags in which. A skipped test counts as
// failed, unless mayskip has its last name: the machine must have all that the tests need.
func (l *lab) tests(ctx context.Context, pkg, which string, mayskip []string) error {
	out, err := l.sh(ctx, "cd /lab/module/"+pkg+"; exec env TARE_CONTRACT=all ./tests -test.v -test.timeout=30m "+which)
	if err != nil {
		return err
	}
	if names := skipped(out, mayskip); len(names) > 0 {
		return fmt.Errorf("skipped: %s", strings.Join(names, ", "))
	}
	if strings.Contains(out, "testing: warning: no tests to run") {
		return fmt.Errorf("%s has no such test: %s", pkg, which)
	}
	return nil
}

// skipped returns the names of skipped tests, except those whose last part is in except.
func skipped(out string, except []string) []string {
	var names []string
	for _, m := range skippedRE.FindAllStringSubmatch(out, -1) {
		if name := m[1]; !slices.Contains(except, path.Base(name)) {
			names = append(names, name)
		}
	}
	return names
}

// smallStudy reads a disk; a full one has a workload with two endpoints as well.
//
//go:embed guest/small.yaml
var smallStudy string

// write puts a text into a file in the machine.
func (l *lab) write(ctx context.Context, file, text string) error {
	_, err := l.sh(ctx, "cat >"+file+" <<'END'\n"+text+"END\n")
	return err
}

// writeSmall writes the small study, and returns its sandboxes.
func (l *lab) writeSmall(ctx context.Context) ([]string, error) {
	// gVisor starts slowly on an emulated processor; its contract suite runs in each case.
	sandboxes, more := []string{"process", "runc"}, ""
	if l.full {
		sandboxes = append(sandboxes, "crun", "runsc-systrap")
		more = "  rr: {kind: net, mode: rr, duration: 1s, warmup: 0s, responses: [rate]}\n"
	}
	return sandboxes, l.write(ctx, "/root/small.yaml", fmt.Sprintf(smallStudy, strings.Join(sandboxes, ", "), more))
}

// small runs a study. All its trials must be good, and all sandboxes must have the same
// control group figures.
func small(ctx context.Context, l *lab) error {
	sandboxes, err := l.writeSmall(ctx)
	if err != nil {
		return err
	}
	if _, err := l.tare(ctx, "run", "/root/small.yaml", "--results", "/root/small"); err != nil {
		return err
	}
	return l.done(ctx, "/root/small", sandboxes, sameFigures)
}

// done checks that each sandbox has good trials, that they pass the other checks, and that nothing is left in the
// machine. It reads the trials once, because an emulated machine takes seconds to start tare.
func (l *lab) done(ctx context.Context, results string, sandboxes []string, checks ...func([]trial) error) error {
	trials, err := l.trials(ctx, results)
	if err != nil {
		return err
	}
	for _, check := range checks {
		if err := check(trials); err != nil {
			return err
		}
	}
	if err := good(trials, sandboxes); err != nil {
		return err
	}
	return l.nothingLeft(ctx)
}

// trial is a line of `tare export --format jsonl`.
type trial struct {
	Status  string
	Cell    map[string]string
	Samples []struct{ Name string }
}

func (l *lab) trials(ctx context.Context, results string) ([]trial, error) {
	quiet := &lab{vm: l.vm, log: &journal{}} // it is long
	out, err := quiet.tare(ctx, "export", results, "--format", "jsonl")
	if err != nil {
		l.log.printf("%s", quiet.log)
		return nil, err
	}
	var trials []trial
	for line := range strings.Lines(out) {
		var t trial
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			return nil, fmt.Errorf("cannot read a line of the export: %w", err)
		}
		trials = append(trials, t)
	}
	return trials, nil
}

// good names a sandbox that has no trial, or a cell whose last trial is not good. A study
// repeats a trial that failed: an emulated machine on a busy host is sometimes too slow.
func good(trials []trial, sandboxes []string) error {
	seen, last := map[string]bool{}, map[string]string{}
	for _, t := range trials {
		seen[t.Cell["sandbox"]] = true
		last[fmt.Sprint(t.Cell)] = t.Status
	}
	for _, cell := range slices.Sorted(maps.Keys(last)) {
		if last[cell] != "ok" {
			return fmt.Errorf("the last trial of %s is %s", cell, last[cell])
		}
	}
	for _, s := range sandboxes {
		if !seen[s] {
			return fmt.Errorf("%s has no trial", s)
		}
	}
	return nil
}

// sameFigures checks, for each workload, that the sandboxes have the same control group
// series as process.
func sameFigures(trials []trial) error {
	have := map[string]map[string][]string{} // workload, sandbox, names
	for _, t := range trials {
		names := map[string]bool{}
		for _, s := range t.Samples {
			if strings.HasPrefix(s.Name, "cgroup_") {
				names[s.Name] = true
			}
		}
		w := t.Cell["workload"]
		if have[w] == nil {
			have[w] = map[string][]string{}
		}
		have[w][t.Cell["sandbox"]] = slices.Sorted(maps.Keys(names))
	}
	var wrong []string
	for _, w := range slices.Sorted(maps.Keys(have)) {
		for _, s := range slices.Sorted(maps.Keys(have[w])) {
			if !slices.Equal(have[w][s], have[w]["process"]) {
				wrong = append(wrong, fmt.Sprintf("%s of %s has the figures %v, process %v", w, s, have[w][s], have[w]["process"]))
			}
		}
	}
	for _, name := range []string{"cgroup_cpu_rate", "cgroup_memory_max", "cgroup_io_read_rate"} {
		if !slices.Contains(have["disk"]["process"], name) {
			wrong = append(wrong, "disk of process has no "+name)
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

// first does what `make run` does once everything is installed.
func first(ctx context.Context, l *lab) error {
	if _, err := l.tare(ctx, l.firstStudy("/root/first")...); err != nil {
		return err
	}
	return l.done(ctx, "/root/first", compared())
}

func (l *lab) firstStudy(results string) []string {
	args := []string{"run", "/lab/studies/first.yaml", "--results", results, "--wait"}
	if l.budget != "" {
		args = append(args, "--set", "budget.time="+l.budget)
	}
	return args
}

// captured are the files that collect/cgroup reads from one control group.
func captured() []string {
	return []string{
		"cpu.stat", "cpu.max", "cpu.pressure", "memory.current", "memory.peak", "memory.stat", "memory.events", "memory.pressure",
		"pids.current", "io.stat", "io.pressure",
	}
}

// captureScript loads a control group that has every controller, 0.2 cores and 64 MiB. Its
// processes read and write two disks past the page cache, ask for more memory than the limit,
// and two are always busy, one of them with 20 MiB. It prints the files as JSON while these
// run.
//
//go:embed guest/capture.sh
var captureScript string

// capture reads the files of a busy control group for the tests of collect/cgroup, exactly
// as the kernel writes them.
func capture(ctx context.Context, l *lab) error {
	out, err := l.sh(ctx, fmt.Sprintf(captureScript, strings.Join(captured(), " ")))
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	var text map[string]string
	if err := json.Unmarshal([]byte(out), &text); err != nil {
		return fmt.Errorf("cannot read the captured files: %w", err)
	}
	for name, coded := range text {
		if files[name], err = base64.StdEncoding.DecodeString(coded); err != nil {
			return fmt.Errorf("cannot read the captured %s: %w", name, err)
		}
		l.log.printf("%s:\n%s", name, files[name])
	}
	for _, n := range captured() {
		if len(files[n]) == 0 {
			return fmt.Errorf("%s is empty", n)
		}
		if l.capture == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(l.capture, n), files[n], 0o644); err != nil { //nolint:gosec // no secret
			return err
		}
	}
	return nil
}
