// Package redis is the workload redis: the real redis-server under the real redis-benchmark, one
// test after the other.
//
// The data path: 1. Roles starts redis-server without persistence, from the image
// redis, as one end, and `/tare internal redis` from the same image as the other; 2. that
// program (driver.go) empties the database for each test, fills in what the test needs, runs
// redis-benchmark for a short time to warm up and to find the rate, then with as many requests
// as fill the measured time, and reads the server's counts; 3. it prints one line of JSON for
// each test, which contains redis-benchmark's CSV; 4. Parse reads them (parse.go).
//
// redis-benchmark takes a number of requests, not a time. The same number in every sandbox would
// take ten times as long in one as in another, and be too short in the fastest, so the number is
// computed from the time. A rate does not depend on it, because the cost of a request does not
// depend on earlier ones.
//
// Reference: redis-benchmark(1),
// https://redis.io/docs/latest/operate/oss_and_stack/management/optimization/benchmarks/.
package redis

import (
	"strconv"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/servers"
)

// New returns the workload.
func New() workload.Workload { return redis{} }

type redis struct{}

const (
	// perTest is a guess of a test's time in addition to its warm-up and measured time: emptying,
	// filling, two starts of redis-benchmark.
	perTest = 400 * time.Millisecond
	// slowRate, requests a second, is the lowest expected rate, for a fixed number of requests.
	slowRate = 10000
	// maxRequests bounds one run of redis-benchmark, and so what is filled in for it.
	maxRequests = 20_000_000
	operation   = "request"
)

func (redis) Name() string { return "redis" }

func (redis) About() string {
	return "redis-server and redis-benchmark: many small requests over the network; shows what an isolation costs a server that mostly makes system calls"
}

func (redis) Params() []param.Param {
	return []param.Param{
		{Name: "tests", Type: param.String, Default: "all", Help: "all, or some of redis-benchmark's tests joined by commas (get,set,lrange_100); with exactly one, as levels of a factor, its response is called rate"},
		{Name: "clients", Type: param.Int, Default: "50", Min: 1, Max: 5000, Help: "connections, each with one request, or one pipeline of them, under way"},
		{Name: "pipeline", Type: param.Int, Default: "1", Min: 1, Max: 10000, Help: "requests sent together on a connection"},
		{Name: "size", Type: param.Size, Default: "3", Min: 1, Max: 1 << 20, Help: "of a value, in bytes"},
		{Name: "keys", Type: param.Int, Default: "10000", Min: 1, Max: 10_000_000, Help: "different keys, members and fields that requests name at random"},
		{Name: "duration", Type: param.Duration, Default: "500ms", Min: 0.05, Max: 3600, Help: "measured time of each test, about: the number of requests is made from it and the rate seen while warming up"},
		{Name: "warmup", Type: param.Duration, Default: "100ms", Min: 0.01, Max: 600, Help: "load before each test is measured, at least"},
		{Name: "requests", Type: param.Int, Default: "0", Min: 0, Max: maxRequests, Help: "of each test; 0: by duration"},
		{Name: "port", Type: param.Int, Default: "6379", Min: 1, Max: 65535, Help: "TCP port of the server"},
	}
}

// Responses returns the rate of each test under its name. A single test has its rate and latency
// under names that are the same for all tests, so that tests can be a factor.
func (redis) Responses(v param.Values) []record.Response {
	ts, err := chosen(v.Str("tests"))
	if err != nil {
		ts = tests()
	}
	rate := func(name, help string) record.Response {
		return record.Response{Name: name, Unit: record.PerSecond, Better: record.Higher, Help: help + ", all connections together"}
	}
	if len(ts) == 1 {
		// Only with one test can the trial's figures be divided by its requests.
		one := rate("rate", ts[0].about)
		one.Operation = operation
		return []record.Response{
			one,
			{Name: "latency_p50", Unit: record.Second, Better: record.Lower, Help: "median time of a request, as redis-benchmark sees it"},
			{Name: "latency_p99", Unit: record.Second, Better: record.Lower, Help: "99th percentile of the time of a request"},
		}
	}
	out := make([]record.Response, len(ts))
	for i, t := range ts {
		out[i] = rate(t.name, t.about)
	}
	return out
}

func (redis) Roles(v param.Values) ([]workload.Role, error) {
	ts, err := chosen(v.Str("tests"))
	if err != nil {
		return nil, err
	}
	server := servers.Redis(v.Int("port"))
	warmup, measured := v.Duration("warmup"), v.Duration("duration")
	if n := v.Int("requests"); n > 0 {
		measured = time.Duration(n) * time.Second / slowRate
	}
	// With several tests, no part of the time is free of warm-ups. With one test, the measured
	// run begins about then, which collectors use.
	before := 2*warmup + 100*time.Millisecond
	expect := time.Duration(len(ts))*(perTest+before+measured) - before
	return []workload.Role{
		{
			Name: "server", Mode: workload.Exec, Background: true,
			Image: server.Image, Args: server.Args, Probe: &server.Probe,
		},
		{
			Name: "client", Mode: workload.Exec, Image: server.Image, Warmup: before, Expect: expect,
			Args: []string{
				"/tare", "internal", "redis", "--server", "{server}", "--port", v.Str("port"),
				"--tests", join(ts), "--clients", v.Str("clients"), "--pipeline", v.Str("pipeline"),
				"--size", strconv.FormatInt(v.Size("size"), 10), "--keys", v.Str("keys"),
				"--duration", v.Duration("duration").String(), "--warmup", warmup.String(), "--requests", v.Str("requests"),
			},
		},
	}, nil
}

func join(ts []test) string {
	s := ts[0].name
	for _, t := range ts[1:] {
		s += "," + t.name
	}
	return s
}
