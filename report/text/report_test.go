package text

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	gotext "github.com/jedib0t/go-pretty/v6/text"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
	"tare/report/section"
	"tare/report/terminal"
	"tare/store"
	"tare/study"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, d)
	}
}

func testHosts() []record.Host {
	h := record.Host{Hostname: "lab1", OS: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.18.1", CPUModel: "Intel(R) Xeon(R) Processor",
		Cores: 2, MemoryBytes: 8 << 30, Virtualization: "kvm", KVM: "no /dev/kvm", Cgroups: "hybrid",
		Warnings: []record.Warning{{Code: "governor", Text: "the frequency governor cannot be read"}}}
	return []record.Host{h, h}
}

var (
	latency    = record.Response{Name: "latency_p50", Unit: record.Second, Better: record.Lower}
	throughput = record.Response{Name: "throughput", Unit: record.BytesPerSecond, Better: record.Higher}
	memory     = record.Response{Name: "memory", Unit: record.Byte, Better: record.Neither}
)

var kinds = []string{"process", "runc", "crun", "runsc-systrap", "runsc-ptrace"}

// testResult has a comparison of every sort.
func testResult() *analyse.Result {
	r := &analyse.Result{Study: "first", Compare: "sandbox", Baseline: "process", Trials: 122, Failed: 3,
		Confidence: 0.95, Level: 0.98, Margin: 0.03, Finished: true, Reason: "every comparison is decided.",
		Skips: []record.Skip{
			{Cell: record.Cell{{Factor: "workload", Value: "net"}, {Factor: "sandbox", Value: "kata"}}, Reason: "kata needs KVM, and there is no /dev/kvm; run it on a machine with hardware virtualization"},
			{Cell: record.Cell{{Factor: "workload", Value: "disk"}, {Factor: "sandbox", Value: "kata"}}, Reason: "kata needs KVM, and there is no /dev/kvm; run it on a machine with hardware virtualization"},
		},
		Warnings: []analyse.Warning{{Code: "steady", Text: "no steady state was found", Trials: 4, Cells: []string{"workload=net,sandbox=runc"}},
			{Code: "strays", Text: "some trials belong to no cell"}},
	}
	for i, k := range kinds {
		r.Treatments = append(r.Treatments, analyse.Treatment{Key: "sandbox=" + k, Cell: record.Cell{{Factor: "sandbox", Value: k}}, Baseline: i == 0})
		r.Overheads = append(r.Overheads, analyse.Overhead{Sandbox: k, Trials: 24, Trial: time.Duration(2100+i*20) * time.Millisecond, Noop: time.Duration(i*30+40) * time.Millisecond,
			NoopTrials: 1 - i/4, Phases: []analyse.PhaseTime{{Name: "start", Trials: 24, Median: time.Duration(7+i*20) * time.Millisecond}, {Name: "stop", Trials: 24, Median: 12 * time.Millisecond}},
			Collectors: []analyse.CollectorCost{{Name: "proc", Cores: 0.004}}})
	}
	decided := &plan.Ending{Code: plan.EndDecided, Text: "every interval is narrow enough", Blocks: 6}
	add := func(w, size string, resp record.Response, base float64, ratios []float64, verdicts []stat.Verdict, change func(int, *analyse.Comparison)) {
		for i, k := range kinds {
			shared := record.Cell{{Factor: "workload", Value: w}}
			if size != "" {
				shared = append(shared, record.Level{Factor: "size", Value: size})
			}
			c := analyse.Comparison{Workload: w, Kind: w, Stratum: shared.Key(), Shared: shared, Treatment: "sandbox=" + k, Response: resp,
				Cell: append(shared[:len(shared):len(shared)], record.Level{Factor: "sandbox", Value: k}), Ending: decided,
				Base: analyse.Level{N: 6, Typical: base}, Level: analyse.Level{N: 6, Typical: base * ratios[i]}}
			if i == 0 {
				c.Baseline = true
			} else {
				c.Estimate = stat.Estimate{Ratio: ratios[i], Lo: ratios[i] * 0.97, Hi: ratios[i] * 1.035, N: 6}
				c.Verdict = verdicts[i-1]
			}
			if change != nil {
				change(i, &c)
			}
			r.Compared = append(r.Compared, c)
		}
	}
	all := []stat.Verdict{stat.Slower, stat.Equivalent, stat.Slower, stat.Slower}
	add("net", "64", latency, 9.4e-6, []float64{1, 1.052, 1.004, 3.41, 12.9}, all, nil)
	add("net", "64", throughput, 1.9e9, []float64{1, 0.951, 1.1, 0.314, 0.0871}, []stat.Verdict{stat.Undecided, stat.Faster, stat.Slower, stat.Slower}, nil)
	add("net", "64K", latency, 31e-6, []float64{1, 1.03, 1, 2, 7}, all, func(i int, c *analyse.Comparison) {
		c.Ending = nil
		switch i {
		case 1:
			c.Estimate.N, c.Estimate.Lo, c.Estimate.Hi, c.Verdict = 1, 0, 0, stat.Undecided
		case 2:
			c.Level.N, c.Failed = 0, 3
			c.Failures = []analyse.Reason{{Phase: "start", Kind: "start", Text: "crun: cgroups in hybrid mode are not supported; unmount /sys/fs/cgroup/unified for it", Count: 3}}
			c.GaveUp = "three blocks running without a value"
		case 3:
			c.Skipped = "no KVM"
		case 4:
			c.Estimate = stat.Estimate{N: 6, Undefined: "a value is zero"}
			c.Verdict, c.Level.Typical = stat.Undecided, 0
		}
	})
	add("density", "", memory, 3.1*(1<<20), []float64{1, 1.2, 1.1, 7.9, 0.5}, []stat.Verdict{stat.Higher, stat.Higher, stat.Higher, stat.Lower}, func(i int, c *analyse.Comparison) {
		if q := 0.08; i == 2 {
			c.Q = &q
		}
	})
	r.Discoveries = &analyse.Discoveries{Rate: 0.05, Rows: 12, Called: 10, Hold: 9}
	return r
}

