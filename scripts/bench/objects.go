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

// The load generator of the workload objects beside kube-burner, in turn, on the same control plane. Each creates the
// same pods, and follows them by a watch.

var (
	//go:embed studies/kube-burner.yaml
	burnerJob string
	//go:embed studies/pod.yaml
	burnerPod string
)

const burner = "kube-burner"

// created is what it took to create pods.
type created struct {
	usage
	steady float64 // bytes of memory once all pods were there
	rate   float64 // pods a second
}

// client is one of the two load generators.
type client struct {
	name string
	// start begins to create n pods, and tells the moment when it begins and has created them by said.
	cmd func(ctx context.Context, p *plane, n int, run bool) (*exec.Cmd, error)
	// rate finds in a line that the client printed how many pods it created a second; 0: another line.
	rate func(line string, n int) float64
}

func (b *bench) ours() client {
	return client{"tare", func(ctx context.Context, p *plane, n int, run bool) (*exec.Cmd, error) {
		timeout := "5m"
		if !run {
			timeout = "30m" // it is ended before
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

// theirs is kube-burner, if it is installed. Where pods run it waits for that as is usual; where they do not, it
// measures the latency of their conditions.
func (b *bench) theirs() (client, error) {
	path, err := exec.LookPath(burner)
	if err != nil {
		return client{}, errors.New("kube-burner is not installed")
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

// create has a client create n pods, and clears them away. Where they run, the client says when it has done; else it is
// ended when they are all there.
func (c client) create(ctx context.Context, p *plane, n int, run bool) (out created, err error) {
	cmd, err := c.cmd(ctx, p, n, run)
	if err != nil {
		return out, err
	}
	said := &lines{see: func(line string) { out.rate = max(out.rate, c.rate(line, n)) }}
	cmd.Stdout, cmd.Stderr = said, said
	var there, looked time.Time // when all pods were, and when that was last asked
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

// lines hands on what is written to it, line by line.
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

// settled is how long a client is left alone with all its pods before its memory is read.
const settled = 5 * time.Second

// clear deletes the namespaces that clients made, and waits until they are gone.
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

// both has both clients create n pods, in rounds, in turn.
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

// beside is a row of one figure of both sides, or of ours alone.
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

// few is a number of pods whose memory does not show: what is left is the client's floor.
const few = 20

// manyPods asks for the figure of so many pods: 150000 takes half an hour.
const manyPods = "TARE_BENCH_PODS"

// watched is the memory of the load generator that creates pods and follows them.
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
			return nil, fmt.Errorf("%s=%s is no number of pods", manyPods, text)
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
		r.Note = fmt.Sprintf("VmHWM; VmRSS %s after all were there: %s", settled, show(median(values(ours, func(c created) float64 { return c.steady })), "B"))
		each := beside("the same: a pod, above the memory with "+strconv.Itoa(few), "B", over(ours, floor, n), over(theirs, floors, n), peak).below(1500)
		rows = append(rows, r, each)
	}
	return rows, nil
}

// over is the memory a pod above a floor.
func over(all, floor []created, n int) []created {
	out := slices.Clone(all)
	for i := range out {
		out[i].peak = max(0, out[i].peak-floor[min(i, len(floor)-1)].peak) / float64(n-few)
	}
	return out
}

// objects is how fast pods are created that run on simulated nodes, and what that takes of the client's processor.
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
		beside("the same: CPU time of the client, a pod", "s", ours, theirs, func(c created) float64 { return c.cpu / n }).atMost(0.5),
		beside("the same: peak memory of the client", "B", ours, theirs, peak),
	}, nil
}
