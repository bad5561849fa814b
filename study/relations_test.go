package study

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
)

// The order of keys within a workload is a matter of taste and must not change
// a cell, and with it the seeded order of trials.
func TestKeyOrderOfParameters(t *testing.T) {
	params := []string{"kind: net", "mode: rr", "message: [1B, 4KiB]", "duration: [1s, 2s]", "rate: [0, 10, 100]"}
	source := func() string {
		return "study: s\nfactors: {sandbox: [process, runc]}\nworkloads: {w: {" + strings.Join(params, ", ") + "}}\n"
	}
	want := cells(mustParse(t, source()))
	if len(want) != 2*2*2*3 {
		t.Fatalf("%d cells", len(want))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		rng.Shuffle(len(params), func(i, j int) { params[i], params[j] = params[j], params[i] })
		if diff := cmp.Diff(want, cells(mustParse(t, source()))); diff != "" {
			t.Fatalf("%v (-want +got):\n%s", params, diff)
		}
	}
}

// Another order of factors or sections makes the same set of combinations.
func TestOrderOfFactors(t *testing.T) {
	sorted := func(src string) []string {
		s := mustParse(t, src)
		var out []string
		for _, st := range s.Strata {
			for _, c := range st.Cells {
				c = slices.Clone(c)
				slices.SortFunc(c, func(a, b record.Level) int {
					return strings.Compare(a.Factor, b.Factor)
				})
				out = append(out, c.Key())
			}
		}
		slices.Sort(out)
		return out
	}
	a := sorted("study: s\nfactors: {sandbox: [process, vm], vcpus: [1, 2], cpu-limit: [none, 1]}\nworkloads: {cpu: {}, net: {message: [1, 2]}}\n")
	b := sorted("workloads: {net: {message: [2, 1]}, cpu: {}}\nfactors: {vcpus: [2, 1], cpu-limit: [1, none], sandbox: [vm, process]}\nstudy: s\n")
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}

// An identity in the store: these keys must not change between versions.
func TestKeysStable(t *testing.T) {
	s := mustParse(t, readTestdata(t, "first.yaml"))
	got := cells(s)
	if len(got) != 57+2 {
		t.Fatalf("%d cells", len(got))
	}
	for i, want := range map[int]string{
		0:  "workload=stream,sandbox=process,cpu-limit=none,memory-limit=none,isolate=server",
		20: "workload=rr,sandbox=runsc-systrap,cpu-limit=none,memory-limit=none,isolate=server,message=4KiB",
		58: "workload=stream,sandbox=runc,cpu-limit=8,memory-limit=1GiB,isolate=server",
	} {
		if got[i] != want {
			t.Errorf("cell %d is %s, want %s", i, got[i], want)
		}
	}
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != 59 {
		t.Errorf("%d different keys of 59", n)
	}
}

func TestSpellingOfLevels(t *testing.T) {
	s := mustParse(t, "study: s\nfactors: {sandbox: [process, runc]}\nworkloads: {a: {kind: net, message: [1KiB, 2]}, b: {kind: net, message: [1024B, 3]}}\n"+
		"exclude: [{message: 1k, sandbox: runc}]\n")
	if diff := cmp.Diff([]string{"1KiB", "2", "3"}, s.Factors[2].Levels); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
	for _, c := range cells(s) {
		if strings.Contains(c, "1024B") || strings.Contains(c, "runc,message=1KiB") {
			t.Errorf("cell %s", c)
		}
	}
}

