package cause

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/record"
)

// sampled is a trial of a server, with what the collectors say of a guest of so many
// processors.
func sampled(cell record.Cell, block, seq, cpus int, latency float64) *record.Trial {
	t := &record.Trial{Seq: seq, Block: block, Attempt: 1, Cell: cell, Status: record.OK}
	add := func(name string, v float64, labels ...string) {
		t.Samples = append(t.Samples, record.Sample{Name: name, Labels: record.MakeLabels(labels...), Value: v})
	}
	add("rate", 4/latency)
	add("latency_mean", latency)
	roles := map[string]float64{"workload": 0.1, roleHarness: 3}
	if cpus > 0 {
		roles = map[string]float64{"vcpu": 0.5, "vhost": 0.3, roleHarness: 3}
	}
	for role, v := range roles {
		add(cpuTime, v, "end", "server", "role", role)
		add(record.ThreadBusiest, v, "end", "server", "role", role)
		add(record.ThreadBusiestWait, 0.01, "end", "server", "role", role)
		add(runWait, 0.01, "end", "server", "role", role)
	}
	add(cgroupCPU, 0.9, "end", "server")
	add(cpuTime, 0.9, "end", "client", "role", "workload")
	add(record.ThreadBusiest, 0.9, "end", "client", "role", "workload")
	for _, mode := range []string{"user", "idle"} {
		add(systemCPU, 8, "mode", mode)
	}
	for i := range cpus {
		cpu := strconv.Itoa(i)
		add(guestCPU, 0.2, "end", "server", "cpu", cpu, "mode", "user")
		add(guestCPU, 0.1, "end", "server", "cpu", cpu, "mode", "softirq")
		add(guestCPU, 0.7, "end", "server", "cpu", cpu, "mode", "idle")
		add(guestSoftIRQ, 100, "end", "server", "cpu", cpu, "mode", "net_rx")
	}
	if cpus > 0 {
		add(guestRunning, 1, "end", "server")
		add(guestReady, 1, "end", "server")
	}
	return t
}

// grid is a study of so many strata: sizes, in a process and in a virtual machine whose
// operations take added longer.
func grid(r *Reader, n, trials, cpus int, added float64) []Stratum {
	var out []Stratum
	seq := 0
	for i := range n {
		size := 16 << (2 * (i % 5))
		shared := record.Cell{{Factor: "workload", Value: "net"}, {Factor: "cpu-limit", Value: strconv.Itoa(i / 5)}, {Factor: "connections", Value: "4"}, {Factor: "size", Value: strconv.Itoa(size)}}
		s := Stratum{Finding: Finding{CellKey: record.CellKey{Workload: "net", Stratum: shared.Key(), Shared: shared}}, Endpoints: []string{"server"},
			Responses: []record.Response{{Name: "latency_mean", Unit: record.Second, Operation: "request"}, {Name: "rate", Unit: record.PerSecond, Operation: "request"}}}
		s.Response = s.Responses[0]
		for k, box := range []string{"process", "vm"} {
			cell := append(record.Cell{{Factor: "sandbox", Value: box}}, shared...)
			c := Cell{Finding: Finding{CellKey: record.CellKey{Treatment: "sandbox=" + box, Cell: cell, Baseline: k == 0}}, Load: 4, Trials: map[int]*record.Trial{}}
			for block := 1; block <= trials; block++ {
				seq++
				latency := 50e-6 + 1e-9*float64(size) + 1e-7*float64(block%3)
				if k == 1 {
					latency += added * (1 + 1e-3*float64(block%2))
				}
				t := sampled(cell, block, seq, k*cpus, latency)
				r.Take(t)
				c.Trials[block] = t
			}
			s.Cells = append(s.Cells, c)
		}
		out = append(out, s)
	}
	return out
}

func TestBuild(t *testing.T) {
	r := new(Reader)
	strata := grid(r, 4, 4, 4, 30e-6)
	found := Build(0.95, r, strata)
	if len(found) != 8 {
		t.Fatalf("%d findings of 8 cells", len(found))
	}
	for _, f := range found {
		if f.Trials != 4 || f.Endpoint != "server" || f.Text == "" || len(f.Readings) == 0 || f.Confidence <= 0 || f.Confidence > 1 {
			t.Errorf("%s %s: %+v", f.Stratum, f.Treatment, f)
		}
		for _, x := range f.Readings {
			if x.Lo > x.Value || x.Hi < x.Value || x.Name == "" {
				t.Errorf("reading %+v", x)
			}
		}
		if !slices.ContainsFunc(f.Readings, func(r Reading) bool { return r.About == None && math.Abs(r.Value-0.9) < 1e-6 }) {
			t.Errorf("%s: the client's thread is not shown: %+v", f.Treatment, f.Readings)
		}
		if f.Baseline {
			if f.Added != nil || f.Factor != nil {
				t.Errorf("the baseline has a fit beside itself: %+v", f)
			}
			continue
		}
		if f.Added == nil || math.Abs(f.Added.Constant-30e-6) > 1e-7 || f.Added.Lo > 30.1e-6 || f.Added.Hi < 30e-6 || len(f.Added.X) != 4 || f.Added.Over != "size" {
			t.Errorf("added %+v, want 30 us over 4 sizes", f.Added)
		}
	}
	if _, err := json.Marshal(found); err != nil {
		t.Error(err)
	}
}

