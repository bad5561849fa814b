// Package analyse turns the trials of a study into comparisons with intervals
// and verdicts. It needs no sandbox and no host: old results are analysed on any
// machine.
//
// The data path: 1. the trials are put in order and the last good attempt of
// each cell and block is kept, of its last round where the block ran again
// because the machine changed about it (counting.go); 2. for each stratum and response, the values of
// treatment and baseline in the same block become pairs; 3. package stat sums
// them up, moderates the variances over the study and judges; 4. package plan,
// fed with the same trials, says why each stratum stopped; 5. failures, warnings,
// skips and overheads are carried along.
//
// How the variances are pooled: the first responses of all strata together,
// because those are what plan looks at, and all further responses together. Within
// either, the comparisons of one response of one workload are a group: see stat.Moderate.
package analyse

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"tare/analyse/cause"
	"tare/analyse/cpucost"
	"tare/analyse/published"
	"tare/analyse/stat"
	"tare/param"
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

// RunWith sets the flags that selected the site of the first run (Result.Flags).
func RunWith(flags string) Option {
	return func(a *analysis) { a.flags = flags }
}

type analysis struct {
	flags       string
	study       *study.Study
	describe    func(study.Workload) []record.Response
	plan        *plan.Plan
	rule        stat.Rule
	trials      []*record.Trial // in order
	sentinel    string          // key of its cell; "" for none
	several     bool            // there are several nodes
	byCell      map[string][]*record.Trial
	kinds       map[string]record.Traits          // what the sandboxes are, by name
	counting    map[string]map[int]*record.Trial  // by Cell.Key and block
	advised     func(*Result)                     // of AdviceOn; nil: nothing besides
	cpu         *cpucost.Reader                   // nil: the trials have their CPU figures
	causeReader *cause.Reader                     // nil: the trials have what causes are told by
	params      func(study.Workload) param.Values // with defaults; nil: what the study says
	skips       []record.Skip
	skipped     map[string]string
	priors      map[string]stat.Prior    // of the variances, by Comparison.key; compare finds them
	parts       map[string]stat.Estimate // what goes into means over several comparisons, likewise
}

