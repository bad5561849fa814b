package analyse

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse/cpucost"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// withCPU adds to gridOutcome what the collectors say: the server is isolated, and
// a virtual machine uses vCPU and vhost threads.
func withCPU(factor float64, cgroup bool) func(plan.Next) record.Trial {
	plain := gridOutcome(nil)
	return func(n plan.Next) record.Trial {
		t := plain(n)
		box, _ := n.Cell.Get("sandbox")
		rate, _ := t.Sample("throughput")
		add := func(name, end, role string, v float64) {
			l := record.MakeLabels("end", end)
			if role != "" {
				l = record.MakeLabels("end", end, "role", role)
			}
			t.Samples = append(t.Samples, record.Sample{Name: name, Labels: l, Unit: record.Cores, Value: v})
		}
		for _, end := range []string{"client", "server"} {
			kind := "process"
			if end == "server" {
				kind = box
			}
			t.Samples = append(t.Samples, record.Sample{Name: "sandbox_start", Labels: record.MakeLabels("end", end, "sandbox", kind), Unit: record.Second, Value: 1})
		}
		cores := rate * 1e-9 * (1 + 0.01*float64(n.Block)) // so many CPU seconds a GB natively
		add("cgroup_cpu_rate", "server", "", cores)
		add("cgroup_cpu_rate", "client", "", 77)
		if cgroup {
			return t
		}
		add("cpu_time_rate", "client", "workload", 99)
		add("cpu_time_rate", "server", "harness", 55)
		if box == "vm" {
			add("cpu_time_rate", "server", "vcpu", cores*factor*0.75)
			add("cpu_time_rate", "server", "vhost", cores*factor*0.25)
			t.Facts = map[string]string{"server.accelerator": "tcg", "client.where": "process"}
		} else {
			add("cpu_time_rate", "server", "workload", cores)
		}
		return t
	}
}

func TestCPUCosts(t *testing.T) {
	st := gridStudy(4)
	trials := play(st, nil, withCPU(2.5, false))
	res := Analyse(st, trials, nil, Describe(describe))
	if len(res.CPUCosts) != 12*4 {
		t.Fatalf("%d costs", len(res.CPUCosts))
	}
	for i := range res.CPUCosts {
		c := &res.CPUCosts[i]
		box, _ := c.Cell.Get("sandbox")
		want := map[string]float64{"process": 0, "runc": 1, "vm": 2.5}[box]
		if math.Abs(c.Estimate.Ratio-want) > 1e-9 || c.Baseline != (want == 0) || c.Trials != 4 || c.Unit != "GB" || c.Source != cpucost.FromRoles {
			t.Errorf("%s: %+v", c.Cell, c)
		}
		if d := cmp.Diff([]string{"server"}, c.Endpoints); d != "" {
			t.Errorf("%s: ends:\n%s", c.Cell, d)
		}
		cores, value := 0.0, 0.0
		for _, r := range c.Roles {
			cores, value = cores+r.Cores, value+r.Value
		}
		if math.Abs(cores/c.Cores-1) > 1e-12 || math.Abs(value/c.Value-1) > 1e-12 {
			t.Errorf("%s: roles %+v do not add up to %g cores", c.Cell, c.Roles, c.Cores)
		}
		if box == "vm" && (c.Roles[0].Role != "vcpu" || math.Abs(c.Roles[0].Part-0.75) > 1e-12) {
			t.Errorf("%s: roles %+v", c.Cell, c.Roles)
		}
	}
	rng := rand.New(rand.NewPCG(2, 2))
	rng.Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
	if d := cmp.Diff(res.CPUCosts, Analyse(st, trials, nil, Describe(describe)).CPUCosts); d != "" {
		t.Errorf("shuffled trials:\n%s", d)
	}
	// Without roles the cgroups tell, and without either there is nothing.
	groups := Analyse(st, play(st, nil, withCPU(2.5, true)), nil, Describe(describe)).CPUCosts
	if len(groups) != 48 || groups[0].Source != cpucost.FromCgroup || groups[0].Roles != nil || !(groups[0].Value > 0.9 && groups[0].Value < 1.1) {
		t.Errorf("from cgroups: %d, %+v", len(groups), groups)
	}
	if none := Analyse(st, play(st, nil, gridOutcome(nil)), nil, Describe(describe)).CPUCosts; none != nil {
		t.Errorf("from nothing: %+v", none)
	}
}

