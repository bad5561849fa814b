package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/network"
	"tare/host/rootfs"
	"tare/host/spawn"
	"tare/sandbox"
)

// Each run loads for a second, of which nothing is counted, and measures one:
// many short rounds cancel a neighbour's load better than a few long ones.
const warm, measured = 1, 1

// net compares the network driver with iperf3 (streams) and qperf (round
// trips) between two namespaces on tare's bridge, as two sandboxes of the kind
// process have them. TCP_NODELAY is set on both sides.
func (b *bench) net(ctx context.Context) (_ []row, err error) {
	bridge, err := network.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bridge.Close()) }()
	w := wire{tare: b.tare, last: min(1, runtime.NumCPU()-1)}
	name := "bench" + strconv.FormatInt(int64(os.Getpid()), 36)
	if w.server, err = bridge.Attach(name + "a"); err != nil {
		return nil, err
	}
	if w.client, err = bridge.Attach(name + "b"); err != nil {
		return nil, err
	}
	one := w
	one.last = 0
	var rows []row
	for _, m := range []struct {
		figure     string
		unit       string
		ours, peer func(context.Context) (float64, error)
		needs      string
	}{
		{"TCP stream of 64 KiB writes", "B/s", w.stream(65536), w.iperf3(65536), "iperf3"},
		{"TCP stream of 256 B writes", "B/s", w.stream(256), w.iperf3(256), "iperf3"},
		{"TCP stream of 64 KiB writes, beside qperf", "B/s", w.stream(65536), w.qperfStream(65536), "qperf"},
		{"TCP stream of 256 B writes, beside qperf", "B/s", w.stream(256), w.qperfStream(256), "qperf"},
		{"TCP round trips of 1 B, both ends on one CPU", "1/s", one.trips(1, 1), one.qperfTrips(1, 1), "qperf"},
		{"TCP round trips of 1 B, the ends on two CPUs", "1/s", w.trips(1, 1), w.qperfTrips(1, 1), "qperf"},
		{"TCP round trips of 4 KiB", "1/s", w.trips(4096, 1), w.qperfTrips(4096, 1), "qperf"},
		{"TCP round trips of 1 B, 16 connections", "1/s", w.trips(1, 16), w.qperfTrips(1, 16), "qperf"},
		{"TCP round trips of 4 KiB, 16 connections", "1/s", w.trips(4096, 16), w.qperfTrips(4096, 16), "qperf"},
	} {
		r := row{Figure: m.figure, Unit: m.unit}
		if _, ok := rootfs.Lookup(m.needs); !ok {
			m.peer, r.Note = nil, m.needs+" is not installed: nothing beside it"
		}
		pairs, err := inTurn(ctx, b.wants(6), m.ours, m.peer)
		if err != nil {
			return rows, err
		}
		if m.peer == nil {
			ours, _ := sides(pairs)
			r.Tare, r.Rounds = quantile(ours, 0.5), len(pairs)
			rows = append(rows, r)
			continue
		}
		rows = append(rows, r.beside("ratio", m.needs, pairs).atLeast(1))
	}
	open, err := w.openLoop(ctx, b.wants(6))
	return append(rows, open...), err
}

