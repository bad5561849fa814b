package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tare/record"
)

// The figures of a cluster are measured on the one that `make lab` starts. Its nodes are on this machine, so that the
// same trial can run in a pod and by a study of this host.

//go:embed studies/pods.yaml
var podsStudy string

//go:embed studies/nodes.yaml
var nodesStudy string

// labRegistry is where the lab's nodes pull from (docs/lab.md).
const labRegistry = "127.0.0.1:5000"

// onLab are the arguments that put a study on the lab. It pushes tare's image.
func (b *bench) onLab(ctx context.Context) ([]string, error) {
	config := filepath.Join(b.root, ".cache/lab/run/kubeconfig")
	if _, err := os.Stat(config); err != nil {
		return nil, errors.New("the lab does not run; make lab starts it")
	}
	out, err := b.printed(ctx, "image", "push", "tare", labRegistry+"/bench/tare:1", "--insecure")
	if err != nil {
		return nil, err
	}
	return []string{"--on", "k8s", "--kubeconfig", config, "--insecure-registry", "--tare-image", strings.TrimSpace(string(out))}, nil
}

// pods runs the same small study in the lab's pods and on this host, in turn, and compares the responses of what runs under
// runc in both.
func (b *bench) pods(ctx context.Context) ([]row, error) {
	lab, err := b.onLab(ctx)
	if err != nil {
		return nil, err
	}
	study, err := b.write("pods.yaml", podsStudy)
	if err != nil {
		return nil, err
	}
	responses := map[string]string{"getpid": "time_per_call", "cpu": "events", "memory": "throughput"}
	units := map[string]string{"getpid": "s", "cpu": "1/s", "memory": "B/s"}
	pairs := map[string][]pair{}
	for i := range b.wants(10) {
		got := map[string]map[string]float64{}
		for _, side := range [][]string{{"process", "runc"}, {"runc", "process"}}[i%2] {
			args := []string{"run", study, "--fresh", "-o", filepath.Join(b.work, fmt.Sprintf("pods-%d-%s", i, side))}
			if side == "process" { // the default class of the lab is runc
				args = append(args, slices.Concat(lab, []string{"--set", "sandbox=process"})...)
			} else {
				args = append(args, "--wait")
			}
			if _, err := b.used(ctx, nil, args...); err != nil {
				return nil, err
			}
			if got[side], err = responsesOf(args[4], side, responses); err != nil {
				return nil, err
			}
		}
		for w := range responses {
			pairs[w] = append(pairs[w], pair{got["process"][w], got["runc"][w]})
		}
	}
	var rows []row
	for _, w := range []string{"cpu", "memory", "getpid"} {
		r := row{Figure: w + " in a pod of the lab, and by a study of this host under runc", Unit: units[w]}.beside("ratio", "host", pairs[w])
		if w == "getpid" {
			r.Note = "a pod has its runtime's default seccomp profile, which each system call passes; tare's runc has none, as `runc spec`"
		} else {
			r = r.equal(0.01)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// responsesOf are the responses of the one trial of each workload in a sandbox.
func responsesOf(dir, sandbox string, responses map[string]string) (map[string]float64, error) {
	trials, err := trialsOf(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for i := range trials {
		t := &trials[i]
		w, _ := t.Cell.Get("workload")
		if in, _ := t.Cell.Get("sandbox"); in != sandbox || t.Status != record.OK {
			continue
		}
		if v, ok := t.Sample(responses[w]); ok {
			out[w] = v
		}
	}
	if len(out) != len(responses) {
		return nil, fmt.Errorf("%d of %d workloads gave a response", len(out), len(responses))
	}
	return out, nil
}

// nodesAtOnce runs a study on the lab's two nodes, one after the other and both at once, in turn. Its workloads do
// nothing, because the nodes share this machine's processors.
func (b *bench) nodesAtOnce(ctx context.Context) ([]row, error) {
	lab, err := b.onLab(ctx)
	if err != nil {
		return nil, err
	}
	study, err := b.write("nodes.yaml", nodesStudy)
	if err != nil {
		return nil, err
	}
	var pairs []pair
	for i := range b.wants(minRounds) {
		var took [2]float64
		for _, n := range [][]int{{1, 2}, {2, 1}}[i%2] {
			args := slices.Concat([]string{"run", study, "--fresh", "-o", filepath.Join(b.work, fmt.Sprintf("nodes-%d-%d", i, n)), "--at-once", fmt.Sprint(n)}, lab)
			u, err := b.used(ctx, nil, args...)
			if err != nil {
				return nil, err
			}
			took[n-1] = u.seconds
		}
		pairs = append(pairs, pair{took[1], took[0]})
	}
	r := row{Figure: "a study of 24 trials on two nodes at once, and on one after the other", Unit: "s"}.beside("ratio", "one", pairs).atMost(0.55)
	r.Note = "with the coordinator's start and end, which are the same in both"
	return []row{r}, nil
}

// longer is more than a trial of the harness's study takes on the lab.
const longer = 12 * time.Second

// returns kills a study on the lab with SIGKILL, runs the same command again, and measures the time to the start of the next
// trial. Beside it is what the coordinator and the observers take of a processor during a trial that does nothing.
func (b *bench) returns(ctx context.Context) ([]row, error) {
	lab, err := b.onLab(ctx)
	if err != nil {
		return nil, err
	}
	study, err := b.write("lab-harness.yaml", strings.NewReplacer("process, runc, runsc-systrap", "process, gvisor", "fixed: 3", "fixed: 50").Replace(harnessStudy))
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.work, "returns")
	args := slices.Concat([]string{"run", study, "-o", dir, "--observe", "--json"}, lab)
	var began []time.Time
	moments := map[string][]moment{}
	see := func() {
		for _, of := range []string{"coordinator", "observer"} {
			moments[of] = append(moments[of], moment{time.Now(), commandsCPU("/tare internal " + of)})
		}
	}
	for range b.wants(minRounds) {
		began = append(began, time.Now())
		if err := b.killed(ctx, args, syscall.SIGKILL, see); err != nil {
			return nil, err
		}
		select {
		case <-time.After(longer): // the coordinator ends the trial that runs, and waits
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := b.killed(ctx, args, syscall.SIGINT, see); err != nil {
		return nil, err
	}
	trials, err := trialsOf(dir)
	if err != nil {
		return nil, err
	}
	var took []float64
	for _, at := range began[1:] {
		for i := range trials { // by their number, so in the order of their starts
			if t := &trials[i]; t.Start.After(at) {
				took = append(took, t.Start.Sub(at).Seconds())
				break
			}
		}
	}
	slices.Sort(took)
	rows := []row{row{Figure: "the same command after kill -9 of a study of 100 trials: to the next trial", Unit: "s", Tare: quantile(took, 0.5), Rounds: len(took)}.below(3)}
	for _, of := range []string{"coordinator", "observer"} {
		var shares []float64
		for i := range trials {
			if share, err := during(moments[of], &trials[i]); err == nil {
				shares = append(shares, share)
			}
		}
		if len(shares) > 0 {
			rows = append(rows, row{Figure: "CPU of each " + of + " of the lab during a trial that does nothing", Unit: "cores", Tare: median(shares), Rounds: len(shares)}.below(0.01))
		}
	}
	return rows, nil
}

// killed runs a study until two trials have ended, and sends it a signal. see is called meanwhile.
func (b *bench) killed(ctx context.Context, args []string, by syscall.Signal, see func()) error {
	cmd := exec.CommandContext(ctx, b.tare, args...) //nolint:gosec // the binary under test
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	clock := time.NewTicker(50 * time.Millisecond)
	defer clock.Stop()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	for ended := 0; ended < 2; {
		select {
		case line, more := <-lines:
			switch {
			case !more:
				return fmt.Errorf("the study ended: %w", cmd.Wait())
			case strings.Contains(line, `"event":"end"`):
				ended++
			}
		case <-clock.C:
			see()
		}
	}
	err = cmd.Process.Signal(by)
	for range lines { // to the end
	}
	_ = cmd.Wait() // it was killed
	return err
}

// write writes a study of this run.
func (b *bench) write(name, text string) (string, error) {
	file := filepath.Join(b.work, name)
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// commandsCPU is the mean CPU time of the processes whose command lines begin so.
func commandsCPU(command string) time.Duration {
	var sum, n time.Duration
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		text, err := os.ReadFile(file) //nolint:gosec // of /proc
		if err != nil || !strings.HasPrefix(strings.ReplaceAll(string(text), "\x00", " "), command) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			used, _ := processCPU(pid) // 0 if it has ended
			sum += used
			n++
		}
	}
	return sum / max(1, n)
}

// barrier is how far apart 500 simulated agents start at one moment (BenchmarkBarrier of package agent).
func (b *bench) barrier(ctx context.Context) ([]row, error) {
	ms, err := b.goBench(ctx, "./agent", "BenchmarkBarrier", "ms-apart", b.wants(50), 1)
	if err != nil {
		return nil, err
	}
	return []row{row{Figure: "start of 500 simulated agents at one moment: apart, p50", Unit: "s", Tare: ms[0] / 1e3, Rounds: b.wants(50)}.below(5e-3)}, nil
}