func TestWriteGolden(t *testing.T) {
	for _, width := range []int{40, 60, 80, 120, 200} {
		for _, colour := range []bool{false, true} {
			if colour && width != 120 {
				continue
			}
			name := fmt.Sprintf("report-%d", width)
			if colour {
				name += "-colour"
			}
			t.Run(name, func(t *testing.T) {
				var b bytes.Buffer
				w, ink := paper(&b, colour)
				if err := Write(w, testResult(), testHosts(), Options{Width: width, Ink: ink, Dir: "results/first"}); err != nil {
					t.Fatal(err)
				}
				golden(t, name, b.Bytes())
				fits(t, b.String(), width)
				if colour != strings.Contains(b.String(), "\x1b[") {
					t.Error("colour is there or not, against the options")
				}
			})
		}
	}
}

// paper is where a person reads, with ink if there should be colours.
func paper(b io.Writer, colour bool) (io.Writer, terminal.Ink) {
	if !colour {
		return b, terminal.Ink{}
	}
	w := terminal.New(b)
	return w, w.Ink()
}

// fits checks the promise about the width, apart from words that cannot be
// broken.
func fits(t *testing.T, s string, width int) {
	t.Helper()
	for _, l := range strings.Split(s, "\n") {
		if n := gotext.StringWidthWithoutEscSequences(l); n > width && strings.Contains(strings.TrimSpace(l), " ") {
			t.Errorf("a line is %d wide, more than %d: %q", n, width, l)
		}
		if strings.TrimRight(l, " ") != l {
			t.Errorf("spaces end the line %q", l)
		}
	}
}

