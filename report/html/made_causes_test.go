package html_test

import (
	"fmt"
	"slices"
	"testing"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/analyse/cause"
	"tare/analyse/stat"
	"tare/analyse/summary"
	"tare/record"
	"tare/report/document"
)

// findings give each cell of a result a cause: every kind, costing, undecided and not, with
// readings of each sort, fits, a price; and advice with a patch.
func findings(name func(string) string, tables bool) func(*analyse.Result) {
	if name == nil {
		name = func(s string) string { return s }
	}
	return func(r *analyse.Result) {
		r.Causes, r.Advice = nil, nil
		n, of := 0, map[bool]int{} // of: findings that cost, and others: each has every cause in turn
		for _, c := range r.Compared {
			if !c.First || c.Level.N == 0 {
				continue
			}
			f := cause.Finding{CellKey: record.CellKey{Workload: c.Workload, Stratum: c.Stratum, Shared: c.Shared, Treatment: c.Treatment, Cell: c.Cell, Baseline: c.Baseline}, Response: c.Response,
				Endpoint: "server", Trials: c.Level.N, Cause: cause.None, Confidence: 0.9, Text: name("nothing of it is full: the busiest thread is busy 22 % of its time")}
			if !c.Baseline {
				ratio := c.Estimate.Ratio
				f.Ratio, f.Costs = &ratio, c.Verdict == stat.Slower
				f.Undecided = !f.Costs && n%3 > 0 // of the others, some are as good
				kinds := cause.Names()
				if !f.Costs { // it is the cause of a cost alone
					kinds = slices.DeleteFunc(kinds, func(k cause.Name) bool { return k == cause.Emulation })
				}
				give(&f, kinds[of[f.Costs]%len(kinds)], name)
				of[f.Costs]++
				n++
			}
			r.Causes = append(r.Causes, f)
		}
		var cells []record.Cell
		for i := range r.Causes {
			if f := &r.Causes[i]; f.Costs && f.Cause != cause.None {
				cells = append(cells, f.Cell)
			}
		}
		r.Advice = []advice.Item{{Rule: "more-queues", Source: name("the size of a sandbox"), Treatment: r.Treatments[len(r.Treatments)-1].Key, Cells: cells, Cause: "helper",
			Change: name("Boot two vCPUs"), Text: name("Boot two vCPUs. Each has a network queue of its own, and the one vhost thread is full."),
			Gain:  &advice.Gain{Response: "latency", Better: record.Lower, From: record.Cell{{Factor: "default_vcpus", Value: "1"}}, To: record.Cell{{Factor: "default_vcpus", Value: "2"}}, Ratio: 0.61, Lo: 0.55, Hi: 0.68, Pairs: 12, Cells: 3},
			Price: name("2.5 times the CPU a request"), Warning: name("with a low CPU limit it makes latency worse"),
			Patches: []advice.Patch{{For: "pod", File: name("pod manifest"), Text: "metadata:\n  annotations:\n    io.katacontainers.config.hypervisor.default_vcpus: \"2\"\n" + name("")}}},
			{Rule: "unproven", Source: "a measurement", Treatment: r.Treatments[0].Key, Cells: cells[:1], Cause: "quota", Change: "Raise the limit", Text: "Raise the limit.", Unproven: "no cell with another limit was measured"}}
		if tables {
			r.Tables = causeTable(r, name)
		}
	}
}

