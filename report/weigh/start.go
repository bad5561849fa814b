package weigh

import (
	"fmt"

	"tare/analyse/stat"
	"tare/record"
	"tare/report/terminal"
	"tare/report/words"
	"tare/study"
)

// Starts says how long a sandbox takes from the call that makes it to its end, and how much longer that is than natively, block
// by block, with intervals. Of kinds that have no such figure it says how long they take to start. Nobody stops by them, so
// plain intervals will do.
func Starts(rows []Row, trials []record.Trial) []string {
	by := map[string]map[int]float64{}    // by sandbox and block
	whole := map[string]map[int]float64{} // those with an end
	for i := range trials {
		t := &trials[i]
		sandbox, _ := t.Cell.Get(study.FactorSandbox)
		for _, s := range t.Samples {
			to := by
			switch {
			case t.Status != record.OK || s.Labels.Get("sandbox") != sandbox || !(s.Value > 0):
				continue
			case s.Name == record.SandboxLife:
				to = whole
			case s.Name != "sandbox_start":
				continue
			}
			if to[sandbox] == nil {
				to[sandbox] = map[int]float64{}
			}
			to[sandbox][t.Block] = s.Value
		}
	}
	var out []string
	native := ""
	told := map[string]bool{}
	for i := range rows {
		w := &rows[i]
		if w.Baseline {
			native = w.Sandbox
			continue
		}
		base, own, does := whole[native], whole[w.Sandbox], "starts and ends in"
		if len(base) == 0 || len(own) == 0 {
			base, own, does = by[native], by[w.Sandbox], "starts in"
		}
		if s, beside := started(base, own); s != "" && !told[w.Sandbox] {
			told[w.Sandbox] = true
			out = append(out, cut(fitting(terminal.Line(w.Sandbox)+" "+does+" "+s, beside)))
		}
	}
	return out
}

// started is that sentence without its beginning, and what it says beside the native start; "" with too
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
	return fmt.Sprintf("%s%s", words.Value(took.Ratio, record.Second), sure),
		fmt.Sprintf(": %s natively (%s)", words.Times(ratio.Ratio), span(ratio.Lo, ratio.Hi))
}