// TestColourOnlyAdds: without its escapes a coloured report is the plain one, so
// no verdict is told by colour alone.
func TestColourOnlyAdds(t *testing.T) {
	var plain, coloured bytes.Buffer
	for b, c := range map[*bytes.Buffer]bool{&plain: false, &coloured: true} {
		w, ink := paper(b, c)
		if err := Write(w, testResult(), testHosts(), Options{Width: 100, Ink: ink}); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(plain.String(), gotext.StripEscape(coloured.String())); d != "" {
		t.Error(d)
	}
}

// TestNothingDrivesTheTerminal: text from results has no control characters
// left, wherever it is printed.
func TestNothingDrivesTheTerminal(t *testing.T) {
	const evil = "x\x1b]0;owned\a\x1b[2Jy\rz\u009b1m"
	r := testResult()
	for i := range r.Compared {
		c := &r.Compared[i]
		c.Workload, c.Response.Name, c.GaveUp = evil, evil, evil
		c.Cell = record.Cell{{Factor: evil, Value: evil}}
		c.Failures = []analyse.Reason{{Kind: evil, Text: evil}}
	}
	for i := range r.Treatments {
		r.Treatments[i].Cell = record.Cell{{Factor: evil, Value: evil}}
	}
	r.Study, r.Reason = evil, evil
	r.Warnings = []analyse.Warning{{Code: evil, Text: evil, Trials: 1, Cells: []string{evil}}}
	r.Skips = []record.Skip{{Reason: evil}}
	h := testHosts()[0]
	h.Hostname, h.Warnings = evil, []record.Warning{{Code: evil, Text: evil}}
	for _, width := range []int{40, 80, 200} {
		var b bytes.Buffer
		if err := Write(&b, r, []record.Host{h}, Options{Width: width, Dir: evil}); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(b.String(), func(r rune) bool { return r != '\n' && unicode.IsControl(r) }); i >= 0 {
			t.Errorf("width %d: a control character is printed: %q", width, b.String()[max(0, i-20):i+5])
		}
	}
}

// TestFixedLevels: what every row has is said once above the table, and what
// only some have stays with them.
func TestFixedLevels(t *testing.T) {
	r := testResult()
	for i := range r.Compared {
		c := &r.Compared[i]
		c.Shared = append(c.Shared[:len(c.Shared):len(c.Shared)], record.Level{Factor: "memory-limit", Value: "64MiB"})
	}
	var b bytes.Buffer
	if err := Write(&b, r, nil, Options{Width: 120}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Count(got, "memory-limit") != 1 || !strings.Contains(got, "with memory-limit=64MiB\n") || !strings.Contains(got, "net size=64K ") {
		t.Error(got)
	}
}

// laid is a section as it is printed.
func laid(s *section.Section, opt Options) string {
	var b strings.Builder
	write(&b, s, opt)
	return b.String()
}

// TestLegendOfWhatIsShown: a sign that only skipped cells would have is not
// explained.
func TestLegendOfWhatIsShown(t *testing.T) {
	r := testResult()
	for i := range r.Compared {
		if c := &r.Compared[i]; c.Verdict == stat.Undecided {
			c.Skipped = "no KVM"
		}
	}
	if got := laid(section.Legend(r), Options{}); strings.Contains(got, "noisy") || !strings.Contains(got, "▲ costs less ▼ costs more") {
		t.Error(got)
	}
}

// TestDoubtfulRows: a row that is called different and does not hold among so
// many is marked, and the mark is explained only where it is.
func TestDoubtfulRows(t *testing.T) {
	r := testResult()
	if got := laid(section.Legend(r), Options{}); !strings.Contains(got, "~ fails correction") {
		t.Errorf("the mark is not explained: %s", got)
	}
	var b bytes.Buffer
	if err := Write(&b, r, nil, Options{Width: 120}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Count(got, "1.10 ↑~ ") != 1 || strings.Count(got, "~") != 2 {
		t.Errorf("one row is marked, and the legend says it:\n%s", got)
	}
	for i := range r.Compared {
		if q := 0.05; r.Compared[i].Q != nil {
			r.Compared[i].Q = &q // just a discovery
		}
	}
	if got := laid(section.Legend(r), Options{}); strings.Contains(got, "~") {
		t.Error(got)
	}
}

func TestWriteEmpty(t *testing.T) {
	var b bytes.Buffer
	r := &analyse.Result{Study: "first", Compare: "sandbox", Baseline: "process", Left: plan.Progress{AtLeast: 10, AtMost: 40, MostTime: 250 * time.Second}}
	if err := Write(&b, r, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "empty", b.Bytes())
}

// smallStudy has one workload and two sandboxes.
func smallStudy() *study.Study {
	st := &study.Study{Name: "small", About: "What a container costs.", Seed: 7, Compare: "sandbox", Baseline: "process",
		Factors:   []study.Factor{{Name: "workload", Levels: []string{"net"}}, {Name: "sandbox", Levels: []string{"process", "runc"}}},
		Workloads: []study.Workload{{Label: "net", Kind: "net", Responses: []string{"latency_p50"}}},
		Stop:      study.Stop{Fixed: 4, Confidence: 0.95, Width: 0.015, Margin: 0.03}}
	shared := record.Cell{{Factor: "workload", Value: "net"}}
	s := study.Stratum{Key: shared.Key(), Shared: shared}
	for _, k := range st.Factors[1].Levels {
		s.Cells = append(s.Cells, record.Cell{shared[0], {Factor: "sandbox", Value: k}})
	}
	st.Strata = []study.Stratum{s}
	return st
}

func smallTrials(st *study.Study) []record.Trial {
	var out []record.Trial
	for block := 1; block <= 4; block++ {
		for i, c := range st.Strata[0].Cells {
			out = append(out, record.Trial{Seq: len(out) + 1, Block: block, Attempt: 1, Cell: c, Status: record.OK,
				Start: time.Date(2026, 11, 20, 10, 0, len(out), 0, time.UTC), Duration: 2 * time.Second,
				Phases:  []record.Phase{{Name: "start", Duration: time.Duration(3+i) * time.Millisecond}},
				Samples: []record.Sample{{Name: "latency_p50", Unit: record.Second, Value: 9.4e-6 * (1 + float64(i)*0.7 + 0.01*float64(block*(i+1)))}},
			})
		}
	}
	return out
}

// TestSameReportFromStore: a report of what was stored is the report of what was
// measured.
func TestSameReportFromStore(t *testing.T) {
	st := smallStudy()
	trials := smallTrials(st)
	db, err := store.Create(t.TempDir(), store.Meta{Host: testHosts()[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for i := range trials {
		if err := db.Append(t.Context(), &trials[i], record.Evidence{}); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := db.Trials()
	if err != nil {
		t.Fatal(err)
	}
	meta, err := db.Meta()
	if err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	if err := Write(&a, analyse.Analyse(st, trials, nil), testHosts()[:1], Options{Width: 100}); err != nil {
		t.Fatal(err)
	}
	if err := Write(&b, analyse.Analyse(st, loaded, nil), []record.Host{meta.Host}, Options{Width: 100}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a.String(), b.String()); d != "" {
		t.Errorf("measured (-) and stored (+):\n%s", d)
	}
	for _, want := range []string{"latency_p50", "1.71 ", "↑", "host lab1", "Finished"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, b.String())
		}
	}
}

func TestPlanGolden(t *testing.T) {
	st := smallStudy()
	skips := []record.Skip{{Cell: st.Strata[0].Cells[1], Reason: "runc is not installed; apt install runc"}}
	p := Plan{Study: st, Skips: skips, Progress: plan.Progress{AtLeast: 6, AtMost: 32, LeastTime: 30 * time.Second, MostTime: 250 * time.Second, Unknown: 2},
		Order: []plan.Next{{Seq: 1, Block: 1, Attempt: 1, Cell: st.Strata[0].Cells[1]}, {Seq: 2, Block: 1, Attempt: 1, Cell: st.Strata[0].Cells[0]}}}
	for _, width := range []int{60, 120} {
		var b bytes.Buffer
		if err := WritePlan(&b, p, Options{Width: width}); err != nil {
			t.Fatal(err)
		}
		golden(t, fmt.Sprintf("plan-%d", width), b.Bytes())
		fits(t, b.String(), width)
	}
}

// TestManyStrataStop: a big study has a line a reason, not a line a stratum.
func TestManyStrataStop(t *testing.T) {
	r := testResult()
	r.Compared = nil
	add := func(from, to int, why string) {
		for i := from; i < to; i++ {
			shared := record.Cell{{Factor: "workload", Value: fmt.Sprintf("w%d", i)}}
			for _, resp := range []record.Response{latency, throughput} {
				r.Compared = append(r.Compared, analyse.Comparison{Workload: shared[0].Value, Stratum: shared.Key(), Shared: shared, Response: resp,
					Treatment: "sandbox=runc", Ending: &plan.Ending{Text: why, Blocks: 3}})
			}
		}
	}
	said := func() string { return laid(section.Stops(r), Options{Width: 200}) }
	add(0, 1600, "decided")
	if got, want := said(), "\nwhy measuring stopped:\n  all 1600 variants: after 3 blocks, decided\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	add(1600, 1602, "no time")
	want := "\nwhy measuring stopped:\n  1600 of 1602 variants (w0, w1, w2 and 1597 more): after 3 blocks, decided\n  w1600, w1601: after 3 blocks, no time\n"
	if got := said(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
