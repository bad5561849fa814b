package advice

import (
	"slices"
	"strings"
	"testing"

	"tare/analyse/cause"
	"tare/record"
	"tare/study"
)

// TestFewest: where the study varies the I/O threads, each cell is led to the fewest that reach 90 % of its own best, with
// the gain that was measured; cells that have as many or more get no advice.
func TestFewest(t *testing.T) {
	levels := []string{"8", "none", "1", "2", "4"} // the order of the study does not count
	l := newLab("fio", map[string]string{"jobs": "16"})
	l.in.Factors = append(l.in.Factors, study.Factor{Name: factorIOThreads, Levels: levels}, study.Factor{Name: "jobs", Levels: []string{"1", "16"}})
	for jobs, values := range map[string][]float64{"1": {105, 60, 100, 103, 104}, "16": {103, 10, 25, 50, 100}} {
		for i, level := range levels {
			c := at("vm", factorIOThreads, level, "jobs", jobs)
			l.measures(c, values[i])
			role := record.RoleIOThread
			if level == none {
				role = record.RoleVMM
			}
			ratio := values[i] / 120 // of the baseline
			l.finds(cause.Helper, string(role), c).Ratio = &ratio
		}
	}
	items := Build(l.in)
	got := make(map[string][]string)
	for _, x := range items {
		if x.Gain == nil || !(x.Gain.Lo > 1) || x.Unproven != "" || x.Contradicted {
			t.Errorf("%s has the gain %+v, unproven %q: %s", x.Rule, x.Gain, x.Unproven, x.Text)
		}
		for _, to := range x.Targets {
			for _, c := range to.Cells {
				jobs, _ := c.Get("jobs")
				from, _ := c.Get(factorIOThreads)
				level, _ := to.To.Get(factorIOThreads)
				got[x.Rule] = append(got[x.Rule], "jobs="+jobs+" from "+from+" to "+level)
			}
		}
	}
	for rule, want := range map[string][]string{
		"vmm-iothread":  {"jobs=1 from none to 1", "jobs=16 from none to 4"},
		"iothread-pool": {"jobs=16 from 1 to 4", "jobs=16 from 2 to 4"},
	} {
		slices.Sort(got[rule])
		if !slices.Equal(got[rule], want) {
			t.Errorf("%s leads %q, want %q", rule, got[rule], want)
		}
	}
	if x := l.advice(t, "vmm-iothread"); !strings.HasPrefix(x.Text, "Give the virtual machine 1–4 supplemental I/O threads. ") || !strings.Contains(patch(x, "kubevirt"), "supplementalPoolThreadCount: 4") {
		t.Errorf("%s\n%s", x.Text, patch(x, "kubevirt"))
	}
}

// TestFewestStart: where cells need three numbers or more, the text names one to start with, enough for three quarters of the cells.
func TestFewestStart(t *testing.T) {
	levels := []string{"none", "1", "2", "4", "8"}
	for want, needs := range map[string]map[string]int{ // of jobs: the index of the fewest level
		"Give the virtual machine 2 supplemental I/O threads, enough for 4 of 5 cases (1–8 by case). ": {"1": 1, "2": 2, "4": 2, "8": 2, "16": 4},
		"Give the virtual machine 4 supplemental I/O threads, enough for all 3 cases (1–4 by case). ":  {"1": 1, "2": 2, "4": 3},
	} {
		l := newLab("fio", map[string]string{"jobs": "16"})
		l.in.Factors = append(l.in.Factors, study.Factor{Name: factorIOThreads, Levels: levels}, study.Factor{Name: "jobs", Levels: []string{"1", "2", "4", "8", "16"}})
		for jobs, fewest := range needs {
			for i, level := range levels {
				value := 10.0
				if i >= fewest {
					value = 100
				}
				c := at("vm", factorIOThreads, level, "jobs", jobs)
				l.measures(c, value)
				if level == none {
					ratio := value / 120
					l.finds(cause.Helper, string(record.RoleVMM), c).Ratio = &ratio
				}
			}
		}
		x := l.advice(t, "vmm-iothread")
		if !strings.HasPrefix(x.Text, want) {
			t.Errorf("%s\nwant %s", x.Text, want)
		}
		if sets := "supplementalPoolThreadCount: " + strings.Fields(want)[4]; !strings.Contains(patch(x, "kubevirt"), sets+"\n") || len(x.Targets) < 3 {
			t.Errorf("%d targets; want %s in\n%s", len(x.Targets), sets, patch(x, "kubevirt"))
		}
	}
}

// TestFewestUnmeasured: a number that the study holds is compared with what the rule's arithmetic gives.
func TestFewestUnmeasured(t *testing.T) {
	for _, c := range []struct {
		has, says string
		cluster   bool
	}{
		{"8", "", false},
		{"2", "these cells would tell: tare run STUDY --set sandbox=process,vm --set workload=w --set io_threads=2,8", false},
		{"2", "no factor of a study varies it", true},
	} {
		l := newLab("fio", map[string]string{"jobs": "16"})
		l.in.OnCluster = c.cluster
		l.in.Factors = append(l.in.Factors, study.Factor{Name: factorIOThreads, Levels: []string{c.has}})
		l.finds(cause.Helper, string(record.RoleIOThread), at("vm", factorIOThreads, c.has))
		items := Build(l.in)
		if c.says == "" {
			if len(items) > 0 {
				t.Errorf("of %s threads: %+v", c.has, items)
			}
			continue
		}
		if x := l.advice(t, "iothread-pool"); !strings.Contains(x.Unproven, c.says) {
			t.Errorf("of %s threads, on a cluster %v: %q", c.has, c.cluster, x.Unproven)
		}
	}
}
