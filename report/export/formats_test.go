package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"tare/record"
	"tare/store"
	"tare/study"
)

func sequence(trials []record.Trial) Trials {
	return func(yield func(record.Trial, error) bool) {
		for _, t := range trials {
			if !yield(t, nil) {
				return
			}
		}
	}
}

func testTrials() []record.Trial {
	at := time.Date(2026, 11, 20, 10, 0, 0, 5, time.UTC)
	return []record.Trial{
		{Seq: 1, Block: 1, Attempt: 1, Status: record.OK, Start: at, Duration: 1500 * time.Millisecond,
			Cell: record.Cell{{Factor: "workload", Value: "net"}, {Factor: "sandbox", Value: "vm"}, {Factor: "vcpus", Value: "2"}},
			Samples: []record.Sample{{Name: "latency", Unit: record.Second, Kind: record.Value, Value: 1e-5},
				{Name: "x", Labels: "cpu=1", Unit: record.Count, Value: math.NaN()}}},
		{Seq: 2, Block: 1, Attempt: 1, Status: record.Failed, Start: at, Cell: record.Cell{{Factor: "workload", Value: "net"}, {Factor: "sandbox", Value: "runc"}},
			Failure: &record.Failure{Phase: "run", Kind: "died", Reason: "it <died>"}},
	}
}

