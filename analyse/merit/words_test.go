package merit

import (
	"math"
	"testing"

	"tare/record"
	"tare/study"
)

// TestTotalOfWords: levels that are words have positions, which have no mean. Levels that count from none have one.
func TestTotalOfWords(t *testing.T) {
	const blocks = 4
	totalOf := func(levels ...string) (first, total Cell) {
		st := &study.Study{Factors: []study.Factor{{Name: "io", Levels: levels}, {Name: "op", Levels: []string{"read", "write"}}}}
		ask := &study.Figure{Name: "few", Kind: study.FigureFewest, Of: "io", Share: 0.9, Response: "rate", Rows: []string{"op"}, Total: "op"}
		var readings []Reading
		for at, op := range []string{"read", "write"} {
			for i, l := range levels {
				v := 10.0
				if i > at { // the second level is enough to read, and the third to write
					v = 100
				}
				r := Reading{Stratum: op, Cell: record.Cell{{Factor: "io", Value: l}, {Factor: "op", Value: op}}, Values: make(map[int]float64)}
				for b := range blocks {
					r.Values[b+1] = v
				}
				readings = append(readings, r)
			}
		}
		rows := Build(st, ask, record.Response{Name: "rate", Better: record.Higher}, 0.95, readings).Rows
		if len(rows) != 3 || !rows[2].Total {
			t.Fatalf("%+v", rows)
		}
		return rows[0].Cells[0], rows[2].Cells[0]
	}
	first, total := totalOf("none", "native", "uring", "threads")
	if first.Level != "native" || !first.Decided {
		t.Errorf("of words: %+v", first)
	}
	if total.Value != nil || total.Interval != nil || total.Why != "levels that are words have no mean" || total.Blocks != blocks {
		t.Errorf("the total of words: %+v", total)
	}
	if _, total := totalOf("none", "1", "2", "4"); total.Value == nil || math.Abs(*total.Value-1.5) > 1e-9 || total.Interval == nil || total.Why != "" {
		t.Errorf("the total of numbers: %+v", total)
	}
}