// give makes a finding one of a kind.
func give(f *cause.Finding, k cause.Name, name func(string) string) {
	f.Cause, f.Confidence = k, 0.97
	role := ""
	switch k {
	case cause.Helper:
		f.Role, role, f.Confidence = "vhost", "vhost ", 0.6
	case cause.Untold:
		f.Among, f.Confidence = []cause.Name{cause.Quota, cause.Helper}, 0
	case cause.Unknown:
		f.Missing, f.Confidence = name("the guest's processors; write collectors: [guest]"), 0
	case cause.Path:
		f.Added = &cause.Fit{Over: "size", Unit: "s", X: []float64{16, 256, 4096, 65536}, Y: []float64{30.1e-6, 29.8e-6, 33e-6, 43e-6}, Constant: 30e-6, Lo: 28e-6, Hi: 32e-6, Slope: 2e-10, SlopeLo: 1.6e-10, SlopeHi: 2.4e-10}
	case cause.Saturation:
		f.Factor = &cause.Fit{Over: "connections", Unit: "ratio", X: []float64{1, 4, 16}, Y: []float64{1.2, 2.2, 2.4}, Constant: 1.6, Lo: 0.9, Hi: 2.3, Slope: 0.06, SlopeLo: -0.02, SlopeHi: 0.13}
	}
	f.Text = name(fmt.Sprintf("one %sthread is busy 88 %% of its time, and the guest 35 %% of its two processors", role))
	f.Price = &cause.Price{Unit: "request", Cores: 4.5, Base: 1.8, Ratio: 2.5, Lo: 2.4, Hi: 2.6}
	f.Readings = []cause.Reading{
		{About: k, Says: cause.Supports, Name: name(role + "thread, share of a core"), Value: 0.88, Lo: 0.85, Hi: 0.9, Unit: record.Fraction, Limit: 0.8, Series: []string{"cpu_time"}, Roles: []string{"sentry"}},
		{About: cause.Quota, Says: cause.Excludes, Name: "CPU of the quota", Value: 0.42, Lo: 0.4, Hi: 0.45, Unit: record.Fraction, Limit: 0.9, Series: []string{"cgroup_cpu", "cpu_quota"}},
		{About: cause.Link, Says: cause.Silent, Name: "bytes to the sandbox", Value: 2.4e9, Lo: 2.2e9, Hi: 2.9e9, Unit: record.BytesPerSecond, Limit: 2.5e9},
		{About: cause.Host, Says: cause.Excludes, Name: "host's processors, idle", Value: 14.2, Lo: 14.2, Hi: 14.2, Unit: record.Cores},
	}
}

// causeTable is a summary table over the sizes: a cell is of several findings.
func causeTable(r *analyse.Result, name func(string) string) []summary.Table {
	t := summary.Table{Name: name("by size"), Response: r.Compared[0].Response, Factors: []string{"sandbox"}, Column: "size", Over: []summary.Levels{{Factor: "workload"}}}
	level := func(c record.Cell, f string) string { v, _ := c.Get(f); return v }
	col := map[string]bool{}
	for i := range r.Causes {
		f := &r.Causes[i]
		if s := level(f.Cell, "size"); !col[s] {
			col[s] = true
			t.Columns = append(t.Columns, summary.Column{Level: s, Combinations: 2})
		}
		if w := level(f.Cell, "workload"); len(t.Over[0].Levels) == 0 || t.Over[0].Levels[len(t.Over[0].Levels)-1] != w {
			t.Over[0].Levels = append(t.Over[0].Levels, w)
		}
	}
	row := map[string]bool{}
	for i := range r.Causes {
		f := &r.Causes[i]
		if s := level(f.Cell, "sandbox"); !row[s] {
			row[s] = true
			x := summary.Row{Cell: record.Cell{{Factor: "sandbox", Value: s}}, Baseline: f.Baseline, Cells: make([]summary.Cell, len(t.Columns))}
			for j := range x.Cells {
				x.Cells[j] = summary.Cell{Combinations: 2, Estimate: stat.Estimate{Value: 1e-5, Base: 1e-5, Ratio: 1, Lo: 0.99, Hi: 1.01, N: 6}, Verdict: stat.Equivalent}
			}
			t.Rows = append(t.Rows, x)
		}
	}
	return []summary.Table{t}
}

func withCauses(t testing.TB, tables bool) *document.Document {
	t.Helper()
	return shape{workloads: 3, sizes: 4, responses: []string{"latency", "throughput"}, window: true, also: findings(nil, tables)}.document(t)
}
