package section

import (
	"strings"
	"testing"

	"tare/analyse"
	"tare/record"
)

// TestCostsWithoutSkipped: a level that could not run anywhere has no column, unless none could.
func TestCostsWithoutSkipped(t *testing.T) {
	cell := func(level, skipped string, baseline bool) analyse.Comparison {
		c := analyse.Comparison{Workload: "rr", Stratum: "workload=rr", First: true, Baseline: baseline, Skipped: skipped, Treatment: record.Cell{{Factor: "link-path", Value: level}}.Key(), Response: record.Response{Name: "rate", Unit: record.PerSecond, Better: record.Higher}}
		c.Level.N, c.Level.Typical = 3, 100
		return c
	}
	side := func(level string, baseline bool) analyse.Treatment {
		c := record.Cell{{Factor: "link-path", Value: level}}
		return analyse.Treatment{Key: c.Key(), Cell: c, Baseline: baseline}
	}
	r := &analyse.Result{Compare: "link-path", Baseline: "wire", Treatments: []analyse.Treatment{side("wire", true), side("geneve", false), side("bridge", false)}, Compared: []analyse.Comparison{cell("wire", "", true), cell("geneve", "no Geneve", false), cell("bridge", "", false)}}
	heads := func() string {
		var out []string
		for _, c := range Costs(r).Blocks[0].Table.Columns {
			out = append(out, c.Head)
		}
		return strings.Join(out, "|")
	}
	if got := heads(); got != "times the cost with link-path=wire|wire|bridge" {
		t.Error(got)
	}
	r.Compared = r.Compared[:2]
	if got := heads(); !strings.Contains(got, "geneve") {
		t.Error(got)
	}
}
