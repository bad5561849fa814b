package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// iperf3 is bytes a second at the receiving end.
func (w wire) iperf3(size int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		out, err := w.between(ctx, []session{{port: 5201, server: []string{"iperf3", "--server", "--one-off"}, client: []string{
			"iperf3", "--client", w.server.Addr.Addr().String(), "--no-delay", "--json",
			"--length", strconv.Itoa(size), "--omit", strconv.Itoa(warm), "--time", strconv.Itoa(measured),
		}}})
		if err != nil {
			return 0, err
		}
		return parseIperf3(out[0])
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

// qperfTrips is round trips a second. qperf has one connection, so that several
// are as many servers and clients.
func (w wire) qperfTrips(size, connections int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		out, err := w.qperf(ctx, "tcp_lat", size, connections)
		if err != nil {
			return 0, err
		}
		sum := 0.0
		for _, o := range out {
			half, err := parseQperf(o, "latency", map[string]float64{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "sec": 1})
			if err != nil {
				return 0, err
			}
			sum += 1 / (2 * half) // it gives half a round trip, as networking tools often do
		}
		return sum, nil
	}
}

// qperfStream is bytes a second at the receiving end.
func (w wire) qperfStream(size int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		out, err := w.qperf(ctx, "tcp_bw", size, 1)
		if err != nil {
			return 0, err
		}
		return parseQperf(out[0], "bw", map[string]float64{"bytes/sec": 1, "KB/sec": 1e3, "MB/sec": 1e6, "GB/sec": 1e9})
	}
}

func (w wire) qperf(ctx context.Context, test string, size, connections int) ([][]byte, error) {
	var sessions []session
	for i := range connections {
		port := 19765 + i
		sessions = append(sessions, session{
			port:   port,
			server: []string{"qperf", "--listen_port", strconv.Itoa(port)},
			client: []string{
				"qperf", w.server.Addr.Addr().String(), "--listen_port", strconv.Itoa(port), "--time", strconv.Itoa(warm + measured),
				"--msg_size", strconv.Itoa(size), "--precision", "6", test,
			},
		})
	}
	return w.between(ctx, sessions)
}

// parseQperf reads one value, such as "    latency  =  8.30123 us", in the base
// unit that units leads to.
func parseQperf(out []byte, name string, units map[string]float64) (float64, error) {
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] != name || f[1] != "=" {
			continue
		}
		x, err := strconv.ParseFloat(f[2], 64)
		if err == nil && x > 0 && units[f[3]] > 0 {
			return x * units[f[3]], nil
		}
	}
	return 0, fmt.Errorf("qperf said no %s: %s", name, tail(out))
}
