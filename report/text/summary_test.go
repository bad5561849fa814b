package text

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"tare/analyse"
	"tare/analyse/cpucost"
	"tare/analyse/stat"
	"tare/analyse/summary"
	"tare/record"
)

// kataResult has the table of E1, an emulated virtual machine and CPU costs.
func kataResult() *analyse.Result {
	box := func(l string, vcpus ...string) record.Cell {
		c := record.Cell{{Factor: "sandbox", Value: l}}
		for _, v := range vcpus {
			c = append(c, record.Level{Factor: "default_vcpus", Value: v})
		}
		return c
	}
	r := &analyse.Result{Study: "kata", Compare: "sandbox", Baseline: "process", Confidence: 0.95, Margin: 0.03, Finished: true, Reason: "all is decided",
		Accelerators: []analyse.Accelerator{{Sandbox: "vm", Name: "vm (TCG)", Trials: map[string]int{"tcg": 40}}}}
	tab := summary.Table{Name: "bandwidth", Response: throughput, Factors: []string{"sandbox", "default_vcpus"}, Column: "cpu-limit",
		Columns: []summary.Column{{Level: "none", Combinations: 3}, {Level: "1", Combinations: 3}, {Level: "2", Combinations: 3}},
		Over:    []summary.Levels{{Factor: "connections", Levels: []string{"1", "4", "16"}}},
		Fixed:   record.Cell{{Factor: "workload", Value: "stream"}, {Factor: "size", Value: "4KiB"}}}
	for i, x := range []struct {
		cell record.Cell
		mean bool
	}{{box("process"), false}, {box("runc"), false}, {box("vm", "1"), false}, {box("vm", "2"), false}, {box("vm"), true}} {
		row := summary.Row{Cell: x.cell, Baseline: i == 0, Mean: x.mean}
		for j := range tab.Columns {
			ratio := 1 / float64(1+i+j)
			c := summary.Cell{Combinations: 3, Verdict: stat.Slower, Estimate: stat.Estimate{Value: 1.9e9 * ratio, Base: 1.9e9, Ratio: ratio, Lo: ratio * 0.93, Hi: ratio * 1.06, N: 12}}
			switch {
			case i == 0:
				c.Verdict, c.Estimate = "", stat.Estimate{Value: 1.9e9, N: 12}
			case i == 3 && j == 1:
				c.Combinations, c.Fewer = 2, true
			case i == 3 && j == 2:
				c = summary.Cell{Why: "this host cannot run it"}
			case i == 2 && j == 2:
				c.Estimate.Lo, c.Estimate.Hi, c.Verdict = 0, 0, stat.Undecided
			}
			row.Cells = append(row.Cells, c)
		}
		tab.Rows = append(tab.Rows, row)
	}
	r.Tables = []summary.Table{tab}
	shared := record.Cell{{Factor: "workload", Value: "stream"}, {Factor: "size", Value: "64KiB"}}
	for i, cell := range []record.Cell{box("process"), box("vm", "2")} {
		r.Treatments = append(r.Treatments, analyse.Treatment{Key: cell.Key(), Cell: cell, Baseline: i == 0})
		c := cpucost.Cost{CellKey: record.CellKey{Workload: "stream", Stratum: shared.Key(), Shared: shared, Treatment: cell.Key(), Cell: cell, Baseline: i == 0}, Response: throughput,
			Unit: "GB", Endpoints: []string{"server"}, Source: cpucost.FromRoles, Trials: 4, Cores: 1.8, Rate: 2.5e9, Value: 0.72}
		if i == 1 {
			c.Cores, c.Value = 4.5, 1.8
			c.Estimate = stat.Estimate{Ratio: 2.5, Lo: 2.4, Hi: 2.6, N: 4}
			c.Verdict = stat.Slower
			c.Roles = []cpucost.Role{{Role: "vcpu", Part: 0.66}, {Role: "vhost", Part: 0.26}, {Role: "vmm", Part: 0.079}, {Role: "gofer", Part: 0.001}}
		}
		r.CPUCosts = append(r.CPUCosts, c)
		q := cpucost.Quota{CellKey: record.CellKey{Workload: "stream", Stratum: shared.Key(), Shared: shared, Treatment: cell.Key(), Cell: cell, Baseline: i == 0}, Endpoint: "server", Trials: 4,
			Quota: 2, Cores: 1.2, Source: cpucost.FromRoles, Roles: []cpucost.Role{{Role: "workload", Part: 1, Cores: 1.2}}}
		if i == 1 {
			q.Quota, q.Cores, q.Throttled, q.Time = 2.25, 2.21, 0.83, 0.31
			q.Roles = []cpucost.Role{{Role: "vcpu", Part: 0.9, Cores: 2}, {Role: "vmm", Part: 0.1, Cores: 0.21}}
		}
		r.Quotas = append(r.Quotas, q)
		r.Compared = append(r.Compared, analyse.Comparison{Workload: "stream", Stratum: shared.Key(), Shared: shared, Treatment: cell.Key(), Cell: append(shared[:2:2], cell...),
			Baseline: i == 0, Response: throughput, Level: analyse.Level{N: 4, Typical: 2.5e9}, Base: analyse.Level{N: 4, Typical: 2.5e9}, Estimate: c.Estimate, Verdict: stat.Slower})
	}
	agent := 0.034
	r.Overheads = []analyse.Overhead{{Sandbox: "process", Trials: 4, Trial: time.Second}, {Sandbox: "vm", Trials: 4, Trial: 5 * time.Second, Agent: &agent}}
	for _, start := range []string{"boot", "snapshot"} {
		phases := []analyse.PhaseTime{{Name: "process", Trials: 4, Median: 70 * time.Millisecond}, {Name: "kernel", Trials: 4, Median: 3 * time.Second}}
		if start == "snapshot" {
			phases[1] = analyse.PhaseTime{Name: "resume", Trials: 4, Median: 300 * time.Millisecond}
		}
		r.Boots = append(r.Boots, analyse.Boot{Cell: append(box("vm"), record.Level{Factor: "start", Value: start}), Starts: 4, Start: 3200 * time.Millisecond, Phases: phases})
	}
	return r
}

func TestTablesGolden(t *testing.T) {
	for _, width := range []int{50, 80, 120} {
		var b bytes.Buffer
		if err := Write(&b, kataResult(), nil, Options{Width: width}); err != nil {
			t.Fatal(err)
		}
		fits(t, b.String(), width)
		golden(t, fmt.Sprintf("tables-%d", width), b.Bytes())
	}
}

// TestAcceleratorIsSaid wherever a virtual machine's level is named.
func TestAcceleratorIsSaid(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, kataResult(), nil, Options{Width: 120}); err != nil {
		t.Fatal(err)
	}
	s := strings.Join(strings.Fields(b.String()), " ") // lines are wrapped
	if n, all := strings.Count(s, "vm (TCG)"), strings.Count(s, "vm")-strings.Count(s, "vmm"); n != all || n < 7 {
		t.Errorf("%d of %d name the accelerator:\n%s", n, all, s)
	}
	if !strings.Contains(s, "TCG: the processor is emulated in software") {
		t.Errorf("nothing says what TCG is:\n%s", s)
	}
	r := kataResult()
	r.Accelerators = nil
	b.Reset()
	if err := Write(&b, r, nil, Options{Width: 120}); err != nil || strings.Contains(b.String(), "TCG") {
		t.Errorf("%v: without accelerators: %s", err, b.String())
	}
}
