// Package iperf is the workload iperf: TCP streams by the real iperf3, for
// figures that can be held against others made with it. The workload net measures the
// same with a driver of our own, finer.
//
// The data path: 1. Roles starts an iperf3 server, under a small keeper
// (keeper.go), as one end and an iperf3 client as the other, both from the image
// iperf3; 2. the client prints JSON, with the server's figures in it that it was
// sent at the end; 3. parse.go checks it and adds up all streams; 4. Parse makes
// samples and the series of it.
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
	// ready is the line of the server that it prints after listen(2).
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
	return []record.Response{{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher, Operation: "byte",
		Help: "payload that arrived at the receiving end, all streams together"}}
}

func (iperf) Roles(v param.Values) ([]workload.Role, error) {
	duration, warmup := v.Duration("duration"), v.Duration("warmup")
	for name, d := range map[string]time.Duration{"duration": duration, "warmup": warmup} {
		if d%time.Second != 0 {
			return nil, fmt.Errorf("%s = %s is not a whole number of seconds, and iperf3 takes no other", name, v.Str(name))
		}
	}
	args := []string{
		program, "--client", "{server}", "--port", v.Str("port"), "--json",
		"--parallel", v.Str("streams"), "--length", strconv.FormatInt(v.Size("length"), 10),
		"--time", whole(duration), "--omit", whole(warmup),
		"--interval", strconv.FormatFloat(max(shortest, (duration+warmup)/points).Seconds(), 'f', 1, 64),
		// A server that does not answer is told within seconds, not by the trial's
		// timeout.
		"--connect-timeout", "5000",
	}
	if v.Str("direction") == "download" {
		args = append(args, "--reverse")
	}
	return []workload.Role{
		{
			// A Probe would be a client to iperf3, of which it serves one at a time and
			// complains of each that says nothing. So its own line tells when it is ready.
			Name: "server", Mode: workload.Exec, Background: true, Image: image, Ready: ready,
			Args: []string{"/tare", "internal", "iperf", "--port", v.Str("port")},
		},
		{Name: "client", Mode: workload.Exec, Image: image, Args: args, Warmup: warmup, Expect: duration},
	}, nil
}

func whole(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// Parse reads the client's JSON. The server's text is looked at for having served
// at all: what it measured is in the client's.
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
