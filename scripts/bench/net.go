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
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/network"
	"tare/internal/rootfs"
	"tare/internal/spawn"
	"tare/sandbox"
)

// Each run loads for a second, of which nothing is counted, and measures one:
// many short rounds cancel a neighbour's load better than a few long ones.
const warm, measured = 1, 1

// net compares the network driver with iperf3 (streams) and qperf (round
// trips) between two namespaces on tare's bridge, as two sandboxes of the kind
// process have them. TCP_NODELAY is set on both sides.
func (b *bench) net(ctx context.Context) (_ []row, err error) {
	release, err := b.hold(ctx, "net")
	if err != nil {
		return nil, err
	}
	defer release()
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
		row
		ours, peer func(context.Context) (float64, error)
		needs      string
	}{
		{row{Figure: "TCP stream of 64 KiB writes", Unit: "B/s"}, w.stream(65536), w.iperf3(65536), "iperf3"},
		{row{Figure: "TCP stream of 256 B writes", Unit: "B/s"}, w.stream(256), w.iperf3(256), "iperf3"},
		{row{Figure: "TCP round trip of 1 B, both ends on one CPU", Unit: "s"}, one.roundTrip, one.qperf, "qperf"},
		{row{Figure: "TCP round trip of 1 B, the ends on two CPUs", Unit: "s"}, w.roundTrip, w.qperf, "qperf"},
	} {
		if _, ok := rootfs.Lookup(m.needs); !ok {
			m.peer, m.Note = nil, m.needs+" is not installed: nothing beside it"
		}
		var pairs []pair
		for i := range b.wants(6) {
			p, err := inTurn(ctx, i, m.ours, m.peer)
			if err != nil {
				return rows, err
			}
			pairs = append(pairs, p)
		}
		if m.peer == nil {
			ours, _ := sides(pairs)
			m.Tare, m.Rounds = quantile(ours, 0.5), len(pairs)
			rows = append(rows, m.row)
			continue
		}
		rows = append(rows, m.beside("ratio", m.needs, pairs))
	}
	return rows, nil
}

// inTurn measures one pair; every second round begins with the peer.
func inTurn(ctx context.Context, round int, ours, peer func(context.Context) (float64, error)) (p pair, err error) {
	if peer == nil {
		p.ours, err = ours(ctx)
		return p, err
	}
	if round%2 == 1 {
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

// between starts the server, runs the client when it listens, and returns what
// the client printed.
func (w wire) between(ctx context.Context, port int, server, client []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	s := exec.Command(server[0], server[1:]...) //nolint:gosec // one of four fixed programs
	p, err := spawn.Start(inside(w.server, 0), s)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = s.Process.Kill()
		_, _ = p.Wait()
	}()
	for !listens(p.Pid, port) {
		select {
		case <-p.Done():
			return nil, fmt.Errorf("%s ended before it listened", strings.Join(server, " "))
		case <-ctx.Done():
			return nil, fmt.Errorf("%s does not listen on port %d", strings.Join(server, " "), port)
		case <-time.After(5 * time.Millisecond):
		}
	}
	var out, said bytes.Buffer
	life, err := spawn.Live(ctx, inside(w.client, w.last), exec.Command(client[0], client[1:]...), &out, &said) //nolint:gosec // one of four fixed programs
	if err == nil && life.Exit.Code != 0 {
		err = fmt.Errorf("exit code %d: %s%s", life.Exit.Code, tail(said.Bytes()), tail(out.Bytes()))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(client, " "), err)
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

// driver runs tare's client in a mode and returns its report.
func (w wire) driver(ctx context.Context, mode string, size int) (r netReport, err error) {
	const port = 17201
	out, err := w.between(ctx, port, []string{w.tare, "internal", "net", "server", "--port", strconv.Itoa(port)},
		[]string{
			w.tare, "internal", "net", "client", "--server", w.server.Addr.Addr().String(), "--port", strconv.Itoa(port),
			"--mode", mode, "--size", strconv.Itoa(size), "--warmup", fmt.Sprintf("%ds", warm), "--duration", fmt.Sprintf("%ds", measured),
		})
	if err != nil {
		return r, err
	}
	return parseNet(out)
}

// netReport is what is used of the driver's report.
type netReport struct {
	Window     float64    `json:"window_s"`
	Bytes      float64    `json:"bytes"`
	Operations float64    `json:"operations"`
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
		r, err := w.driver(ctx, "stream", size)
		if err != nil {
			return 0, err
		}
		return r.Peer.Bytes / r.Peer.Window, nil
	}
}

// roundTrip is the mean: qperf gives no other.
func (w wire) roundTrip(ctx context.Context) (float64, error) {
	r, err := w.driver(ctx, "rr", 1)
	if err != nil {
		return 0, err
	}
	return r.Window / r.Operations, nil
}

func (w wire) iperf3(size int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		out, err := w.between(ctx, 5201, []string{"iperf3", "--server", "--one-off"}, []string{
			"iperf3", "--client", w.server.Addr.Addr().String(), "--no-delay", "--json",
			"--length", strconv.Itoa(size), "--omit", strconv.Itoa(warm), "--time", strconv.Itoa(measured),
		})
		if err != nil {
			return 0, err
		}
		return parseIperf3(out)
	}
}

// parseIperf3 reads the receiver's sum, in bytes a second.
func parseIperf3(out []byte) (float64, error) {
	var r struct {
		End struct {
			Received struct {
				Bits float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return 0, fmt.Errorf("iperf3's JSON: %w", err)
	}
	if r.End.Received.Bits <= 0 {
		return 0, errors.New("iperf3's JSON says that nothing was received")
	}
	return r.End.Received.Bits / 8, nil
}

// qperf gives half a round trip, as networking tools often do.
func (w wire) qperf(ctx context.Context) (float64, error) {
	out, err := w.between(ctx, 19765, []string{"qperf"}, []string{
		"qperf", w.server.Addr.Addr().String(), "--time", strconv.Itoa(warm + measured), "--msg_size", "1", "--precision", "6", "tcp_lat",
	})
	if err != nil {
		return 0, err
	}
	half, err := parseQperf(out)
	return 2 * half, err
}

// parseQperf reads "    latency  =  8.30123 us", in seconds.
func parseQperf(out []byte) (float64, error) {
	units := map[string]float64{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "sec": 1}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] != "latency" || f[1] != "=" {
			continue
		}
		x, err := strconv.ParseFloat(f[2], 64)
		if err == nil && x > 0 && units[f[3]] > 0 {
			return x * units[f[3]], nil
		}
	}
	return 0, fmt.Errorf("qperf said no latency: %s", tail(out))
}
