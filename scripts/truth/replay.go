package main

import (
	"fmt"
	"math"
	"time"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// policy is a way to decide how many blocks to make.
type policy struct {
	name string
	stop study.Stop
	peek bool // a t test after each block, for each comparison by itself; stop is not used
}

// policies are those of the program, and habits. The last is the reference.
func policies() ([]policy, error) {
	var out []policy
	for _, r := range []rule{
		fixed("5"), fixed("10"), {"t test, peek each time", ""}, {"default", ""}, adaptive(), fixed("16"),
	} {
		stop, err := r.parsed()
		if err != nil {
			return nil, err
		}
		out = append(out, policy{name: r.name, stop: stop, peek: r.name == "t test, peek each time"})
	}
	return out, nil
}

// outcome is what a policy came to on readings.
type outcome struct {
	verdicts [][]said // by row and treatment
	seconds  float64
}

// said is a verdict, with the ratio that it is about.
type said struct {
	verdict stat.Verdict
	worse   bool // the ratio is on the worse side
}

// play plays a policy on readings.
func (d *readings) play(p policy, seed uint64) (*outcome, error) {
	if p.peek {
		return d.peek(p.stop), nil
	}
	st := d.study(p.stop, seed)
	if p.stop.Fixed > d.blocks {
		return nil, fmt.Errorf("%s needs more than the %d blocks of %s", p.name, d.blocks, d.name)
	}
	at := map[string]*readCell{}
	for i := range st.Strata {
		for k, c := range st.Strata[i].Cells {
			at[c.Key()] = &d.rows[i].cells[k]
		}
	}
	out := &outcome{}
	pl := plan.New(st, nil, nil)
	var trials []record.Trial
	for {
		n, ok := pl.Next()
		if !ok {
			break
		}
		c := at[n.Cell.Key()]
		t := record.Trial{Seq: n.Seq, Block: n.Block, Attempt: n.Attempt, Cell: n.Cell, Status: record.OK, Duration: time.Duration(c.seconds[n.Block-1] * float64(time.Second))}
		t.Samples = []record.Sample{{Name: response, Value: c.value[n.Block-1]}}
		if math.IsNaN(c.value[n.Block-1]) {
			t.Status, t.Samples = record.Failed, nil
		}
		out.seconds += t.Duration.Seconds()
		pl.Done(&t)
		trials = append(trials, t)
	}
	out.verdicts = d.verdicts(st, trials)
	return out, nil
}

// verdicts are what the program says of trials.
func (d *readings) verdicts(st *study.Study, trials []record.Trial) [][]said {
	type where struct{ row, treatment int }
	at := map[string]where{}
	out := make([][]said, len(d.rows))
	for i := range st.Strata {
		out[i] = make([]said, len(st.Strata[i].Cells)-1)
		for k, c := range st.Strata[i].Cells {
			at[c.Key()] = where{i, k - 1}
		}
	}
	res := analyse.Analyse(st, trials, nil, analyse.Describe(describe))
	for i := range res.Compared {
		if c := &res.Compared[i]; !c.Baseline {
			w := at[c.Cell.Key()]
			out[w.row][w.treatment] = said{c.Verdict, c.Verdict == stat.Slower}
		}
	}
	return out
}

// peek tests each comparison after each block from the third on, and stops it where p < 5 %. A row ends when
// all its comparisons have.
func (d *readings) peek(stop study.Stop) *outcome {
	out := &outcome{}
	rule := stat.NewRule(0.95, 0, stop.Margin, nil, d.blocks)
	for i := range d.rows {
		r := &d.rows[i]
		ended := make([]said, len(r.cells)-1)
		for b := range d.blocks {
			open := false
			for k := range ended {
				if ended[k].verdict.Decided() {
					continue
				}
				open = true
				out.seconds += or0(r.cells[k+1].seconds[b])
				var pairs []stat.Pair
				for j := range b + 1 {
					pairs = append(pairs, stat.Pair{Base: r.cells[0].value[j], Other: r.cells[k+1].value[j]})
				}
				if v, _ := rule.Judge(stat.Compare(pairs, 0.95), r.better()); v != stat.Equivalent || b == d.blocks-1 {
					ended[k] = said{v, v == stat.Slower}
				}
			}
			if !open {
				break
			}
			out.seconds += or0(r.cells[0].seconds[b])
		}
		out.verdicts = append(out.verdicts, ended)
	}
	return out
}

func or0(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// true reports whether a verdict is true; neither if there is none.
func (s said) is(truth, margin float64, lower bool) (right, wrong bool) {
	switch {
	case !s.verdict.Decided():
		return false, false
	case s.verdict == stat.Equivalent:
		right = math.Abs(truth) <= math.Log1p(margin)
	default:
		right = truth != 0 && s.worse == (truth > 0 == lower)
	}
	return right, !right
}
