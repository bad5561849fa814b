// Package netload is the workload "net": tare's own network driver. Both ends use the static
// binary, so the same code runs under every isolation.
//
// The data path: 1. Roles writes the command lines of a server and a client;
// 2. the client tells the server the configuration over a control connection,
// and both open the data connections (control.go); 3. one locked thread a
// connection runs a hot loop at each endpoint (hot.go) while a coordinator takes
// 50 ms intervals (bench.go); 4. each endpoint prints a report of one line of JSON
// (report.go), the client's with the server's inside, after comparing the two
// ends' counts; 5. Parse reads the reports (parse.go).
//
// With a profile of uperf, steps 2 and 3 differ: each endpoint makes a program of the text
// (program.go), the client leads its transactions one by one (profile.go, profileserver.go),
// strands run the flowops (strand.go, transfer.go, connection.go), and score.go sums them.
package netload

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
)

const defaultPort = 17201

// Workload is the workload "net". The zero value is ready.
type Workload struct{}

var _ workload.Workload = Workload{}

// Name is "net".
func (Workload) Name() string { return "net" }

// About is one sentence.
func (Workload) About() string {
	return "TCP streams, TCP and UDP request/response with our own driver at both ends: throughput, rate, latency"
}

// Params are the driver's parameters.
func (Workload) Params() []param.Param {
	return []param.Param{
		{Name: "mode", Type: param.Enum, Default: "rr", Words: []string{"rr", "stream"},
			Help: "rr: request and response, one outstanding a connection; stream: one way, as fast as it goes"},
		{Name: "protocol", Type: param.Enum, Default: "tcp", Words: []string{"tcp", "udp"}, Help: "udp is for mode rr"},
		{Name: "size", Type: param.Size, Default: "auto", Words: []string{"auto"}, Min: 1, Max: maxMessage,
			Help: "of a message, and of each read and write; auto: 64 B in mode rr, 64 KiB in mode stream; UDP at most 65507"},
		{Name: "reply", Type: param.Size, Default: "0", Min: 0, Max: maxMessage, Help: "size of the reply in mode rr; 0: as the request"},
		{Name: "connections", Type: param.Int, Default: "1", Min: 1, Max: maxConnections, Help: "each with a thread of its own at both ends"},
		{Name: "neighbours", Type: param.Int, Default: "0", Min: 0, Max: maxNeighbours,
			Help: "UDP: each request goes to one of so many addresses of the server, at random, as to so many machines; each takes an entry of the client's ARP table. 0: to its one address"},
		{Name: "direction", Type: param.Enum, Default: "upload", Words: []string{"upload", "download"},
			Help: "of a stream: upload is from client to server"},
		{Name: "rate", Type: param.Float, Offered: true, Default: "0", Min: 0, Max: maxRate,
			Help: "operations a second over all connections, timed from their scheduled start (open loop); 0: each follows the last (closed loop)"},
		{Name: "spin", Type: param.Duration, Default: "50us", Min: 0, Max: maxSpin.Seconds(),
			Help: "open loop: the end of each wait, spent looking at the clock so that the wake-up is not late; at most a quarter of a core in all"},
		{Name: "warmup", Type: param.Duration, Default: "500ms", Min: 0, Max: 600, Help: "load before measuring begins"},
		{Name: "duration", Type: param.Duration, Default: "2s", Min: 0, Max: 3000, Help: "measured time; used when count is 0"},
		{Name: "count", Type: param.Int, Default: "0", Min: 0, Max: 1e12, Help: "operations to measure over all connections; 0: by duration"},
		{Name: "nodelay", Type: param.Bool, Default: "true", Help: "TCP_NODELAY at both ends; false: Nagle's algorithm, as iperf3 has it"},
		{Name: "profile", Type: param.File, Help: "a profile of uperf, run in the place of a mode: docs/workloads/uperf.md; beside it only vars, spin, port and timeout have a meaning"},
		{Name: "vars", Type: param.String, Help: "values of the profile's $variables: nthr=4 size=8k"},
		{Name: "port", Type: param.Int, Default: strconv.Itoa(defaultPort), Min: 1, Max: 65535, Help: "TCP port of the server"},
		{Name: "timeout", Type: param.Duration, Default: "5s", Min: 0.1, Max: 600, Help: "give up when nothing moves for so long"},
	}
}

