package html_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/analyse"
	"tare/plan"
	"tare/record"
	"tare/report/document"
	"tare/report/section"
	"tare/study"
)

// shape says which study is made up.
type shape struct {
	workloads int
	sizes     int // levels of a second factor
	fixed     int // blocks; 0: looks
	responses []string
	plain     bool                  // without histograms and series
	name      func(string) string   // what becomes of each name; nil: itself
	series    document.ReadSeries   // nil: those of made
	also      func(*analyse.Result) // changes the analysis before it is shown
	window    bool                  // trials of two seconds, of which 1.4 are measured
}

// boxes are the levels of the compared factor with what each does to a time.
// "vm" is skipped by the host; "flaky" fails.
func boxes() ([]string, map[string]float64) {
	return []string{"process", "runc", "crun", "runsc", "flaky", "vm"},
		map[string]float64{"process": 1, "runc": 1, "crun": 0.8, "runsc": 2.5, "flaky": 1.2, "vm": 1}
}

// allResponses are those that a made-up workload may have.
func allResponses() map[string]record.Response {
	return map[string]record.Response{
		"latency":    {Name: "latency", Unit: record.Second, Better: record.Lower, Help: "how long one request takes"},
		"throughput": {Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher},
		"switches":   {Name: "switches", Unit: record.PerSecond, Better: record.Neither},
		"memory":     {Name: "memory", Unit: record.Byte, Better: record.Lower},
	}
}

// document makes a document from trials of known truth: planned, played and analysed
// by the program's own packages.
func (s shape) document(t testing.TB) *document.Document {
	t.Helper()
	name := s.name
	if name == nil {
		name = func(x string) string { return x }
	}
	if s.responses == nil {
		s.responses = []string{"latency", "throughput", "switches", "memory"}
	}
	levels, effect := boxes()
	st := &study.Study{Name: name("made up"), About: name("What a made-up machine costs"), Seed: 18446744073709551615, Compare: "sandbox", Baseline: name("process"),
		Source: []byte("study: " + name("made up") + "\n"), Overrides: []string{name("budget.time=1m")},
		Stop: study.Stop{Fixed: s.fixed, Looks: []int{3, 4, 6}, Confidence: 0.95, Width: 0.015, Margin: 0.03}}
	if s.fixed > 0 {
		st.Stop.Looks = nil
	}
	var ws, sizes, bs, responses []string
	for _, r := range s.responses {
		responses = append(responses, name(r))
	}
	for w := range s.workloads {
		ws = append(ws, name(fmt.Sprintf("w%d", w)))
		st.Workloads = append(st.Workloads, study.Workload{Label: ws[w], Kind: "made", Responses: responses})
	}
	for i := range s.sizes {
		sizes = append(sizes, name(fmt.Sprintf("%dKiB", 1<<i)))
	}
	effects := map[string]float64{}
	for _, b := range levels {
		bs = append(bs, name(b))
		effects[name(b)] = effect[b]
	}
	st.Factors = []study.Factor{{Name: "workload", Levels: ws}, {Name: "size", Levels: sizes}, {Name: "sandbox", Levels: bs}}
	var skips []record.Skip
	for w := range s.workloads {
		for _, size := range sizes {
			shared := record.Cell{{Factor: "workload", Value: ws[w]}, {Factor: "size", Value: size}}
			x := study.Stratum{Key: shared.Key(), Shared: shared, Workload: w}
			for _, b := range bs {
				c := append(append(record.Cell{}, shared...), record.Level{Factor: "sandbox", Value: b})
				x.Cells = append(x.Cells, c)
				if b == name("vm") {
					skips = append(skips, record.Skip{Cell: c, Reason: "there is no /dev/kvm"})
				}
			}
			st.Strata = append(st.Strata, x)
		}
	}
	p := plan.New(st, skips, nil)
	b := document.New(st)
	var trials []record.Trial
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for {
		n, ok := p.Next()
		if !ok {
			break
		}
		box, _ := n.Cell.Get("sandbox")
		r := rand.New(rand.NewPCG(uint64(n.Seq), uint64(n.Attempt)))
		tr := record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Session: int64(1 + n.Seq/200), Cell: n.Cell, Status: record.OK, Start: at, Duration: time.Second}
		at = at.Add(1100 * time.Millisecond)
		if s.window {
			tr.Duration = 2 * time.Second
			tr.Phases = []record.Phase{{Name: "start", Duration: 400 * time.Millisecond}, {Name: "run", Offset: 400 * time.Millisecond, Duration: 1400 * time.Millisecond}}
		}
		if box == name("flaky") {
			tr.Status, tr.Failure = record.Failed, &record.Failure{Phase: "start", Kind: "died", Reason: name("it died"), Tail: name("its last words")}
		} else {
			fill(t, &tr, s, effects[box], name, r)
		}
		p.Done(&tr)
		trials = append(trials, tr)
		b.Add(&tr)
	}
	all := allResponses()
	res := analyse.Analyse(st, trials, skips, analyse.Describe(func(study.Workload) []record.Response {
		var out []record.Response
		for _, r := range s.responses {
			x := all[r]
			x.Name = name(r)
			out = append(out, x)
		}
		return out
	}))
	if s.also != nil {
		s.also(res)
	}
	in := document.Input{Tare: "test", Dir: "made-up", File: "made-up.yaml", Result: res, Sessions: []document.Session{{ID: 1, Started: "2026-03-01T12:00:00Z", Tare: "test",
		Host: record.Host{Hostname: name("host"), CPUModel: name("a processor"), Cores: 2, Threads: 2, MemoryBytes: 8 << 30, OS: name("Linux"), Kernel: "6.1", Tools: map[string]string{name("runc"): name("1.1")},
			Warnings: []record.Warning{{Code: "virtual", Text: name("this host is virtual")}}}}}}
	if !s.plain {
		in.Series = s.series
		if in.Series == nil {
			in.Series = func(tr *record.Trial, use func([]record.Series)) error { use(made(tr, name)); return nil }
		}
	}
	return b.Document(in)
}

