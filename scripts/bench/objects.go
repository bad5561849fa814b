package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tare/cluster/pod"
	"tare/workload/objects"
)

// This file compares the load generator of the workload objects with kube-burner. Both run in turn on the same control plane. They
// create the same pods.

var (
	//go:embed studies/kube-burner.yaml
	burnerJob string
	//go:embed studies/pod.yaml
	burnerPod string
)

const burner = "kube-burner"

// created has the figures of a client that created pods.
type created struct {
	usage
	steady float64 // bytes of memory once all pods existed
	rate   float64 // pods a second
}

// client is one of the two load generators.
type client struct {
	name string
	// cmd returns the command that creates n pods. run says whether the pods run.
	cmd func(ctx context.Context, p *plane, n int, run bool) (*exec.Cmd, error)
	// rate reads from an output line how many pods the client created a second; 0: another line.
	rate func(line string, n int) float64
}

func (b *bench) ours() client {
	return client{"tare", func(ctx context.Context, p *plane, n int, run bool) (*exec.Cmd, error) {
		timeout := "5m"
		if !run {
			timeout = "30m" // the benchmark ends it earlier
		}
		cmd := exec.CommandContext(ctx, b.tare, "internal", "objects", "-kubeconfig", p.kubeconfig, "-count", strconv.Itoa(n), "-steps", "1", "-workers", "16", "-nodes", objects.Simulated, "-timeout", timeout) //nolint:gosec // the binary under test
		cmd.Env = append(os.Environ(), pod.EnvStudy+"=bench", pod.EnvImage+"=bench")
		return cmd, nil
	}, func(line string, n int) float64 {
		var l objects.Line
		if json.Unmarshal([]byte(line), &l) != nil || l.Step == nil || l.Step.Made < n {
			return 0
		}
		return float64(n) / l.Step.Create
	}}
}

// theirs returns kube-burner, if it is installed. If the pods run, it waits for them, as it does by default. If not, it
// measures the latency of their conditions.
func (b *bench) theirs() (client, error) {
	path, err := exec.LookPath(burner)
	if err != nil {
		return client{}, errors.New("kube-burner is not on the PATH; install it")
	}
	var begun time.Time
	return client{burner, func(ctx context.Context, p *plane, n int, run bool) (*exec.Cmd, error) {
		dir := p.file(burner)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		measure := "[{name: podLatency}]"
		if run {
			measure = "[]"
		}
		job := strings.NewReplacer("MEASUREMENTS", measure, "COUNT", strconv.Itoa(n), "WAIT", strconv.FormatBool(run)).Replace(burnerJob)
		for name, text := range map[string]string{"job.yaml": job, "pod.yaml": burnerPod} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				return nil, err
			}
		}
		cmd := exec.CommandContext(ctx, path, "init", "-c", "job.yaml", "--kubeconfig", p.kubeconfig) //nolint:gosec // as installed
		cmd.Dir = dir
		return cmd, nil
	}, func(line string, n int) float64 {
		switch {
		case strings.Contains(line, "Triggering job"):
			begun = time.Now()
		case strings.Contains(line, "Waiting up to"), strings.Contains(line, "Job bench took"):
			if !begun.IsZero() {
				took := time.Since(begun)
				begun = time.Time{}
				return float64(n) / took.Seconds()
			}
		}
		return 0
	}}, nil
}