// Responses returns throughput for a stream, rate and latency for rr. In the open loop the rate
// is given and the tail matters, so p99 comes first.
func (Workload) Responses(v param.Values) []record.Response {
	if v.Str("profile") != "" {
		return profileResponses(v)
	}
	if v.Str("mode") == "stream" {
		return []record.Response{{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher, Network: true, Operation: "byte",
			Help: "payload that arrived at the receiving end"}}
	}
	rate := record.Response{Name: "rate", Unit: record.PerSecond, Better: record.Higher, Operation: "request", Help: "round trips over all connections"}
	lat := func(name, help string) record.Response {
		return record.Response{Name: name, Unit: record.Second, Better: record.Lower, Help: help}
	}
	p50, p99, p999 := lat("latency_p50", "median round trip"), lat("latency_p99", "99th percentile"), lat("latency_p999", "99.9th percentile")
	mean := lat("latency_mean", "mean round trip")
	if v.Float("rate") > 0 {
		rate.Better = record.Neither
		return []record.Response{p99, p50, p999, mean, rate}
	}
	return []record.Response{rate, p50, p99, p999, mean}
}

// Roles are a server in the background and a client.
func (Workload) Roles(v param.Values) ([]workload.Role, error) {
	if v.Str("profile") != "" {
		return profileRoles(v)
	}
	cfg := configOf(v)
	if v.Str("vars") != "" {
		return nil, inVars(errors.New("workload net: vars are of a profile; add profile: FILE, or remove vars"))
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("workload net: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	measure := seconds(cfg.Duration)
	if cfg.Count > 0 {
		// By count the time is not known: 50 us an operation and connection is between a native and
		// an emulated round trip.
		per := 50 * time.Microsecond / time.Duration(cfg.Connections)
		if cfg.Rate > 0 {
			per = seconds(1 / cfg.Rate)
		}
		measure = time.Duration(math.Min(float64(per)*float64(cfg.Count), float64(maxTime)))
	}
	port := strconv.Itoa(v.Int("port"))
	num := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	// Go interrupts a thread every 10 ms to let others run, which would show in the tail; there
	// are no others.
	env := []string{"GODEBUG=asyncpreemptoff=1"}
	server := serverRole(port, env)
	server.Addresses = cfg.Neighbours
	roles := []workload.Role{
		server,
		{
			Name: "client", Mode: workload.Exec, Env: env, Warmup: seconds(cfg.Warmup), Expect: measure,
			Args: []string{"/tare", "internal", "net", "client", "--server", "{server}", "--port", port,
				"--mode", cfg.Mode, "--protocol", cfg.Protocol, "--direction", cfg.Direction,
				"--size", strconv.Itoa(cfg.Size), "--reply", strconv.Itoa(cfg.Reply),
				"--connections", strconv.Itoa(cfg.Connections), "--rate", num(cfg.Rate), "--spin", seconds(cfg.Spin).String(),
				"--count", strconv.FormatInt(cfg.Count, 10), "--nodelay=" + strconv.FormatBool(cfg.NoDelay),
				"--warmup", seconds(cfg.Warmup).String(), "--duration", seconds(cfg.Duration).String(),
				"--timeout", seconds(cfg.Timeout).String()},
		},
	}
	if cfg.Neighbours > 0 {
		roles[1].Args = append(roles[1].Args, "--neighbours", strconv.Itoa(cfg.Neighbours), "--addresses", "{server/more}")
	}
	return roles, nil
}

func serverRole(port string, env []string) workload.Role {
	return workload.Role{
		Name: "server", Mode: workload.Exec, Background: true, Ready: ready, Env: env,
		Args: []string{"/tare", "internal", "net", "server", "--port", port},
	}
}

// sizeOf resolves the word auto. A stream of small messages shows the cost of system calls, not
// of the network, so it is not the default.
func sizeOf(v param.Values) int {
	switch {
	case v.Str("size") != "auto":
		return int(v.Size("size"))
	case v.Str("mode") == "stream":
		return 64 << 10
	}
	return 64
}

func configOf(v param.Values) config {
	return config{
		Version: protocolVersion, Mode: v.Str("mode"), Protocol: v.Str("protocol"), Direction: v.Str("direction"),
		Size: sizeOf(v), Reply: int(v.Size("reply")), Connections: v.Int("connections"), Neighbours: v.Int("neighbours"),
		Rate: v.Float("rate"), Count: int64(v.Int("count")), NoDelay: v.Bool("nodelay"),
		Warmup: v.Duration("warmup").Seconds(), Duration: v.Duration("duration").Seconds(),
		Timeout: v.Duration("timeout").Seconds(), Spin: v.Duration("spin").Seconds(),
	}
}
