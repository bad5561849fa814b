// Package analyse turns the trials of a study into comparisons with intervals
// and verdicts. It needs no sandbox and no host: old results are analysed on any
// machine.
//
// The data path: 1. the trials are put in order and the last good attempt of
// each cell and block is kept; 2. for each stratum and response, the values of
// treatment and baseline in the same block become pairs; 3. package stat sums
// them up, moderates the variances over the study and judges; 4. package plan,
// fed with the same trials, says why each stratum stopped; 5. failures, warnings,
// skips and overheads are carried along.
//
// How the variances are pooled: the first responses of all strata together,
// because those are what plan looks at, and all further responses together.
package analyse

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
	"tare/study"
)

// Option changes what Analyse knows.
type Option func(*analysis)

// Describe tells the responses of a workload: their units and the direction
// that is better. Without it, units are those of the samples and verdicts say
// higher or lower.
func Describe(f func(study.Workload) []record.Response) Option {
	return func(a *analysis) { a.describe = f }
}

type analysis struct {
	study    *study.Study
	describe func(study.Workload) []record.Response
	plan     *plan.Plan
	rule     stat.Rule
	trials   []*record.Trial // in order
	byCell   map[string][]*record.Trial
	skipped  map[string]string
}

// Analyse analyses a study. The order of trials does not matter. It changes
// none of its arguments.
func Analyse(st *study.Study, trials []record.Trial, skips []record.Skip, opts ...Option) *Result {
	a := &analysis{study: st, rule: plan.Rule(st), plan: plan.New(st, skips),
		byCell: make(map[string][]*record.Trial), skipped: make(map[string]string)}
	for _, o := range opts {
		o(a)
	}
	for i := range trials {
		a.trials = append(a.trials, &trials[i])
	}
	keys := make(map[*record.Trial]string, len(trials))
	for _, t := range a.trials {
		keys[t] = t.Cell.Key()
	}
	slices.SortFunc(a.trials, func(x, y *record.Trial) int {
		return cmp.Or(cmp.Compare(x.Seq, y.Seq), cmp.Compare(x.Block, y.Block),
			cmp.Compare(keys[x], keys[y]), cmp.Compare(x.Attempt, y.Attempt), x.Start.Compare(y.Start))
	})
	for _, t := range a.trials {
		a.plan.Done(t)
		a.byCell[keys[t]] = append(a.byCell[keys[t]], t)
	}
	for _, s := range skips {
		a.skipped[s.Cell.Key()] = s.Reason
	}

	r := &Result{Study: st.Name, Compare: st.Compare, Baseline: st.Baseline, Trials: len(trials), Skips: skips,
		Confidence: a.rule.Confidence, Level: a.rule.Level(), Margin: a.rule.Margin}
	r.Treatments = a.treatments()
	r.Compared = a.compare()
	a.failures(r)
	a.warnings(r)
	r.Overheads = a.overheads()
	r.Reason = a.plan.Reason()
	r.Finished = r.Reason != ""
	r.Left = a.plan.Remaining(nil)
	return r
}

// treatments lists the columns in the study's order.
func (a *analysis) treatments() []Treatment {
	var out []Treatment
	seen := make(map[string]bool)
	for i := range a.study.Strata {
		s := &a.study.Strata[i]
		for j, c := range s.Cells {
			t := a.study.Treatment(i, c)
			if k := t.Key(); !seen[k] {
				seen[k] = true
				out = append(out, Treatment{Key: k, Cell: t, Baseline: j == s.Baseline})
			}
		}
	}
	// A stratum may lack a level: order by the levels of the compared factor as
	// the study lists them, not by where each was met first.
	rank := make(map[string]int)
	for _, f := range a.study.Factors {
		if f.Name == a.study.Compare {
			for i, l := range f.Levels {
				rank[l] = i
			}
		}
	}
	slices.SortStableFunc(out, func(x, y Treatment) int {
		xl, _ := x.Cell.Get(a.study.Compare)
		yl, _ := y.Cell.Get(a.study.Compare)
		return cmp.Compare(rank[xl], rank[yl])
	})
	return out
}

// compare makes all comparisons, in the study's order: stratum, response,
// treatment.
func (a *analysis) compare() []Comparison {
	var out []Comparison
	var sums []stat.Summary // beside out
	pools := map[bool]*struct{ s2, df []float64 }{true: {}, false: {}}
	for i := range a.study.Strata {
		s := &a.study.Strata[i]
		var w study.Workload
		if s.Workload >= 0 && s.Workload < len(a.study.Workloads) {
			w = a.study.Workloads[s.Workload]
		}
		var ending *plan.Ending
		if e, ok := a.plan.Ending(i); ok {
			ending = &e
		}
		var baseTrials []*record.Trial
		if s.Baseline >= 0 && s.Baseline < len(s.Cells) {
			baseTrials = a.byCell[s.Cells[s.Baseline].Key()]
		}
		for k, response := range a.responses(w) {
			base := readings(baseTrials, response.Name)
			for j, cell := range s.Cells {
				trials := a.byCell[cell.Key()]
				own := readings(trials, response.Name)
				c := Comparison{Workload: w.Label, Kind: w.Kind, Stratum: s.Key, Shared: s.Shared,
					Treatment: a.study.Treatment(i, cell).Key(), Cell: cell, Baseline: j == s.Baseline,
					Response: response, First: k == 0, Level: level(trials, own, response), Base: level(baseTrials, base, response),
					Ending: ending, Skipped: a.skipped[cell.Key()], GaveUp: a.plan.GaveUp(cell)}
				c.Failed, c.Failures = reasons(trials)
				if c.Response.Unit == "" {
					c.Response.Unit = cmp.Or(c.Level.Unit, c.Base.Unit)
				}
				var sum stat.Summary
				if !c.Baseline {
					sum = stat.Summarise(pairs(base, own))
					if c.Base.BelowNoise+c.Level.BelowNoise > 0 {
						sum.Undefined = belowNoise(&c)
					}
					if sum.Undefined == "" {
						p := pools[c.First]
						p.s2, p.df = append(p.s2, sum.Var), append(p.df, float64(sum.N-1))
					}
				}
				out, sums = append(out, c), append(sums, sum)
			}
		}
	}
	priors := map[bool]stat.Prior{}
	for first, p := range pools {
		priors[first] = stat.Moderate(p.s2, p.df)
	}
	for i := range out {
		if c := &out[i]; !c.Baseline {
			c.Estimate = a.rule.Estimate(sums[i], priors[c.First])
			c.Verdict, c.Why, _ = a.rule.Judge(c.Estimate, c.Response.Better)
			a.explain(c)
		}
	}
	return out
}