func TestSets(t *testing.T) {
	src := readTestdata(t, "first.yaml")
	s := mustParse(t, src, "sandbox=process,crun", "workload=rr,stream", "cpu-limit=2", "memory-limit=1GiB", "rr.message=1KiB", "seed=9", "stop.fixed=3",
		"budget.time=10s", "timeout=5s", `cpus=0,0-1\,3`, "collect.use=proc,system", "collect.rate=2Hz", "stream.responses=messages")
	const want = `workload=stream,cpu-limit=2,memory-limit=1GiB,isolate=server,cpus=0 [stream] baseline 0: sandbox=process;
workload=stream,cpu-limit=2,memory-limit=1GiB,isolate=server,cpus=0-1\,3 [stream] baseline 0: sandbox=process;
workload=rr,cpu-limit=2,memory-limit=1GiB,isolate=server,cpus=0 [rr] baseline 0: sandbox=process; sandbox=crun;
workload=rr,cpu-limit=2,memory-limit=1GiB,isolate=server,cpus=0-1\,3 [rr] baseline 0: sandbox=process; sandbox=crun;
`
	if diff := cmp.Diff(want, outline(s)); diff != "" {
		t.Errorf("strata (-want +got):\n%s", diff)
	}
	if s.Seed != 9 || s.Stop.Fixed != 3 || s.Stop.Looks != nil || s.Budget.Time != 10*time.Second || s.Timeout != 5*time.Second || s.Collect.Interval != 500*time.Millisecond {
		t.Errorf("settings: %+v", s)
	}
	if diff := cmp.Diff([]string{"proc", "system"}, s.Collect.Names); diff != "" {
		t.Error(diff)
	}
	if s.Workloads[0].Responses[0] != "messages" || s.Workloads[1].Params["message"] != "1KiB" {
		t.Errorf("workloads: %+v", s.Workloads)
	}
	if !bytes.Equal(s.Source, []byte(src)) || len(s.Overrides) != 13 {
		t.Error("source or overrides are not kept as given")
	}

	// A factor given so reaches the workloads that say it themselves, too.
	s = mustParse(t, src, "message=1B,2B", "workload=stream,rr,noop")
	if n := strings.Count(outline(s), "message=2B"); n != 2*3+1 { // one from include
		t.Errorf("message=2B in %d strata:\n%s", n, outline(s))
	}
	// stop.looks replaces fixed.
	s = mustParse(t, readTestdata(t, "nested.yaml"), "stop.looks=2,4")
	if diff := cmp.Diff([]int{2, 4}, s.Stop.Looks); diff != "" || s.Stop.Fixed != 0 {
		t.Errorf("%+v", s.Stop)
	}
	s = mustParse(t, "study: a\nfactors: {sandbox: [process], cpu-limit: [1, 2]}\nworkloads: {cpu: {threads: [1, 2]}, noop: }\napply: {cpu-limit: {threads: 2}}\n", "workload=noop")
	if diff := cmp.Diff([]string{"workload=noop,sandbox=process"}, cells(s)); diff != "" {
		t.Errorf("a factor under a parameter that no workload has left (-want +got):\n%s", diff)
	}
	// A workload's name may have dots; the parameter comes after the last.
	s = mustParse(t, "study: a\nfactors: {sandbox: [process]}\nworkloads: {sysbench.cpu: {kind: cpu}}\n", "workload=sysbench.cpu", "sysbench.cpu.threads=2")
	if w := s.Workloads[0]; w.Label != "sysbench.cpu" || w.Params["threads"] != "2" {
		t.Errorf("workload %+v", w)
	}
	// What only left-out levels needed is no mistake then.
	s = mustParse(t, readTestdata(t, "nested.yaml"), "sandbox=process,runc")
	if len(s.Factors) != 3 {
		t.Errorf("factors %v", s.Factors)
	}
}

func TestHundredThousandCells(t *testing.T) {
	src := []byte(manyCells(100, 1000))
	begin := time.Now()
	s, err := Parse("t.yaml", src, testCatalogue(), nil)
	took := time.Since(begin)
	if err != nil || len(s.Strata) != 100_000 {
		t.Fatal(err)
	}
	t.Logf("%d cells in %v", len(s.Strata), took)
	if took > 30*time.Second { // a second when the machine is free; if time grew with the square, hours
		t.Errorf("100,000 cells took %v", took)
	}
}