// inTurn measures a pair in rounds. Every second round begins with the peer.
func inTurn(ctx context.Context, rounds int, ours, peer func(context.Context) (float64, error)) (pairs []pair, err error) {
	for i := range rounds {
		p, err := round(ctx, i, ours, peer)
		if err != nil {
			return pairs, err
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

func round(ctx context.Context, number int, ours, peer func(context.Context) (float64, error)) (p pair, err error) {
	if peer == nil {
		p.ours, err = ours(ctx)
		return p, err
	}
	if number%2 == 1 {
		if p.peer, err = peer(ctx); err != nil {
			return p, err
		}
		p.ours, err = ours(ctx)
		return p, err
	}
	if p.ours, err = ours(ctx); err == nil {
		p.peer, err = peer(ctx)
	}
	return p, err
}

// wire is two namespaces and what runs in them.
type wire struct {
	tare           string
	server, client sandbox.Network
	last           int // the client's CPU; the server's is 0
}

// inside starts a program in the namespace and on the CPU. What the thread is
// pinned to, its child inherits: sched_setaffinity(2).
func inside(n sandbox.Network, cpu int) spawn.Options {
	return spawn.Options{Prepare: func() error {
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("pinning to CPU %d: %w", cpu, err)
		}
		f, err := os.Open(n.Path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
	}}
}

// session is one server and its client.
type session struct {
	port           int
	server, client []string
}

// between starts the servers, runs all clients at once when every server
// listens, and returns what each client printed.
func (w wire) between(ctx context.Context, sessions []session) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for _, x := range sessions {
		end, err := w.listen(ctx, x)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	out, errs := make([][]byte, len(sessions)), make([]error, len(sessions))
	var clients sync.WaitGroup
	for i, x := range sessions {
		clients.Go(func() { out[i], errs[i] = w.runClient(ctx, x.client) })
	}
	clients.Wait()
	return out, errors.Join(errs...)
}

// listen starts a server and returns when it listens. One that ends before is
// started again: the last one's child may still hold the port.
func (w wire) listen(ctx context.Context, x session) (end func(), err error) {
	for {
		s := exec.Command(x.server[0], x.server[1:]...) //nolint:gosec // one of a few fixed programs
		p, err := spawn.Start(inside(w.server, 0), s)
		if err != nil {
			return nil, err
		}
		end = func() {
			_ = s.Process.Kill()
			_, _ = p.Wait()
		}
		for alive := true; alive; {
			if listens(p.Pid, x.port) {
				return end, nil
			}
			select {
			case <-p.Done():
				alive = false
			case <-ctx.Done():
				end()
				return nil, fmt.Errorf("%s does not listen on port %d", strings.Join(x.server, " "), x.port)
			case <-time.After(5 * time.Millisecond):
			}
		}
		end()
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s ends before it listens on port %d", strings.Join(x.server, " "), x.port)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w wire) runClient(ctx context.Context, args []string) ([]byte, error) {
	var out, said bytes.Buffer
	ran, err := spawn.Run(ctx, inside(w.client, w.last), exec.Command(args[0], args[1:]...), &out, &said) //nolint:gosec // one of a few fixed programs
	if err == nil && ran.Exit.Code != 0 {
		err = fmt.Errorf("exit code %d: %s%s", ran.Exit.Code, tail(said.Bytes()), tail(out.Bytes()))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return out.Bytes(), nil
}

// listens looks for the port in state LISTEN (0A) in the process's namespace:
// Documentation/networking/proc_net_tcp.rst. Connecting would be a session.
func listens(pid, port int) bool {
	for _, table := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) > 3 && f[3] == "0A" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				return true
			}
		}
	}
	return false
}

// driver runs tare's client with these arguments and returns its report.
func (w wire) driver(ctx context.Context, args ...string) (r netReport, err error) {
	const port = 17201
	out, err := w.between(ctx, []session{{
		port:   port,
		server: []string{w.tare, "internal", "net", "server", "--port", strconv.Itoa(port)},
		client: append([]string{
			w.tare, "internal", "net", "client", "--server", w.server.Addr.Addr().String(), "--port", strconv.Itoa(port),
			"--warmup", fmt.Sprintf("%ds", warm), "--duration", fmt.Sprintf("%ds", measured),
		}, args...),
	}})
	if err != nil {
		return r, err
	}
	return parseNet(out[0])
}

// netReport is what is used of the driver's report.
type netReport struct {
	Window     float64    `json:"window_s"`
	Bytes      float64    `json:"bytes"`
	Operations float64    `json:"operations"`
	WakeP99    float64    `json:"wake_delay_p99_s"`
	Peer       *netReport `json:"peer"`
}

func parseNet(out []byte) (r netReport, err error) {
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("the driver's report: %w", err)
	}
	if r.Window <= 0 || r.Peer == nil || r.Peer.Window <= 0 {
		return r, errors.New("the driver's report lacks an end")
	}
	return r, nil
}

// stream is bytes a second at the receiving end.
func (w wire) stream(size int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		r, err := w.driver(ctx, "--mode", "stream", "--size", strconv.Itoa(size))
		if err != nil {
			return 0, err
		}
		return r.Peer.Bytes / r.Peer.Window, nil
	}
}

// trips is round trips a second over all connections.
func (w wire) trips(size, connections int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		r, err := w.driver(ctx, "--mode", "rr", "--size", strconv.Itoa(size), "--connections", strconv.Itoa(connections))
		if err != nil {
			return 0, err
		}
		return r.Operations / r.Window, nil
	}
}
