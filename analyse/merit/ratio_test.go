package merit

import (
	"math"
	"testing"

	"tare/record"
	"tare/study"
)

// TestRatio: each level over the first, by resampling the blocks that both are in.
func TestRatio(t *testing.T) {
	st := &study.Study{Factors: []study.Factor{{Name: "sandbox", Levels: []string{"process", "vm"}}, {Name: "copies", Levels: []string{"1", "2", "4"}}}}
	ask := &study.Figure{Name: "curve", Kind: study.FigureRatio, Of: "copies", Rows: []string{"sandbox"}, Columns: []string{"copies"}}
	cell := func(sandbox, copies string, v ...float64) Reading {
		return Reading{Stratum: sandbox, Cell: record.Cell{{Factor: "sandbox", Value: sandbox}, {Factor: "copies", Value: copies}}, Values: values(v...)}
	}
	table := Build(st, ask, record.Response{Name: "first_rate", Unit: record.PerSecond, Better: record.Neither}, 0.95, []Reading{
		cell("process", "1", 100, 200, 400), cell("process", "2", 50, 100, 200), cell("process", "4", 20, 50, 125),
		cell("vm", "2", 7, 7, 7), cell("vm", "1", 14, 14, 14),
	})
	if len(table.Rows) != 2 || len(table.Columns) != 3 || table.Base != "1" {
		t.Fatalf("%+v", table)
	}
	first, half, quarter := table.Rows[0].Cells[0], table.Rows[0].Cells[1], table.Rows[0].Cells[2]
	if *first.Value != 1 || first.Interval != nil {
		t.Errorf("the first: %+v", first)
	}
	// The blocks differ by a factor of four, and the ratio within them does not.
	if math.Abs(*half.Value-0.5) > 1e-9 || half.Interval == nil || half.Interval[1]-half.Interval[0] > 1e-9 {
		t.Errorf("half: %+v", half)
	}
	if math.Abs(*quarter.Value-0.25) > 1e-9 || quarter.Interval[0] >= 0.2 || quarter.Interval[1] <= 0.3 {
		t.Errorf("a quarter: %v in %v", *quarter.Value, *quarter.Interval)
	}
	if vm := table.Rows[1].Cells; math.Abs(*vm[1].Value-0.5) > 1e-9 || vm[2].Value != nil || vm[2].Why == "" {
		t.Errorf("vm: %+v", vm)
	}
}

// TestDifference: each level minus the first, by resampling the blocks that both are in. It may be negative.
func TestDifference(t *testing.T) {
	st := &study.Study{Factors: []study.Factor{{Name: "link-path", Levels: []string{"wire", "vxlan", "bridge"}}}}
	ask := &study.Figure{Name: "added", Kind: study.FigureDifference, Of: "link-path", Columns: []string{"link-path"}}
	cell := func(path string, v ...float64) Reading {
		return Reading{Cell: record.Cell{{Factor: "link-path", Value: path}}, Values: values(v...)}
	}
	table := Build(st, ask, record.Response{Name: "latency_p50", Unit: record.Second, Better: record.Lower}, 0.95, []Reading{
		cell("wire", 100, 100, 100, 100, 100), cell("vxlan", 110, 112, 114, 116, 118), cell("bridge", 99, 97, 95, 93, 91),
	})
	if len(table.Rows) != 1 || len(table.Columns) != 3 {
		t.Fatalf("%+v", table)
	}
	first, more, less := table.Rows[0].Cells[0], table.Rows[0].Cells[1], table.Rows[0].Cells[2]
	if *first.Value != 0 || first.Interval != nil {
		t.Errorf("the first: %+v", first)
	}
	if math.Abs(*more.Value-14) > 0.1 || more.Interval == nil || more.Interval[0] < 9 || more.Interval[0] > 13 || more.Interval[1] < 15 || more.Interval[1] > 19 {
		t.Errorf("more: %v in %v", *more.Value, more.Interval)
	}
	if math.Abs(*less.Value+5) > 0.1 || less.Interval == nil || less.Interval[0] > -6 || less.Interval[1] < -4 || less.Interval[1] > 0 {
		t.Errorf("less: %v in %v", *less.Value, less.Interval)
	}
}