func TestJSONLines(t *testing.T) {
	var b bytes.Buffer
	if err := JSONLines(&b, sequence(testTrials())); err != nil {
		t.Fatal(err)
	}
	const want = `{"seq":1,"block":1,"attempt":1,"status":"ok","start":"2026-11-20T10:00:00.000000005Z","seconds":1.5,"cell":{"workload":"net","sandbox":"vm","vcpus":"2"},"samples":[{"name":"latency","labels":"","unit":"s","kind":"value","value":0.00001},{"name":"x","labels":"cpu=1","unit":"count","kind":"","value":null}],"failure":null}
{"seq":2,"block":1,"attempt":1,"status":"failed","start":"2026-11-20T10:00:00.000000005Z","seconds":0,"cell":{"workload":"net","sandbox":"runc"},"samples":[],"failure":{"phase":"run","kind":"died","reason":"it <died>"}}
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
	for line := range strings.Lines(b.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

func TestParquet(t *testing.T) {
	// More than one row group, and a trial whose factor is only seen late.
	trials := testTrials()
	for len(trials) < groupRows+10 {
		trials = append(trials, trials[0])
	}
	trials[0].Cell = trials[0].Cell[:2]
	var b bytes.Buffer
	if err := Parquet(&b, sequence(trials)); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range f.Schema().Columns() {
		names = append(names, strings.Join(c, "."))
	}
	want := strings.Fields("seq block attempt status start seconds factor:workload factor:sandbox factor:vcpus response labels unit kind value failure accelerator node")
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("columns:\n%s", d)
	}
	if n := len(f.RowGroups()); n < 2 {
		t.Errorf("%d row groups: all rows were held in memory", n)
	}
	type read struct {
		Seq      int64     `parquet:"seq"`
		Start    time.Time `parquet:"start,timestamp(nanosecond)"`
		Seconds  float64   `parquet:"seconds"`
		Sandbox  *string   `parquet:"factor:sandbox,optional"`
		VCPUs    *string   `parquet:"factor:vcpus,optional"`
		Response *string   `parquet:"response,optional"`
		Value    *float64  `parquet:"value,optional"`
		Failure  *string   `parquet:"failure,optional"`
	}
	rows, err := parquet.Read[read](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if n := 2*(len(trials)-1) + 1; len(rows) != n {
		t.Fatalf("%d rows, want %d", len(rows), n)
	}
	at := trials[0].Start
	got := []read{rows[0], rows[1], rows[2], rows[3]}
	for i := range got {
		got[i].Start = got[i].Start.UTC()
	}
	if d := cmp.Diff([]read{
		{1, at, 1.5, new("vm"), nil, new("latency"), new(1e-5), nil},
		{1, at, 1.5, new("vm"), nil, new("x"), nil, nil},
		{2, at, 0, new("runc"), nil, nil, nil, new("it <died>")},
		{1, at, 1.5, new("vm"), new("2"), new("latency"), new(1e-5), nil},
	}, got); d != "" {
		t.Error(d)
	}
}

// benchData is a study of two sandboxes, the second twice as slow, resumed on
// another machine for its last trial.
func benchData() (Bench, []record.Trial) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	b := Bench{Study: "first look", Compare: "sandbox", Baseline: "process", Sessions: []store.Session{
		{ID: 1, Started: at, Host: record.Host{Hostname: "h1", Arch: "x86_64", Threads: 2}},
		{ID: 2, Started: at.Add(time.Hour), Host: record.Host{Hostname: "h2", Arch: "arm64", Threads: 4}},
	}, Responses: map[string][]record.Response{"a/b": {
		{Name: "latency", Unit: record.Second, Better: record.Lower},
		{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher},
	}}}
	var trials []record.Trial
	for i := range 8 {
		for _, s := range []string{"vm-2", "process"} {
			slow := 1.0
			if s == "vm-2" {
				slow = 2
			}
			trials = append(trials, record.Trial{Status: record.OK, Session: 1, Start: at.Add(time.Minute),
				Cell: record.Cell{{Factor: "workload", Value: "a/b"}, {Factor: "sandbox", Value: s}},
				Samples: []record.Sample{{Name: "latency", Unit: record.Second, Value: slow * (1e-5 + float64(i)*1e-9)},
					{Name: "throughput", Unit: record.BytesPerSecond, Value: 4e6 / slow}, {Name: "not_compared", Unit: record.Count, Value: 1}}})
		}
	}
	failed := trials[1]
	failed.Status = record.Failed
	nan := trials[0]
	nan.Session, nan.Start = 2, at.Add(-time.Hour) // that machine's clock was late
	nan.Samples = []record.Sample{{Name: "latency", Value: math.NaN()}, {Name: "throughput", Value: 1}}
	return b, append(trials, failed, nan)
}

func TestGoBench(t *testing.T) {
	b, trials := benchData()
	var out bytes.Buffer
	counting := trials[1] // its figures are slowed
	counting.Cell = study.CountingCell(counting.Cell)
	if err := GoBench(&out, b, sequence(append(trials[:2:2], append(trials[16:18:18], counting)...))); err != nil {
		t.Fatal(err)
	}
	const want = `study: first look
Unit latency-sec/op better=lower
Unit throughput-B/s better=higher
host: h1
os: 
kernel: 
arch: x86_64
cpu: 
threads: 2
virtualization: 
BenchmarkTrial/workload=a%2Fb/sandbox=process	1	1e-05 latency-sec/op	4e+06 throughput-B/s
BenchmarkTrial/workload=a%2Fb/sandbox=vm%2D2	1	2e-05 latency-sec/op	2e+06 throughput-B/s
host: h2
os: 
kernel: 
arch: arm64
cpu: 
threads: 4
virtualization: 
BenchmarkTrial/workload=a%2Fb/sandbox=vm%2D2	1	1 throughput-B/s
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
	// A trial of no known session is of no known machine, not of the last one.
	trials[0].Session = 7
	out.Reset()
	if err := GoBench(&out, b, sequence(append(trials[:2:2], trials[17]))); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "host: \nos: \nkernel: \narch: \ncpu: \nthreads: \n") {
		t.Errorf("a trial of no known session:\n%s", out.String())
	}
}

const benchstat = "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"

