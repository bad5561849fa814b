package analyse

import (
	"encoding/json"
	"slices"
	"testing"

	"tare/analyse/cause"
	"tare/analyse/cpucost"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// withHelper is a study's trials in which the virtual machine's vhost thread is full, and
// all else has room.
func withHelper(n plan.Next) record.Trial {
	t := withCPU(2.5, false)(n)
	box, _ := n.Cell.Get("sandbox")
	add := func(name string, v float64, labels ...string) {
		t.Samples = append(t.Samples, record.Sample{Name: name, Labels: record.MakeLabels(labels...), Value: v})
	}
	role := "workload"
	if box == "vm" {
		role = "vhost"
		add("thread_busiest", 0.4, "end", "server", "role", "vcpu")
		add("guest_cpu_rate", 0.4, "end", "server", "cpu", "0", "mode", "user")
		add("guest_cpu_rate", 0.6, "end", "server", "cpu", "0", "mode", "idle")
	}
	busy := map[string]float64{"vhost": 0.93, "workload": 0.3}[role]
	add("thread_busiest", busy, "end", "server", "role", role)
	add("run_wait_rate", 0.01, "end", "server", "role", role)
	add("system_cpu_rate", 2, "mode", "user")
	add("system_cpu_rate", 6, "mode", "idle")
	return t
}

func TestCauses(t *testing.T) {
	st := gridStudy(4)
	trials := play(st, nil, withHelper)
	r := Analyse(st, trials, nil, Describe(describe))
	if len(r.Causes) == 0 {
		t.Fatal("no findings")
	}
	helpers := 0
	for _, f := range r.Causes {
		box, _ := f.Cell.Get("sandbox")
		switch {
		case box == "vm" && (f.Cause != cause.Helper || f.Role != "vhost" || f.Endpoint != "server" || f.Ratio == nil || f.Price == nil):
			t.Errorf("%s: %s of %q at %q, ratio %v, price %v: %s", f.Cell, f.Cause, f.Role, f.Endpoint, f.Ratio, f.Price, f.Text)
		case box == "vm":
			helpers++
		case f.Baseline && (f.Cause != cause.None || f.Ratio != nil || f.Price != nil):
			t.Errorf("baseline %s: %s %s", f.Cell, f.Cause, f.Text)
		}
		if f.Response.Name == "" || f.Trials == 0 {
			t.Errorf("%+v", f)
		}
	}
	if helpers == 0 {
		t.Fatal("no cell is in a virtual machine")
	}

	// Taken out while loaded, as large results are, they say the same.
	causes, cpu := new(cause.Reader), new(cpucost.Reader)
	small := slices.Clone(trials)
	for i := range small {
		causes.Take(&small[i])
		cpu.Take(&small[i])
	}
	again := Analyse(st, small, nil, Describe(describe), CPU(cpu), Causes(causes, func(w study.Workload) param.Values { return w.Params }))
	a, err := json.Marshal(r.Causes)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := json.Marshal(again.Causes); string(a) != string(b) {
		t.Errorf("with readers:\n%.500s\n%.500s", a, b)
	}
}

func TestPinned(t *testing.T) {
	for text, want := range map[string]float64{"any": 0, "0": 1, "0-3": 4, "0,2": 2} {
		if got := pinned(record.Cell{{Factor: study.FactorCPUs, Value: text}}, nil, nil); got != want {
			t.Errorf("%s: %g processors, want %g", text, got, want)
		}
	}
	apart := map[int]*record.Trial{1: {Facts: map[string]string{"server.cpus": "0-2", "client.cpus": "3"}}}
	if got := pinned(record.Cell{{Factor: study.FactorCPUs, Value: study.ApartCPUs}}, apart, []string{"server"}); got != 3 {
		t.Errorf("a server with processors of its own: %g, want 3", got)
	}
	if got := pinned(nil, nil, nil); got != 0 {
		t.Errorf("a cell without: %g", got)
	}
}

// TestUndecided: a finding says what the verdict on its first response left open. After
// one block all of them are, whatever the ratio; none is said to cost.
func TestUndecided(t *testing.T) {
	for _, blocks := range []int{1, 4} {
		st := gridStudy(blocks)
		r := Analyse(st, play(st, nil, withHelper), nil, Describe(describe))
		open, n := 0, 0
		for i := range r.Causes {
			f := &r.Causes[i]
			k := slices.IndexFunc(r.Compared, func(c Comparison) bool {
				return c.First && c.Stratum == f.Stratum && c.Treatment == f.Treatment
			})
			if k < 0 {
				t.Fatalf("%d blocks: %s is not compared", blocks, f.Cell)
			}
			c := &r.Compared[k]
			if want := !f.Baseline && !c.Verdict.Decided(); f.Undecided != want || f.Costs && f.Undecided {
				t.Errorf("%d blocks: %s: verdict %q, undecided %v, costs %v", blocks, f.Cell, c.Verdict, f.Undecided, f.Costs)
			}
			if !f.Baseline {
				n++
				if f.Undecided {
					open++
				}
			}
		}
		if n == 0 || (blocks == 1) != (open == n) {
			t.Errorf("%d blocks: %d of %d findings are undecided", blocks, open, n)
		}
	}
}

// TestSuspect: only what looks worse by more than a tenth, with nothing decided.
func TestSuspect(t *testing.T) {
	for _, c := range []struct {
		ratio     float64
		better    record.Better
		undecided bool
		want      bool
	}{
		{264, record.Lower, true, true}, {264, record.Lower, false, false}, {264, record.Higher, true, false},
		{0.29, record.Higher, true, true}, {0.29, record.Lower, true, false}, {0.29, record.Neither, true, true},
		{1.05, record.Lower, true, false}, {0.95, record.Higher, true, false},
	} {
		f := cause.Finding{Ratio: &c.ratio, Response: record.Response{Better: c.better}, Undecided: c.undecided}
		if got := f.Suspect(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if (&cause.Finding{Undecided: true}).Suspect() {
		t.Error("a cell without a ratio is suspect")
	}
}
