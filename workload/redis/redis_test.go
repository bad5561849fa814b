package redis

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/param"
	"tare/workload/workloadtest"
)

// The captures were made by redis 7.0.15 (Debian 12) on two busy cores, natively.
func cases() []workloadtest.Case {
	const server = "testdata/server.txt"
	return []workloadtest.Case{
		{Name: "all", Outputs: map[string]string{"client": "testdata/all.jsonl", "server": server}},
		{Name: "one", Params: param.Values{"tests": "LRANGE_600", "duration": "300ms"}, Outputs: map[string]string{"client": "testdata/lrange_600.jsonl", "server": server}},
		{Name: "pipeline", Params: param.Values{"tests": "get, set", "pipeline": "16", "size": "1KiB", "requests": "20000"}, Outputs: map[string]string{"client": "testdata/pipeline.jsonl", "server": server}},
		{Name: "unknown test", Params: param.Values{"tests": "get,gte"}, Refused: true},
		{Name: "twice", Params: param.Values{"tests": "all,get"}, Refused: true},
		{Name: "none", Params: param.Values{"tests": " , "}, Refused: true},
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }
func FuzzParse(f *testing.F)    { workloadtest.Fuzz(f, New(), cases()...) }

// one is a report of one test with what redis-benchmark printed.
func one(csvRow string, change func(*result)) string {
	r := result{Test: "get", Requests: 1000, Calls: 1000, Hits: 1000, WarmRate: 1, CSV: `"test","rps","avg_latency_ms","p50_latency_ms","p99_latency_ms"` + "\n" + csvRow + "\n"}
	if change != nil {
		change(&r)
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

const good = `"GET","2500.00","1.5","1.25","2.75"`

func TestUnits(t *testing.T) {
	got, err := workloadtest.Parse(t, New(), "client", param.Values{"tests": "get"}, one(good, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"rate": 2500, "latency_p50": 0.00125, "latency_p99": 0.00275,
		"latency{stat=avg,test=get}": 0.0015, "latency{stat=p50,test=get}": 0.00125, "latency{stat=p99,test=get}": 0.00275,
		"requests{test=get}": 1000, "warmup_rate{test=get}": 1, "found{test=get}": 1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestAll: each test's rate is the one of its own line, not of the LPUSH that
// fills the list for LRANGE nor of another test of the same command.
func TestAll(t *testing.T) {
	b, err := os.ReadFile("testdata/all.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got, err := workloadtest.Parse(t, New(), "client", nil, string(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range tests() {
		label := strings.ToUpper(x.name)
		_, rest, ok := strings.Cut(string(b), `\n\"`+label)
		if !ok {
			t.Fatalf("the capture has no line of %s", label)
		}
		fields := strings.Split(rest, `\"`)
		var rate float64
		if err := json.Unmarshal([]byte(fields[2]), &rate); err != nil {
			t.Fatalf("%s: %v", label, err)
		}
		if got[x.name] != rate {
			t.Errorf("%s = %g, want %g", x.name, got[x.name], rate)
		}
	}
	if got["lrange_600"] >= got["lrange_100"] {
		t.Errorf("600 elements at %g a second, 100 at %g", got["lrange_600"], got["lrange_100"])
	}
}

func TestWrongAnswersFail(t *testing.T) {
	v := param.Values{"tests": "get"}
	for name, c := range map[string]struct{ text, want string }{
		"error replies":    {one(good, func(r *result) { r.Failed = 3 }), "3 of 1000 requests with an error"},
		"missing keys":     {one(good, func(r *result) { r.Hits, r.Misses = 900, 100 }), "found no value"},
		"ran empty":        {one(good, func(r *result) { r.Ran = true }), "ran out"},
		"lost requests":    {one(good, func(r *result) { r.Calls = 999 }), "999 requests of 1000"},
		"another test":     {one(good, func(r *result) { r.Test = "set" }), `reported as "set"`},
		"old benchmark":    {one("", func(r *result) { r.CSV = "\"GET\",\"2500.00\"\n" }), "6.2 or later"},
		"test not there":   {one("", nil), "does not have the test"},
		"only the filling": {one(`"GET (needed to benchmark LRANGE)","1","1","1","1"`, nil), "does not have the test"},
		"no number":        {one(`"GET","fast","1.5","1.25","2.75"`, nil), "out of range"},
		"infinite":         {one(`"GET","inf","1.5","1.25","2.75"`, nil), "out of range"},
		"negative latency": {one(`"GET","1","1.5","-1.25","2.75"`, nil), "p50_latency_ms"},
		"cut row":          {one(`"GET","1"`, nil), "2 fields"},
		"twice":            {one(good, nil) + one(good, nil), "more is printed"},
		"nothing":          {"Could not connect\n", "broken"},
	} {
		if _, err := workloadtest.Parse(t, New(), "client", v, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
	if _, err := New().Parse("server", workloadtest.Fill(t, New(), nil), strings.NewReader("oops, no redis")); err == nil {
		t.Error("any text passes for the log of a server")
	}
}

// TestChosen: the names are read in any case, and in the order written.
func TestChosen(t *testing.T) {
	ts, err := chosen("SET, lrange_100 Xadd")
	if err != nil || !slices.Equal(names(ts), []string{"set", "lrange_100", "xadd"}) {
		t.Errorf("%v, %v", names(ts), err)
	}
	if ts, err = chosen("all"); err != nil || len(ts) != len(tests()) {
		t.Errorf("all: %d tests, %v", len(ts), err)
	}
}

func TestOperationIsSaidOfOneTestOnly(t *testing.T) {
	if r := New().Responses(workloadtest.Fill(t, New(), param.Values{"tests": "set"})); r[0].Name != "rate" || r[0].Operation != "request" {
		t.Errorf("one test: %+v", r[0])
	}
	if r := New().Responses(workloadtest.Fill(t, New(), nil)); r[0].Name != "get" || r[0].Operation != "" {
		t.Errorf("all tests: %+v; the trial's calls are those of all its tests", r[0])
	}
}

// TestReal runs the driver against a server of this host.
func TestReal(t *testing.T) {
	addr := startServer(t)
	ctx := t.Context()
	o := options{server: addr, clients: 5, pipeline: 3, size: 100, keys: 50, duration: 50 * time.Millisecond, warmup: 10 * time.Millisecond}
	var err error
	if o.tests, err = chosen("all"); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := drive(ctx, o, &out); err != nil {
		t.Fatal(err)
	}
	got, err := workloadtest.Parse(t, New(), "client", nil, out.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, x := range tests() {
		if got[x.name] <= 0 || got["requests{test="+x.name+"}"] < 1000 {
			t.Errorf("%s: %g requests a second, %g in all", x.name, got[x.name], got["requests{test="+x.name+"}"])
		}
	}
}

// TestErrorReply: a server that refuses writes fails the test, in the server's own
// words.
func TestErrorReply(t *testing.T) {
	addr := startServer(t, "--maxmemory", "1mb", "--maxmemory-policy", "noeviction")
	ts, _ := chosen("set")
	err := drive(t.Context(), options{server: addr, tests: ts, clients: 5, pipeline: 1, size: 1000, keys: 1000, duration: time.Second, warmup: 10 * time.Millisecond}, &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "OOM command not allowed") || !strings.HasPrefix(err.Error(), "set: ") {
		t.Errorf("got %v", err)
	}
}

func TestNoServer(t *testing.T) {
	var errs strings.Builder
	if code := Main([]string{"--port", "1"}, &strings.Builder{}, &errs); code != 1 || !strings.Contains(errs.String(), "cannot connect to the server") {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
	if code := Main([]string{"--tests", "fly"}, &strings.Builder{}, &errs); code != 2 {
		t.Errorf("exit code %d for a test that does not exist", code)
	}
}

// startServer starts redis-server with the arguments of Roles on a port of its
// own, which it says itself.
func startServer(t *testing.T, more ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("seconds of load are too long for -short")
	}
	server, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed")
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Skip("redis-benchmark is not installed")
	}
	port := workloadtest.FreePort(t)
	roles, err := New().Roles(workloadtest.Fill(t, New(), param.Values{"port": port}))
	if err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(roles[0].Args[1:]), more...)
	args = append(args, "--bind", "127.0.0.1", "--dir", t.TempDir())
	cmd := exec.CommandContext(t.Context(), server, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan bool, 1)
	go func() {
		buf, seen := make([]byte, 4096), ""
		for {
			n, err := out.Read(buf)
			if seen += string(buf[:n]); strings.Contains(seen, "eady to accept") {
				ready <- true
				seen = ""
			}
			if err != nil {
				close(ready)
				return
			}
		}
	}()
	if !<-ready {
		t.Fatal("redis-server ended before it was ready")
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return "127.0.0.1:" + port
}