// create lets a client create n pods, and removes them. If the pods run, the client ends by itself. If not, create ends it when
// all pods exist.
func (c client) create(ctx context.Context, p *plane, n int, run bool) (out created, err error) {
	cmd, err := c.cmd(ctx, p, n, run)
	if err != nil {
		return out, err
	}
	said := &lines{see: func(line string) { out.rate = max(out.rate, c.rate(line, n)) }}
	cmd.Stdout, cmd.Stderr = said, said
	var there, looked time.Time // when all pods existed, and when create last counted them
	out.usage, err = observed(cmd, func(pid int) {
		switch {
		case run || time.Since(looked) < settled/2:
		case there.IsZero():
			looked = time.Now()
			if got, err := p.pods(ctx); err == nil && got >= n {
				there = looked
			}
		case time.Since(there) > settled:
			looked, out.steady = time.Now(), float64(residentMemory(pid))
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	})
	if err != nil && there.IsZero() {
		return out, fmt.Errorf("%s: %w: %s", c.name, err, said.last)
	}
	if run && out.rate == 0 {
		return out, fmt.Errorf("%s did not create %d pods: %s", c.name, n, said.last)
	}
	return out, p.clear(context.WithoutCancel(ctx))
}

// lines passes on its input line by line.
type lines struct {
	see        func(string)
	rest, last string
}

func (l *lines) Write(text []byte) (int, error) {
	l.rest += string(text)
	for {
		line, rest, ended := strings.Cut(l.rest, "\n")
		if !ended {
			return len(text), nil
		}
		l.see(line)
		l.rest, l.last = rest, line
	}
}

// settled is how long a client stays idle with all its pods before its memory is read.
const settled = 5 * time.Second

// clear deletes the namespaces of the clients, and waits until they are gone.
func (p *plane) clear(ctx context.Context) error {
	for {
		text, err := p.call(ctx, http.MethodGet, "/api/v1/namespaces", nil)
		var list struct {
			Items []struct {
				Metadata struct {
					Name    string  `json:"name"`
					Deleted *string `json:"deletionTimestamp"`
				} `json:"metadata"`
			} `json:"items"`
		}
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if err != nil {
			return err
		}
		left := 0
		for _, n := range list.Items {
			if n.Metadata.Name == "default" || strings.HasPrefix(n.Metadata.Name, "kube-") && n.Metadata.Name != burner {
				continue
			}
			if left++; n.Metadata.Deleted == nil {
				if _, err := p.call(ctx, http.MethodDelete, "/api/v1/namespaces/"+n.Metadata.Name, nil); err != nil {
					return err
				}
			}
		}
		if left == 0 {
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// both lets both clients create n pods in turn, in rounds.
func (b *bench) both(ctx context.Context, p *plane, n, rounds int, run bool) (ours, theirs []created, err error) {
	sides := []client{b.ours()}
	if peer, err := b.theirs(); err == nil {
		sides = append(sides, peer)
	} else {
		_, _ = fmt.Fprintln(b.stderr, "bench:", err)
	}
	for i := range rounds {
		order := slices.Clone(sides)
		if i%2 > 0 {
			slices.Reverse(order)
		}
		for _, c := range order {
			got, err := c.create(ctx, p, n, run)
			if err != nil {
				return nil, nil, err
			}
			if c.name == burner {
				theirs = append(theirs, got)
			} else {
				ours = append(ours, got)
			}
		}
	}
	return ours, theirs, nil
}

// beside returns a row with one figure of both clients, or of tare alone.
func beside(figure, unit string, ours, theirs []created, of func(created) float64) row {
	r := row{Figure: figure, Unit: unit}
	if len(theirs) < len(ours) {
		r.Tare, r.Rounds = median(values(ours, of)), len(ours)
		return r
	}
	var pairs []pair
	for i := range ours {
		pairs = append(pairs, pair{of(ours[i]), of(theirs[i])})
	}
	return r.beside("ratio", burner, pairs)
}

func values(all []created, of func(created) float64) (out []float64) {
	for _, c := range all {
		out = append(out, of(c))
	}
	return out
}

func peak(c created) float64 { return c.peak }

// few is a number of pods that need no visible memory, so that the figure is the client's base memory.
const few = 20

// manyPods is the environment variable with the number of pods. 150000 pods take half an hour.
const manyPods = "TARE_BENCH_PODS"

// watched measures the memory of a load generator that creates pods and follows them.
func (b *bench) watched(ctx context.Context) ([]row, error) {
	p, err := b.newPlane(ctx, "watched")
	if err != nil {
		return nil, err
	}
	defer p.stop()
	var rows []row
	rounds := b.wants(3)
	floor, floors, err := b.both(ctx, p, few, rounds, false)
	if err != nil {
		return nil, err
	}
	sizes := []int{2000, 4000}
	if text := os.Getenv(manyPods); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= few {
			return nil, fmt.Errorf("%s=%s is not a number of pods", manyPods, text)
		}
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		if n > 10_000 {
			rounds = 1
		}
		ours, theirs, err := b.both(ctx, p, n, rounds, false)
		if err != nil {
			return nil, err
		}
		r := beside(fmt.Sprintf("peak memory of the load generator, %d pods created and watched", n), "B", ours, theirs, peak)
		switch {
		case n == 4000:
			r = r.atMost(0.1)
		case n > 4000:
			r = r.below(100e6 + 1500*float64(n))
		default:
			r = r.below(200e6)
		}
		r.Note = fmt.Sprintf("VmHWM; VmRSS %s after all pods existed: %s", settled, show(median(values(ours, func(c created) float64 { return c.steady })), "B"))
		each := beside("the same: for each pod, above the memory with "+strconv.Itoa(few), "B", over(ours, floor, n), over(theirs, floors, n), peak).below(1500)
		rows = append(rows, r, each)
	}
	return rows, nil
}

// over returns the memory for each pod above a base memory.
func over(all, floor []created, n int) []created {
	out := slices.Clone(all)
	for i := range out {
		out[i].peak = max(0, out[i].peak-floor[min(i, len(floor)-1)].peak) / float64(n-few)
	}
	return out
}

// objects measures how fast a client creates pods that run on simulated nodes, and the client's processor time.
func (b *bench) objects(ctx context.Context) ([]row, error) {
	p, err := b.newPlane(ctx, "objects")
	if err != nil {
		return nil, err
	}
	defer p.stop()
	const n = 2000
	if err := p.simulate(ctx, b.root, n/100); err != nil {
		return nil, err
	}
	ours, theirs, err := b.both(ctx, p, n, b.wants(minRounds), true)
	if err != nil {
		return nil, err
	}
	return []row{
		beside(fmt.Sprintf("pods created on simulated nodes, of %d", n), "1/s", ours, theirs, func(c created) float64 { return c.rate }).atLeast(1.5),
		beside("the same: CPU time of the client for each pod", "s", ours, theirs, func(c created) float64 { return c.cpu / n }).atMost(0.5),
		beside("the same: peak memory of the client", "B", ours, theirs, peak),
	}, nil
}