// fill gives a good trial its values, with a drift that all cells share.
func fill(t testing.TB, tr *record.Trial, s shape, f float64, name func(string) string, r *rand.Rand) {
	drift := 1 + 0.1*math.Sin(float64(tr.Seq)/60)
	noise := func() float64 { return drift * math.Exp(0.004*r.NormFloat64()) }
	for _, x := range s.responses {
		u := allResponses()[x].Unit
		v := map[string]float64{"latency": 20e-6 * f, "throughput": 3e9 / f, "switches": 1e4 * f, "memory": 20 << 20}[x] * noise()
		tr.Samples = append(tr.Samples, record.Sample{Name: name(x), Unit: u, Value: v})
	}
	if w, _ := tr.Cell.Get("workload"); w == name("w1") && f == 0.8 { // crun
		tr.Warnings = append(tr.Warnings, record.Warning{Code: record.BelowNoise + name("memory"), Text: name("not clear of noise")})
	}
	if tr.Seq%40 == 0 {
		tr.Warnings = append(tr.Warnings, record.Warning{Code: "steady", Text: name("no steady state")})
	}
	if s.plain {
		return
	}
	h := hdrhistogram.New(1, 60e9, 3)
	for range 3000 {
		if err := h.RecordValue(int64(20e3 * f * math.Exp(0.3*r.NormFloat64()))); err != nil {
			t.Fatal(err)
		}
	}
	enc, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	tr.Histograms = []record.Histogram{{Name: name("latency"), Unit: record.Second, Scale: 1e-9, Encoded: enc}}
}

// made are counters as collectors read them.
func made(tr *record.Trial, name func(string) string) []record.Series {
	var out []record.Series
	for k, role := range []string{"workload", "sentry"} {
		x := record.Series{Name: "cpu_time", Labels: record.MakeLabels("end", "server", "role", name(role)), Unit: record.Second, Kind: record.Counter}
		for i := range 11 {
			x.T = append(x.T, time.Duration(i)*100*time.Millisecond)
			x.V = append(x.V, float64(i)*0.1*(0.3+0.2*float64(k)+0.01*float64(tr.Seq%10)))
		}
		out = append(out, x)
	}
	return out
}

// rebuild makes the sections anew that are made of the analysis, after a test has changed it.
func rebuild(d *document.Document) {
	page := section.Page(d.Result, nil)
	for _, s := range d.Sections {
		if !slices.ContainsFunc(page, func(o *section.Section) bool { return o.ID == s.ID }) {
			page = append(page, s)
		}
	}
	d.Sections, d.Plain = page, section.Plain(d.Result)
}

// small is the document of most tests: every verdict, a failed and a skipped cell.
func small(t testing.TB) *document.Document {
	t.Helper()
	return shape{workloads: 2, sizes: 2}.document(t)
}