// TestGoBenchBenchstat has benchstat itself read the format, and find the ratio.
// The accelerator stands once, over all lines, so that it sets none apart.
func TestGoBenchAccelerator(t *testing.T) {
	trials := testTrials()[:1]
	base, other := trials[0], trials[0]
	base.Cell = record.Cell{{Factor: "workload", Value: "net"}, {Factor: "sandbox", Value: "process"}}
	trials[0].Facts = map[string]string{"server.accelerator": "tcg", "client.accelerator": "tcg"}
	other.Facts = map[string]string{"server.accelerator": "kvm"}
	b := Bench{Study: "x", Compare: "sandbox", Baseline: "process", Responses: map[string][]record.Response{"net": {{Name: "latency", Unit: record.Second}}}}
	for want, of := range map[string][]record.Trial{
		"study: x\naccelerator: vm=tcg\n":     {base, trials[0]},
		"study: x\naccelerator: vm=kvm+tcg\n": {trials[0], other, base},
		"study: x\nBenchmark":                 {base},
	} {
		var out strings.Builder
		if err := GoBench(&out, b, sequence(of)); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), "accelerator") != strings.Count(want, "accelerator") {
			t.Errorf("want %q at the top:\n%s", want, out.String())
		}
	}
}

func TestGoBenchBenchstat(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	bin := exec.CommandContext(ctx, "go", "install", benchstat)
	bin.Dir, bin.Env = dir, append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if msg, err := bin.CombinedOutput(); err != nil {
		t.Skipf("benchstat cannot be had: %v: %.200s", err, msg)
	}
	b, trials := benchData()
	var text bytes.Buffer
	if err := GoBench(&text, b, sequence(trials[:16])); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "x.bench")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(dir, "benchstat"), "-col", "/sandbox", file)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("benchstat: %v\n%s", err, stderr.Bytes())
	}
	for _, want := range []string{`study: first look`, `host: h1`, `process\s+│\s+vm%2D2`, `latency-sec/op`,
		`Trial/workload=a%2Fb\s+10\.00µ ± 0%\s+20\.01µ ± 0%\s+\+100\.00% \(p=0\.000 n=8\)`, `throughput-B/s`, `-50\.00% \(p=0\.000 n=8\)`} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("benchstat does not say %s:\n%s", want, out)
		}
	}
}

func TestOpenMetrics(t *testing.T) {
	res := testResult()
	res.Study = "a \"b\"\\\n"
	res.Compared[1].Cell = append(res.Compared[1].Cell, record.Level{Factor: "unit", Value: "u"}, record.Level{Factor: "msg.size", Value: "1"}, record.Level{Factor: "msg-size", Value: "2"})
	var b bytes.Buffer
	if err := OpenMetrics(&b, res); err != nil {
		t.Fatal(err)
	}
	const labels = `{study="a \"b\"\\\n",response="latency",unit="s",workload="net",sandbox="runc",factor_unit="u",msg_size="1",factor_msg_size="2"}`
	for _, want := range []string{"tare_value" + labels + " 2e-05\n", "tare_ratio" + labels + " 2\n", "tare_ratio_lo" + labels + " 1.9\n",
		"tare_ratio_hi" + labels + " 2.1\n", "tare_pairs" + labels + " 4\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), `sandbox="process"`); n != 1 {
		t.Errorf("the baseline is in %d samples, want its value alone", n)
	}
	if n := strings.Count(b.String(), "\ntare_ratio{"); n != 1 {
		t.Errorf("%d ratios; a skipped cell has none", n)
	}
	if err := checkMetrics(b.String()); err != nil {
		t.Errorf("%v\n%s", err, b.String())
	}
	for _, bad := range []string{strings.TrimSuffix(b.String(), "# EOF\n"), b.String() + "\n", strings.Replace(b.String(), `\"b`, `"b`, 1),
		strings.Replace(b.String(), "gauge", "gouge", 1), "tare_value{a=\"1\"} 1\n# EOF\n",
		"# TYPE a gauge\na 1\na 1\n# EOF\n", "# TYPE a gauge\na{1b=\"\"} 1\n# EOF\n", "# TYPE a gauge\na x\n# EOF\n"} {
		if checkMetrics(bad) == nil {
			t.Errorf("the checker takes\n%s", bad)
		}
	}
}

