package html_test

import (
	"fmt"
	"slices"
	"testing"

	"tare/analyse"
	"tare/report/document"
)

// TestSupersededTrialsMakeNoPair: a good trial that does not count, because its
// block ran again, is in no ratio, so that the details show no pair of it.
func TestSupersededTrialsMakeNoPair(t *testing.T) {
	b := browse(t)
	d := small(t)
	i := slices.IndexFunc(d.Result.Compared, func(c analyse.Comparison) bool { return !c.Baseline && c.Estimate.N > 0 })
	if i < 0 {
		t.Fatal("the document has no ratio")
	}
	blocks := fmt.Sprintf(`(() => { const c = Tare.data.res.comparisons[%d];
		const item = Tare.data.items.find((i) => i.c === c);
		return Tare.pairs(item).filter((p) => p.ratio > 0).length })()`, i)
	b.goTo("file://" + write(t, d))
	before := eval[int](b, blocks)
	cell := slices.IndexFunc(d.Cells, func(c document.Cell) bool { return c.Key == d.Result.Compared[i].Cell.Key() })
	trial := slices.IndexFunc(d.Trials.Cell, func(c int) bool { return c == cell })
	d.Result.Superseded = []analyse.Superseded{{Seq: d.Trials.Seq[trial], Block: d.Trials.Block[trial], Attempt: d.Trials.Attempt[trial], Cell: d.Cells[cell].Levels}}
	b.goTo("file://" + write(t, d))
	if after := eval[int](b, blocks); before == 0 || after != before-1 {
		t.Errorf("%d pairs with the trial, %d without it", before, after)
	}
}
