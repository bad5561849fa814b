// Package iperf is the workload iperf: TCP streams with the real iperf3, for figures that can
// be compared with published ones. The workload net measures the same in more detail with
// tare's own driver.
//
// The data path: 1. Roles starts an iperf3 server, under a small keeper (keeper.go), and an
// iperf3 client, both from the image iperf3; 2. the client prints JSON, which includes the
// server's figures; 3. parse.go checks it and sums all streams; 4. Parse makes samples and
// the series.
//
// Reference: iperf3(1), https://software.es.net/iperf/invoking.html; the JSON is
// documented by its source alone (iperf_api.c, iperf_print_results).
package iperf

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
)

// New returns the workload.
func New() workload.Workload { return iperf{} }

type iperf struct{}

const (
	image   = "iperf3"
	program = "/usr/bin/iperf3"
	// ready starts the line that the server prints after listen(2).
	ready = "Server listening on"
	// shortest is the shortest interval that iperf3 reports, and points how many a
	// trial has at most.
	shortest = 100 * time.Millisecond
	points   = 600
)

func (iperf) Name() string { return "iperf" }

func (iperf) About() string {
	return "iperf3: TCP streams one way, all of them added up; the tool that most published figures of networks are from"
}

func (iperf) Params() []param.Param {
	return []param.Param{
		{Name: "direction", Type: param.Enum, Default: "upload", Words: []string{"upload", "download"}, Help: "of the data: upload is from client to server, download from server to client (iperf3 -R); which end is in the sandbox is the factor isolate"},
		{Name: "streams", Type: param.Int, Default: "1", Min: 1, Max: 128, Help: "parallel connections; iperf3 before 3.16 serves all of them in one thread an end"},
		{Name: "length", Type: param.Size, Default: "128KiB", Min: 16, Max: 1 << 20, Help: "size of each read and write"},
		{Name: "duration", Type: param.Duration, Default: "2s", Min: 1, Max: 3600, Help: "measured time, in whole seconds"},
		{Name: "warmup", Type: param.Duration, Default: "1s", Min: 0, Max: 60, Help: "load before measuring, left out by iperf3 (--omit), in whole seconds"},
		{Name: "port", Type: param.Int, Default: "5201", Min: 1, Max: 65535, Help: "TCP port of the server"},
	}
}

func (iperf) Responses(param.Values) []record.Response {
	return []record.Response{{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher, Network: true, Operation: "byte",
		Help: "payload that arrived at the receiving end, all streams together"}}
}

func (iperf) Roles(v param.Values) ([]workload.Role, error) {
	duration, warmup := v.Duration("duration"), v.Duration("warmup")
	for name, d := range map[string]time.Duration{"duration": duration, "warmup": warmup} {
		if d%time.Second != 0 {
			return nil, fmt.Errorf("%s = %s is not a whole number of seconds, which iperf3 needs", name, v.Str(name))
		}
	}
	args := []string{
		program, "--client", "{server}", "--port", v.Str("port"), "--json",
		"--parallel", v.Str("streams"), "--length", strconv.FormatInt(v.Size("length"), 10),
		"--time", whole(duration), "--omit", whole(warmup),
		"--interval", strconv.FormatFloat(max(shortest, (duration+warmup)/points).Seconds(), 'f', 1, 64),
		// Report a server that does not answer within seconds, not by the trial's timeout.
		"--connect-timeout", "5000",
	}
	if v.Str("direction") == "download" {
		args = append(args, "--reverse")
	}
	return []workload.Role{
		{
			// iperf3 would take a Probe for a client. It serves one client at a time, and logs an
			// error for each silent one. So its output line shows when it is ready.
			Name: "server", Mode: workload.Exec, Background: true, Image: image, Ready: ready,
			Args: []string{"/tare", "internal", "iperf", "--port", v.Str("port")},
		},
		{Name: "client", Mode: workload.Exec, Image: image, Args: args, Warmup: warmup, Expect: duration},
	}, nil
}

func whole(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// Parse reads the client's JSON, which has the server's figures. The server's text only shows
// that it was ready.
func (iperf) Parse(role string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	if role == "server" {
		b, err := output.Read(out)
		if err == nil && !strings.Contains(string(b), ready) {
			err = fmt.Errorf("it printed no %q", ready)
		}
		if err != nil {
			return rd, fmt.Errorf("the iperf3 server: %w", err)
		}
		return rd, nil
	}
	r, err := read(out)
	if err != nil {
		return rd, fmt.Errorf("iperf3: %w", err)
	}
	if err := r.check(v); err != nil {
		return rd, fmt.Errorf("iperf3: %w", err)
	}
	if err := r.reading(&rd); err != nil {
		return record.Reading{}, fmt.Errorf("iperf3: %w", err)
	}
	return rd, nil
}