// TestOrder: cells and strata in another order, and trials that were read in another,
// give the same.
func TestOrder(t *testing.T) {
	r := new(Reader)
	strata := grid(r, 5, 3, 2, 20e-6)
	want := Build(0.95, r, strata)
	slices.Reverse(strata)
	for i := range strata {
		slices.Reverse(strata[i].Cells)
	}
	got := Build(0.95, r, strata)
	slices.Reverse(got)
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(got)
	if string(a) != string(b) {
		t.Errorf("in another order:\n%.600s\n%.600s", a, b)
	}
}

// TestTake: what others read stays in the trial, and all else of ours is gone.
func TestTake(t *testing.T) {
	x := sampled(record.Cell{{Factor: "sandbox", Value: "vm"}}, 1, 1, 80, 50e-6)
	new(Reader).Take(x)
	for _, s := range x.Samples {
		if s.Labels != "" && !shared(s.Name) {
			t.Errorf("%s{%s} is left", s.Name, s.Labels)
		}
	}
	if !slices.ContainsFunc(x.Samples, func(s record.Sample) bool { return s.Name == cpuTime }) {
		t.Error("the CPU of roles was taken from others")
	}
}

// TestNames: what is asked of the store is what is read.
func TestNames(t *testing.T) {
	for _, n := range SampleNames() {
		if !ours(n) {
			t.Errorf("%s is asked for and not read", n)
		}
	}
	for _, n := range []string{cpuTime, guestReady, deviceWrote, record.ThreadBusiest} {
		if !slices.Contains(SampleNames(), n) {
			t.Errorf("%s is not asked for", n)
		}
	}
}

// TestDamaged: figures that nobody can have, and labels that say nothing, make no
// figure that JSON does not know.
func TestDamaged(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), -1, 0, 1e308} {
		r := new(Reader)
		strata := grid(r, 2, 3, 2, 30e-6)
		for _, s := range strata {
			for _, c := range s.Cells {
				for _, x := range c.Trials {
					bad := sampled(x.Cell, x.Block, x.Seq, x.Seq%2, 50e-6)
					for i := range bad.Samples {
						bad.Samples[i].Value = v
					}
					*x = *bad
					x.Samples = append(x.Samples, record.Sample{Name: guestCPU, Labels: "cpu=", Value: v})
					r.Read(x)
				}
			}
		}
		if _, err := json.Marshal(Build(0.95, r, strata)); err != nil {
			t.Errorf("with %v everywhere: %v", v, err)
		}
	}
	if got := Build(0.95, new(Reader), nil); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

// TestRules: each has a name of its own, a limit, and something to show.
func TestRules(t *testing.T) {
	seen := map[Name]bool{}
	for _, r := range rules() {
		if seen[r.kind] || !slices.Contains(Names(), r.kind) || !(r.limit > 0) || len(r.shows) == 0 || r.full && len(r.needs) == 0 {
			t.Errorf("rule %+v", r)
		}
		seen[r.kind] = true
		for _, g := range r.shows {
			if strings.TrimSpace(g.name) == "" || g.unit == "" {
				t.Errorf("%s shows %+v", r.kind, g)
			}
		}
	}
	for _, k := range Names() {
		if !seen[k] && k != None && k != Other && k != Untold && k != Unknown && k != Behind {
			t.Errorf("%s has no rule", k)
		}
	}
}

// BenchmarkBuild is of the published matrix: 1,200 cells of 5 trials, with guests of 8
// processors.
func BenchmarkBuild(b *testing.B) {
	r := new(Reader)
	strata := grid(r, 600, 5, 8, 30e-6)
	b.ReportAllocs()
	for b.Loop() {
		if got := Build(0.95, r, strata); len(got) != 1200 {
			b.Fatal(fmt.Sprint(len(got)))
		}
	}
}