// TestCPUCostsBesideAVictim: a cell without a load cannot be the baseline for the costs of the loads, so they have no ratio.
func TestCPUCostsBesideAVictim(t *testing.T) {
	st := gridStudy(3)
	for i := range st.Strata {
		s := &st.Strata[i]
		for j := range s.Cells {
			beside := study.BesideLoad
			if j == s.Baseline {
				beside = study.BesideNothing
			}
			s.Cells[j] = append(slices.Clip(s.Cells[j]), record.Level{Factor: study.FactorBeside, Value: beside})
		}
	}
	costs := Analyse(st, play(st, nil, withCPU(2, false)), nil, Describe(describe)).CPUCosts
	if len(costs) != 12*3 {
		t.Fatalf("%d costs", len(costs))
	}
	for _, c := range costs {
		if study.Alone(c.Cell) || c.Baseline || c.Missing != "" || c.Estimate.N > 0 || c.Verdict != "" || !(c.Value > 0) {
			t.Errorf("%s: %+v", c.Cell, c)
		}
	}
}

// TestCPUCostsOfMissingEnds: an end without a figure makes the sum no sum.
func TestCPUCostsOfMissingEnds(t *testing.T) {
	st := gridStudy(3)
	trials := play(st, nil, withCPU(2, false))
	for i := range trials {
		if box, _ := trials[i].Cell.Get("sandbox"); box == "vm" {
			kept := trials[i].Samples[:0]
			for _, s := range trials[i].Samples {
				if s.Labels.Get("role") == "" || s.Labels.Get("end") != "server" {
					kept = append(kept, s)
				}
			}
			trials[i].Samples = kept
		}
	}
	for _, c := range Analyse(st, trials, nil, Describe(describe)).CPUCosts {
		if box, _ := c.Cell.Get("sandbox"); box == "vm" {
			t.Errorf("%s has %g of nothing", c.Cell, c.Value)
		}
	}
}

func TestAccelerators(t *testing.T) {
	st := gridStudy(3)
	trials := play(st, nil, withCPU(2, false))
	res := Analyse(st, trials, nil, Describe(describe))
	want := []Accelerator{{Sandbox: "vm", Name: "vm (TCG)", Trials: map[string]int{"tcg": 12 * 2 * 3}}}
	if d := cmp.Diff(want, res.Accelerators); d != "" {
		t.Errorf("accelerators:\n%s", d)
	}
	vm := record.Level{Factor: study.FactorSandbox, Value: "vm"}
	if got := res.LevelName(vm); got != "vm (TCG)" {
		t.Errorf("the level is called %q", got)
	}
	for _, l := range []record.Level{{Factor: study.FactorSandbox, Value: "runc"}, {Factor: "size", Value: "vm"}} {
		if got := res.LevelName(l); got != l.Value {
			t.Errorf("%v is called %q", l, got)
		}
	}
	if got := (*Result)(nil).LevelName(vm); got != "vm" {
		t.Errorf("without a result it is called %q", got)
	}
	n := 0
	for i := range trials {
		if box, _ := trials[i].Cell.Get("sandbox"); box == "vm" && n < 5 {
			trials[i].Facts = map[string]string{"server.accelerator": "kvm"}
			n++
		}
	}
	mixed := Analyse(st, trials, nil, Describe(describe))
	if got := mixed.LevelName(vm); got != "vm (KVM and TCG)" || !mixed.Accelerators[0].Emulated() || mixed.Accelerated(record.Cell{vm}) != "kvm+tcg" {
		t.Errorf("mixed, it is called %q", got)
	}
	said := false
	for _, w := range mixed.Warnings {
		said = said || w.Code == "accelerators" && strings.Contains(w.Text, "5 KVM, 67 TCG")
	}
	if !said {
		t.Errorf("a mixture is no warning: %v", mixed.Warnings)
	}
}