func BenchmarkParse100kCells(b *testing.B) {
	src, cat := []byte(manyCells(100, 1000)), testCatalogue()
	for b.Loop() {
		if _, err := Parse("b.yaml", src, cat, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzParse: no input panics; a mistake has a place in the file; a study's
// cells are all different and resolve.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"first.yaml", "nested.yaml"} {
		f.Add([]byte(readTestdata(f, name)), "sandbox=process,runc")
	}
	f.Add([]byte(head), "cpu.threads=1,2")
	f.Add([]byte("a: &a [*a]"), "")
	f.Add([]byte(victimHead+"victim: {kind: net, mode: rr, sandbox: runc, responses: [latency]}\n"), "beside=load")
	cat := testCatalogue()
	f.Fuzz(func(t *testing.T, src []byte, set string) {
		var sets []string
		if set != "" {
			sets = []string{set}
		}
		s, err := parse("f.yaml", src, cat, sets, 2000)
		if err != nil {
			var es Errors
			if !errors.As(err, &es) || len(es) > maxErrors+1 {
				t.Fatalf("%T %v", err, err)
			}
			lines := bytes.Count(src, []byte("\n")) + bytes.Count(src, []byte("\r")) + 2 + 3*bytes.Count(src, []byte("\xc2\x85"))
			for _, e := range es {
				if e.What == "" || e.Line < 0 || e.Line > lines+strings.Count(string(src), "\u2028")+strings.Count(string(src), "\u2029") || (e.Line > 0) != (e.Column > 0) {
					t.Fatalf("%+v", e)
				}
			}
			return
		}
		seen := map[string]bool{}
		for i, st := range s.Strata {
			if len(st.Cells) == 0 || st.Baseline >= len(st.Cells) {
				t.Fatalf("stratum %d: %+v", i, st)
			}
			for _, c := range st.Cells {
				if seen[c.Key()] {
					t.Fatalf("cell %s twice", c)
				}
				seen[c.Key()] = true
				if _, ok := c.Get(s.Compare); !ok {
					t.Fatalf("cell %s without the compared factor", c)
				}
				r, err := s.Resolve(cat, c)
				if err != nil {
					t.Fatal(err)
				}
				if check := cat.Workloads[r.Workload.Kind].Check; check != nil && check(r.Params) != nil {
					t.Fatalf("cell %s passed but is refused", c)
				}
			}
		}
		again, err := parse("f.yaml", src, cat, sets, 2000)
		if err != nil || !slices.Equal(cells(s), cells(again)) {
			t.Fatalf("a second reading differs: %v", err)
		}
	})
}

// TestApartNeedsTwoEnds: a workload with one end has no level of cpus where all are the same to it.
func TestApartNeedsTwoEnds(t *testing.T) {
	for levels, want := range map[string]string{
		"apart": `workload=net,cpus=apart [net] baseline 0: sandbox=process; sandbox=runc;
workload=cpu [cpu] baseline 0: sandbox=process; sandbox=runc;
`,
		"any, apart": `workload=net,cpus=any [net] baseline 0: sandbox=process; sandbox=runc;
workload=net,cpus=apart [net] baseline 0: sandbox=process; sandbox=runc;
workload=cpu [cpu] baseline 0: sandbox=process; sandbox=runc;
`,
		`apart, "0"`: `workload=net,cpus=apart [net] baseline 0: sandbox=process; sandbox=runc;
workload=net,cpus=0 [net] baseline 0: sandbox=process; sandbox=runc;
workload=cpu,cpus=apart [cpu] baseline 0: sandbox=process; sandbox=runc;
workload=cpu,cpus=0 [cpu] baseline 0: sandbox=process; sandbox=runc;
`,
	} {
		s := mustParse(t, "study: s\nfactors: {sandbox: [process, runc], cpus: ["+levels+"]}\nworkloads: {net: {}, cpu: {}}\n")
		if d := cmp.Diff(want, outline(s)); d != "" {
			t.Errorf("%s (-want +got)\n%s", levels, d)
		}
		for i := range s.Strata {
			res, err := s.Resolve(testCatalogue(), s.Strata[i].Cells[1])
			cpus, _ := s.Strata[i].Cells[1].Get(FactorCPUs)
			if err != nil || res.Apart != (cpus == ApartCPUs && res.Workload.Kind == "net") || res.CPUs != "" && res.CPUs != "0" {
				t.Errorf("%s: %+v, %v", s.Strata[i].Key, res, err)
			}
		}
	}
}
