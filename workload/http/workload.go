// Package httpload is the workloads http.node, http.ruby, http.httpd and
// http.nginx: an HTTP server in one sandbox, a generator of load in another.
//
// The data path: 1. Roles writes the command line of the real server (roles.go) and that of
// the client, which is this binary; 2. the client requests one answer to find its length
// (exchange.go, tls.go), then loads the server: closed loop with wrk, which it starts and watches
// (closed.go, wrk.lua), open loop by threads of its own (open.go, lane.go, answer.go); 3. it judges
// every answer, fails with a reason if one was wrong (verdict.go), and prints a report of one
// line of JSON (report.go); 4. Parse reads that (parse.go) and removes the values that wrk adds
// to its latencies (correction.go).
package httpload

import (
	"tare/param"
	"tare/record"
	"tare/workload"
)

// Workload is one of the four. Make it with Node, Ruby, Httpd or Nginx.
type Workload struct{ server server }

var _ workload.Workload = Workload{}

// Node is http.node: Express renders an EJS template.
func Node() Workload { return Workload{node} }

// Ruby is http.ruby: Sinatra on Puma renders an ERB template.
func Ruby() Workload { return Workload{ruby} }

// Httpd is http.httpd: Apache serves one file.
func Httpd() Workload { return Workload{httpd} }

// Nginx is http.nginx: nginx serves one file.
func Nginx() Workload { return Workload{nginx} }

// server names the program that answers.
type server string

const (
	node  server = "node"
	ruby  server = "ruby"
	httpd server = "httpd"
	nginx server = "nginx"
)

// renders reports whether the server computes its answer; the others send a file.
func (s server) renders() bool { return s == node || s == ruby }

// Name is "http." and the server.
func (w Workload) Name() string { return "http." + string(w.server) }

// About is one sentence.
func (w Workload) About() string {
	switch w.server {
	case node:
		return "a Node.js service (Express) that renders a template, under load by wrk or at a rate"
	case ruby:
		return "a Ruby service (Sinatra on Puma) that renders a template, under load by wrk or at a rate"
	case httpd:
		return "Apache httpd that serves one file, under load by wrk or at a rate"
	default:
		return "nginx that serves one file, under load by wrk or at a rate"
	}
}

// Bounds of the parameters.
const (
	maxConnections = 1024
	maxRate        = 1e5
	maxTime        = 3000 // seconds
	maxTexts       = 100
	maxFile        = 64 << 20
)

// Params are the load's, then the server's.
func (w Workload) Params() []param.Param {
	out := []param.Param{
		{Name: "load", Type: param.Enum, Default: "closed", Words: []string{"closed", "open"},
			Help: "closed: each connection sends its next request when it has an answer (wrk); open: requests are due at a rate, even if answers are late (tare itself)"},
		{Name: "connections", Type: param.Int, Default: "25", Min: 1, Max: maxConnections, Help: "kept open all the time; in the open loop at most so many"},
		{Name: "rate", Type: param.Float, Offered: true, Default: "0", Min: 0, Max: maxRate, Help: "open loop: requests a second over all connections"},
		{Name: "threads", Type: param.Int, Default: "1", Min: 1, Max: 64, Help: "of wrk; they share the connections evenly"},
		{Name: "warmup", Type: param.Duration, Default: "1s", Min: 0, Max: 600, Help: "load before measuring begins, by a process of its own in the closed loop"},
		{Name: "duration", Type: param.Duration, Default: "5s", Min: 0.1, Max: maxTime, Help: "measured time"},
		{Name: "timeout", Type: param.Duration, Default: "5s", Min: 1, Max: 60, Help: "an answer that takes longer fails the trial"},
		{Name: "check", Type: param.Enum, Default: "totals", Words: []string{"totals", "every"},
			Help: "closed loop: length of answers by wrk's totals, or of each by a script, which costs wrk processor time"},
	}
	workers := param.Param{Name: "workers", Type: param.Int, Default: "1", Min: 1, Max: 1024, Help: "processes of the server that answer"}
	threads := param.Param{Name: "server-threads", Type: param.Int, Default: "5", Min: 1, Max: 1024, Help: "threads of each worker of the server"}
	if w.server.renders() {
		if i := len(out) - 1; out[i].Name == "check" {
			out[i].Default = "every" // of a page of 4 KiB it costs little
		}
		out = append(out, workers, param.Param{Name: "texts", Type: param.Int, Default: "4", Min: 1, Max: maxTexts,
			Help: "texts of 1 KiB in the page: 4 make it 4190 B long"})
		if w.server == ruby {
			out = append(out, threads)
		}
		return out
	}
	workers.Default, workers.Max = "2", 512
	out = append(out, workers)
	if w.server == httpd {
		threads.Default, threads.Max = "64", 2*maxConnections
		threads.Help = "threads of each worker under mpm event, more than connections; prefork has none"
		out = append(out, param.Param{Name: "mpm", Type: param.Enum, Default: "event", Words: []string{"event", "prefork"},
			Help: "Apache's multi-processing module; prefork holds a whole process for each connection"}, threads)
	}
	return append(out,
		param.Param{Name: "size", Type: param.Size, Default: "100KiB", Min: 1, Max: maxFile, Help: "of the file"},
		param.Param{Name: "files", Type: param.Enum, Default: "tmpfs", Words: []string{"tmpfs", "disk"},
			Help: "where the file lies: /tmp in the server's sandbox, or /data, a bind mount of the disk"})
}

// Responses returns rate, throughput and latency. In the open loop the rate is given and the
// tail matters, so p99 comes first.
func (Workload) Responses(v param.Values) []record.Response {
	open := v.Str("load") == "open"
	rate := record.Response{Name: "rate", Unit: record.PerSecond, Better: record.Higher, Operation: "request", Help: "good answers a second"}
	through := record.Response{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher, Network: true, Operation: "byte",
		Help: "bytes of answers received, with their headers"}
	from := "from the request's sending to the end of its answer"
	if open {
		from = "from when the request was due to the end of its answer"
		rate.Better, through.Better = record.Neither, record.Neither
		rate.Operation, through.Operation = "", "" // a requested rate does not show the cost of a request
	}
	lat := func(name, help string) record.Response {
		return record.Response{Name: name, Unit: record.Second, Better: record.Lower, Help: help + ", " + from}
	}
	p50, p99 := lat("latency_p50", "median"), lat("latency_p99", "99th percentile")
	mean := lat("latency_mean", "mean")
	if open {
		return []record.Response{p99, p50, mean, rate, through}
	}
	return []record.Response{rate, p50, p99, mean, through}
}