// explain says more about a comparison that came to nothing.
func (a *analysis) explain(c *Comparison) {
	if c.Verdict != stat.Undecided {
		return
	}
	switch {
	case c.Skipped != "":
		c.Why = "this host cannot run it: " + c.Skipped
	case c.Base.N == 0 && c.Level.N > 0 && c.Base.BelowNoise == 0:
		c.Why = "there is no value of the baseline to compare with"
	case c.GaveUp != "":
		c.Why += "; given up: " + c.GaveUp
	case c.Estimate.N < stat.MinN && c.Failed > 0:
		c.Why += fmt.Sprintf("; %d failed, the last time: %s", c.Failed, c.Failures[len(c.Failures)-1].Text)
	case c.Level.BelowNoise+c.Base.BelowNoise > 0:
		c.Why = "no ratio: " + belowNoise(c) // more to the point than how few are left
	case c.Level.N == 0 && c.Level.Missing > 0:
		c.Why += fmt.Sprintf("; %d good trials have no value of %s", c.Level.Missing, c.Response.Name)
	}
}

// responses describes what a workload's entry compares.
func (a *analysis) responses(w study.Workload) []record.Response {
	var known []record.Response
	if a.describe != nil {
		known = a.describe(w)
	}
	out := make([]record.Response, len(w.Responses))
	for i, name := range w.Responses {
		out[i] = record.Response{Name: name, Better: record.Neither}
		for _, r := range known {
			if r.Name == name {
				out[i] = r
			}
		}
	}
	return out
}

// belowNoise says why there is no ratio. The blocks whose values are clear of
// noise are not compared by themselves: that they came out high is what they
// were chosen by, and the ratio would be wrong by it.
func belowNoise(c *Comparison) string {
	of := func(l Level) string { return fmt.Sprintf("%d of %d", l.BelowNoise, l.N+l.Missing) }
	s := c.Response.Name + " is below noise in "
	switch {
	case c.Level.BelowNoise == 0:
		return s + of(c.Base) + " trials of the baseline"
	case c.Base.BelowNoise == 0:
		return s + of(c.Level) + " trials"
	}
	return s + of(c.Level) + " trials, and " + of(c.Base) + " of the baseline"
}

// readings returns the value in each block that was tried: that of the last good
// attempt; NaN where every attempt failed, or it has no such value or one below
// noise.
func readings(trials []*record.Trial, response string) map[int]float64 {
	out := make(map[int]float64, len(trials))
	for _, t := range trials {
		if _, tried := out[t.Block]; !tried {
			out[t.Block] = math.NaN()
		}
	}
	for block, t := range good(trials) {
		if v, ok := t.Sample(response); ok && !t.BelowNoise(response) {
			out[block] = v
		}
	}
	return out
}

// good returns the last good attempt of each block.
func good(trials []*record.Trial) map[int]*record.Trial {
	out := make(map[int]*record.Trial, len(trials))
	for _, t := range trials {
		if t.Status != record.OK {
			continue
		}
		if o := out[t.Block]; o == nil || t.Attempt >= o.Attempt {
			out[t.Block] = t
		}
	}
	return out
}

// pairs puts together the blocks in which both were tried.
func pairs(base, own map[int]float64) []stat.Pair {
	var out []stat.Pair
	for block, v := range own {
		if b, ok := base[block]; ok {
			out = append(out, stat.Pair{Base: b, Other: v})
		}
	}
	return out
}

func level(trials []*record.Trial, values map[int]float64, response record.Response) Level {
	l := Level{Unit: response.Unit}
	var v []float64
	for block, t := range good(trials) {
		x := values[block]
		if math.IsNaN(x) || math.IsInf(x, 0) {
			l.Missing++
			if t.BelowNoise(response.Name) {
				l.BelowNoise++
			}
			continue
		}
		v = append(v, x)
		if l.Unit == "" {
			l.Unit = unitOf(t, response.Name)
		}
	}
	if l.N = len(v); l.N == 0 {
		return l
	}
	l.Median, l.Min, l.Max = stat.Median(v), slices.Min(v), slices.Max(v)
	if l.Typical = stat.GeoMean(v); math.IsNaN(l.Typical) {
		l.Typical = l.Median
	}
	return l
}

func unitOf(t *record.Trial, response string) record.Unit {
	for i := range t.Samples {
		if t.Samples[i].Name == response && t.Samples[i].Labels == "" {
			return t.Samples[i].Unit
		}
	}
	return ""
}