// Analyse analyses a study. The order of trials does not matter. It changes
// none of its arguments.
func Analyse(st *study.Study, trials []record.Trial, skips []record.Skip, opts ...Option) *Result {
	nodes := nodesOf(trials)
	a := &analysis{study: st, rule: plan.Rule(st), plan: plan.New(st, skips, nodes), several: len(nodes) > 1, skips: skips,
		byCell: make(map[string][]*record.Trial), skipped: make(map[string]string)}
	for _, o := range opts {
		o(a)
	}
	if st.Sentinel != nil {
		a.sentinel = st.Sentinel.Cell.Key()
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
	a.kinds = a.traits()
	skips = append(slices.Clip(skips), a.plan.Skipped()...)
	for _, s := range skips {
		a.skipped[s.Cell.Key()] = s.Reason
	}

	r := &Result{Study: st.Name, Flags: a.flags, Compare: st.Compare, Baseline: st.Baseline, Trials: len(trials), Skips: ofCells(skips),
		Confidence: a.rule.Confidence, Level: a.rule.Level(), Margin: a.rule.Margin, Superseded: superseded(a.plan, a.trials)}
	a.counting = r.Counting(trials)
	r.Nodes = a.nodes()
	r.Treatments = a.treatments()
	r.Common = common(r.Treatments)
	r.Compared = a.compare()
	r.Discoveries = discoveries(a.rule, r.Compared)
	r.Placements = a.placements()
	r.Certificates = a.certificates()
	r.Published = published.Compare(st, a.rule, a.summary, a.kinds)
	r.Structural = a.shares(r)
	r.Tables = a.tables(r)
	r.Figures = a.figures()
	r.Tuned = a.tuned()
	r.CPUCosts = a.cpuCosts(r)
	r.Quotas = a.quotas()
	r.Modelled, r.OnCluster = slices.ContainsFunc(a.trials, (*record.Trial).Modelled), slices.ContainsFunc(a.trials, clusterTrial)
	r.Imported = a.imported()
	r.Causes = a.causes(r)
	r.Advice = a.advise(r)
	if a.advised != nil {
		a.advised(r)
	}
	r.Boots = a.boots(r)
	r.LoadSteps = a.loadSteps()
	a.failures(r)
	a.warnings(r)
	a.others(r)
	r.Accelerators = a.accelerators(r)
	r.Overheads = a.overheads()
	a.epochs(r)
	a.betweenNodes(r)
	a.modelled(r)
	r.Reason, r.Left = a.plan.Reason(), a.plan.Remaining(nil)
	if r.Reason == "" && r.Imported {
		r.Reason, r.Left = unequal, plan.Progress{Done: r.Left.Done}
	}
	r.Finished = r.Reason != ""
	r.Gaps = a.gaps()
	return r
}

// unequal is the reason of an imported result whose cells have different numbers of blocks. Nothing
// can be added to it, and nobody knows why the other tool made fewer of some.
const unequal = "all that was imported; cells have different numbers of blocks, so if some ended because they looked precise, their intervals are too narrow"

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
	variances := map[bool][]stat.Variance{}
	var bases []record.Cell // beside out
	var at []int            // beside out: of variances
	for i := range a.study.Strata {
		s := &a.study.Strata[i]
		w := a.study.WorkloadOf(i)
		var ending *plan.Ending
		if e, ok := a.plan.Ending(i); ok {
			ending = &e
		}
		baseline, of := "", record.Cell(nil)
		if s.Baseline >= 0 && s.Baseline < len(s.Cells) {
			of = s.Cells[s.Baseline]
			baseline = of.Key()
		}
		for k, response := range a.responses(w) {
			base := a.readings(baseline, response.Name)
			for j, cell := range s.Cells {
				key := cell.Key()
				own := a.readings(key, response.Name)
				c := Comparison{Workload: w.Label, Kind: w.Kind, Stratum: s.Key, Shared: s.Shared,
					Treatment: a.study.Treatment(i, cell).Key(), Cell: cell, Baseline: j == s.Baseline,
					Response: response, First: k == 0, Level: level(a.counting[key], own, response), Base: level(a.counting[baseline], base, response),
					Ending: ending, Skipped: a.skipped[key], GaveUp: a.plan.GaveUp(cell)}
				if c.Skipped != "" {
					c.GaveUp = ""
				}
				c.Failed, c.Failures = reasons(a.byCell[key])
				c.Steady = steadiness(a.counting[key], response.Name)
				if c.Response.Unit == "" {
					c.Response.Unit = cmp.Or(c.Level.Unit, c.Base.Unit)
				}
				var sum stat.Summary
				if !c.Baseline {
					sum = stat.Summarise(stat.Pairs(base, own))
					if of != nil && w.Turns > 1 {
						c.Scatter = a.scatter(of, cell, response.Name)
					}
					if c.Base.BelowNoise+c.Level.BelowNoise > 0 {
						sum.Undefined = belowNoise(&c)
					}
				}
				at = append(at, len(variances[c.First]))
				if !c.Baseline {
					variances[c.First] = append(variances[c.First], stat.Of(sum, w.Label+" "+response.Name))
				}
				out, sums, bases = append(out, c), append(sums, sum), append(bases, of)
			}
		}
	}
	priors := map[bool][]stat.Prior{true: stat.Moderate(variances[true]), false: stat.Moderate(variances[false])}
	a.priors, a.parts = map[string]stat.Prior{}, map[string]stat.Estimate{}
	for i := range out {
		if c := &out[i]; !c.Baseline {
			prior := priors[c.First][at[i]]
			c.Estimate = a.rule.Estimate(sums[i], prior)
			c.Verdict, c.Why = a.rule.Judge(c.Estimate, c.Response.Better)
			c.Estimate.Bound = a.rule.Bound(c.Estimate, c.Response.Better, c.Verdict)
			a.priors[c.key()], a.parts[c.key()] = prior, a.rule.Part(sums[i], prior)
			a.explain(c)
			c.Needs = a.shortage(c, bases[i], sums[i], prior)
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

// readings returns the value in each block in which a cell was tried: that of the
// trial that counts; NaN where none does, or it has no such value or one below
// noise.
func (a *analysis) readings(cell, response string) map[int]float64 {
	trials := a.byCell[cell]
	out := make(map[int]float64, len(trials))
	for _, t := range trials {
		out[t.Block] = math.NaN()
	}
	for block, t := range a.counting[cell] {
		if v, ok := t.Sample(response); ok && !t.BelowNoise(response) {
			out[block] = v
		}
	}
	return out
}

// summary sums up a response of any two cells of a stratum over the blocks that
// have both: for ratios to another level than the baseline.
func (a *analysis) summary(base, other record.Cell, response string) stat.Summary {
	sum := stat.Summarise(stat.Pairs(a.readings(base.Key(), response), a.readings(other.Key(), response)))
	for _, cell := range []record.Cell{base, other} {
		for _, t := range a.counting[cell.Key()] {
			if t.BelowNoise(response) {
				sum.Undefined = response + " is below noise in " + cell.String()
			}
		}
	}
	return sum
}

// level sums up the trials that count of a cell.
func level(trials map[int]*record.Trial, values map[int]float64, response record.Response) Level {
	l, late := Level{Unit: response.Unit}, 0
	var v []float64
	for _, block := range slices.Sorted(maps.Keys(trials)) {
		t := trials[block]
		x := values[block]
		if math.IsNaN(x) || math.IsInf(x, 0) {
			l.Missing++
			if t.BelowNoise(response.Name) {
				l.BelowNoise++
			}
			continue
		}
		v = append(v, x)
		if t.AtLeast(response.Name) {
			late++
		}
		if l.Unit == "" {
			l.Unit = unitOf(t, response.Name)
		}
	}
	if l.N = len(v); l.N == 0 {
		return l
	}
	l.AtLeast = late > 0 && 2*late >= l.N
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
