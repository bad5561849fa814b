package weigh

import (
	"fmt"

	"tare/analyse/stat"
	"tare/record"
	"tare/report/terminal"
	"tare/report/words"
	"tare/study"
)

// Starts says how long each sandbox takes to start, and how many times as long as natively, block
// by block, with intervals. Nobody stops by them, so plain intervals will do.
func Starts(rows []Row, trials []record.Trial) []string {
	by := map[string]map[int]float64{} // by sandbox and block
	for i := range trials {
		t := &trials[i]
		sandbox, _ := t.Cell.Get(study.FactorSandbox)
		for _, s := range t.Samples {
			if t.Status != record.OK || s.Name != "sandbox_start" || s.Labels.Get("sandbox") != sandbox || !(s.Value > 0) {
				continue
			}
			if by[sandbox] == nil {
				by[sandbox] = map[int]float64{}
			}
			by[sandbox][t.Block] = s.Value
		}
	}
	var out []string
	var base map[int]float64
	told := map[string]bool{}
	for i := range rows {
		w := &rows[i]
		if own := by[w.Sandbox]; w.Baseline {
			base = own
		} else if s, beside := started(base, own); s != "" && !told[w.Sandbox] {
			told[w.Sandbox] = true
			out = append(out, cut(fitting(terminal.Line(w.Sandbox)+" "+s, beside)))
		}
	}
	return out
}

// started is that sentence without its subject, and what it says beside the native start; "" with too
// few blocks for an interval.
func started(base, own map[int]float64) (s, beside string) {
	const confidence = 0.95
	var alone []stat.Pair
	for _, v := range own {
		alone = append(alone, stat.Pair{Base: 1, Other: v})
	}
	took, ratio := stat.Compare(alone, confidence), stat.Compare(stat.Pairs(base, own), confidence)
	if !took.HasInterval() || !ratio.HasInterval() {
		return "", ""
	}
	sure := fmt.Sprintf(" ±%.2g %%", 100*took.HalfWidth())
	if took.HalfWidth() > 0.5 {
		sure = fmt.Sprintf(" (%s to %s)", words.Value(took.Lo, record.Second), words.Value(took.Hi, record.Second))
	}
	return fmt.Sprintf("starts in %s%s", words.Value(took.Ratio, record.Second), sure),
		fmt.Sprintf(": %s natively (%s)", words.Times(ratio.Ratio), span(ratio.Lo, ratio.Hi))
}
