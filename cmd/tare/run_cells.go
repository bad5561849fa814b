package main

import (
	"tare/plan"
	"tare/record"
	"tare/study"
)

func cells(st *study.Study) int {
	n := 0
	for i := range st.Strata {
		n += len(st.Strata[i].Cells)
	}
	return n
}

// possible counts the cells that the host can run, the sentinel's and those that
// count system calls left out.
func possible(st *study.Study, skips []record.Skip) int {
	n := cells(st)
	for _, s := range skips {
		if (st.Sentinel == nil || s.Cell.Key() != st.Sentinel.Cell.Key()) && !study.IsCounting(s.Cell) {
			n--
		}
	}
	return n
}

// onlyBaselines says whether the host skips all that the study compares with a baseline.
// A study that compares nothing asked for nothing more.
func onlyBaselines(st *study.Study, skips []record.Skip) bool {
	skipped := map[string]bool{}
	for _, s := range skips {
		skipped[s.Cell.Key()] = true
	}
	others := 0
	for i := range st.Strata {
		for j, c := range st.Strata[i].Cells {
			if j == st.Strata[i].Baseline {
				continue
			}
			if !skipped[c.Key()] {
				return false
			}
			others++
		}
	}
	return others > 0
}

// withoutBaselines returns why a baseline is left out, if each stratum that compares something lost its baseline. nil: something can be compared.
func withoutBaselines(st *study.Study, skips []record.Skip) *record.Skip {
	skipped := map[string]*record.Skip{}
	for i := range skips {
		skipped[skips[i].Cell.Key()] = &skips[i]
	}
	var why *record.Skip
	for i := range st.Strata {
		s := &st.Strata[i]
		if s.Baseline < 0 || len(s.Cells) == 1 {
			continue
		}
		if why = skipped[s.Cells[s.Baseline].Key()]; why == nil {
			return nil
		}
	}
	return why
}

// failedForGood counts the cells that were given up, or that ran and never well.
// The sentinel is none of them, nor is a trial that counts system calls: without
// either the results are as good.
func failedForGood(st *study.Study, p *plan.Plan, trials []record.Trial) int {
	good, ran := map[string]bool{}, map[string]record.Cell{}
	for i := range trials {
		key := trials[i].Cell.Key()
		if st.Sentinel != nil && key == st.Sentinel.Cell.Key() || study.IsCounting(trials[i].Cell) {
			continue
		}
		ran[key] = trials[i].Cell
		good[key] = good[key] || trials[i].Status == record.OK
	}
	n := 0
	for key, cell := range ran {
		if !good[key] || p.GaveUp(cell) != "" {
			n++
		}
	}
	return n
}