// TestOpenMetricsBound: a label says which values and ratios are bounds.
func TestOpenMetricsBound(t *testing.T) {
	for _, c := range []struct {
		level, base  bool
		value, ratio string
	}{{false, false, "", ""}, {true, false, "lower", "lower"}, {false, true, "", "upper"}, {true, true, "lower", "either"}} {
		res := testResult()
		res.Compared = res.Compared[1:2]
		res.Compared[0].Level.AtLeast, res.Compared[0].Base.AtLeast = c.level, c.base
		var b bytes.Buffer
		if err := OpenMetrics(&b, res); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"tare_value": c.value, "tare_ratio": c.ratio, "tare_ratio_lo": c.ratio, "tare_ratio_hi": c.ratio, "tare_pairs": ""} {
			label := ""
			if want != "" {
				label = `,bound="` + want + `"`
			}
			if line := regexp.MustCompile(`(?m)^` + name + `\{.*sandbox="runc"` + label + `\} `); !line.MatchString(b.String()) {
				t.Errorf("%+v: no %s with %q in\n%s", c, name, label, b.String())
			}
		}
	}
}

var (
	metaLine   = regexp.MustCompile(`^# (?:TYPE ([a-z_]+) gauge|HELP ([a-z_]+) [^\\]*)$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\["\\n])*",?)*\})? (\S+)$`)
	labelName  = regexp.MustCompile(`[{,]([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\]|\\["\\n])*"`)
)

// checkMetrics holds a text to the part of the OpenMetrics grammar that gauges
// need: families whole and declared once, no sample or label twice, numbers, EOF.
func checkMetrics(text string) error {
	body, ok := strings.CutSuffix(text, "# EOF\n")
	if !ok {
		return errors.New("does not end with # EOF")
	}
	family, known, seen := "", map[string]bool{}, map[string]bool{}
	s := bufio.NewScanner(strings.NewReader(body))
	for s.Scan() {
		line := s.Text()
		if m := metaLine.FindStringSubmatch(line); m != nil {
			if m[1] != "" && known[m[1]] || m[2] != "" && m[2] != family {
				return errors.New("a family is not whole: " + line)
			}
			if m[1] != "" {
				family, known[m[1]] = m[1], true
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil || m[1] != family || seen[m[1]+m[2]] {
			return errors.New("bad, stray or double sample: " + line)
		}
		seen[m[1]+m[2]] = true
		labels := map[string]bool{}
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			if labels[l[1]] {
				return errors.New("a label twice: " + line)
			}
			labels[l[1]] = true
		}
		if _, err := strconv.ParseFloat(m[3], 64); err != nil {
			return err
		}
	}
	return s.Err()
}

var errRead = errors.New("damaged")

// TestSourceErrors: trials that cannot be read are no short export.
func TestSourceErrors(t *testing.T) {
	broken := func(yield func(record.Trial, error) bool) {
		_ = yield(testTrials()[0], nil) && yield(record.Trial{}, errRead)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"csv":     func(b *bytes.Buffer) error { return TrialsCSV(b, broken) },
		"jsonl":   func(b *bytes.Buffer) error { return JSONLines(b, broken) },
		"parquet": func(b *bytes.Buffer) error { return Parquet(b, broken) },
		"gobench": func(b *bytes.Buffer) error { return GoBench(b, Bench{}, broken) },
	} {
		if err := write(&bytes.Buffer{}); !errors.Is(err, errRead) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"jsonl":       JSONLines(full{}, sequence(testTrials())),
		"parquet":     Parquet(full{}, sequence(testTrials())),
		"gobench":     GoBench(full{}, Bench{Study: "x"}, sequence(testTrials())),
		"openmetrics": OpenMetrics(full{}, testResult()),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s, disk full: %v", name, err)
		}
	}
}
