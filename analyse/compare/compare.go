// Package compare holds two results of the same study against each other: before
// and after an upgrade, or of two hosts.
//
// The data path: 1. match.go analyses both sides and puts the same cell's same
// response of both together, after it has made sure that it is the same;
// 2. change.go estimates what changed, as a ratio with an interval and a
// p-value; 3. the false discovery rate is
// held over all that was asked, and each row gets its verdict; 4. hosts.go lists
// what else is different; 5. gate.go tells which rows break a promise.
//
// The two sides were measured at different times, so that their blocks are no
// pairs. What can be asked is therefore two things: Cost, the ratio to the
// baseline in B by that in A, which the machine cancels out of on each side; and
// Level, the value itself in B by that in A, of which any difference between the
// two sessions is part. A baseline has a level alone.
package compare

import (
	"fmt"
	"math"
	"slices"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/param"
	"tare/plan"
	"tare/record"
	"tare/store"
	"tare/study"
)

// Question is what a change is of.
type Question string

// Auto asks treatments for their cost and baselines, which have none, for their
// level. The cost of a study without treatments is no question: it is asked for
// levels.
const (
	Auto  Question = "auto"
	Cost  Question = "cost"
	Level Question = "level"
)

// Questions are all that can be asked.
func Questions() []Question { return []Question{Auto, Cost, Level} }

// Side is one of the two results.
type Side struct {
	Name     string // how the user calls it: the folder
	Study    *study.Study
	Trials   []record.Trial
	Skips    []record.Skip
	Damage   []string // the parts of the results that do not verify and are left out, in sentences
	Sessions []store.Session
}

// Options say what is asked. The zero Options ask Auto, of all cells, at a false
// discovery rate of 5 % and with the studies' own margin.
type Options struct {
	Question  Question
	FDR       float64             // share of false ones among the changed, 0: 0.05
	Margin    *float64            // ratios from 1/(1+Margin) to 1+Margin are equivalent; nil: the study's
	Responses []string            // these alone; none: all that the studies compare
	Only      map[string][]string // factor to the levels that are looked at

	Describe func(study.Workload) []record.Response // what the responses are; nil: nothing is known
	Params   func(study.Workload) param.Values      // a workload's parameters with the defaults filled in; nil: as they were given
}

// Result is the comparison of two results. All of it is in the order of A's study,
// what only B has after that, and nothing in it is NaN or infinite.
type Result struct {
	Study       string       `json:"study"`
	A           About        `json:"a"`
	B           About        `json:"b"`
	Compare     string       `json:"compare"`  // the compared factor
	Baseline    string       `json:"baseline"` // its level
	Question    Question     `json:"question"`
	Confidence  float64      `json:"confidence"` // that an interval covers the truth
	Margin      float64      `json:"margin"`     // ratios from 1/(1+margin) to 1+margin are equivalent
	FDR         float64      `json:"fdr"`        // wanted share of false ones among the changed
	Counts      Counts       `json:"counts"`
	Rows        []Row        `json:"rows"`
	Differences []Difference `json:"differences"` // of hosts, tools and studies
	Warnings    []string     `json:"warnings,omitempty"`
	Modelled    bool         `json:"modelled,omitempty"` // both sides are a model's; measured and modelled are not compared
}

// About says what a side is.
type About struct {
	Name     string `json:"name"`
	Study    string `json:"study"`
	Trials   int    `json:"trials"`
	Failed   int    `json:"failed"`
	Finished bool   `json:"finished"`
	Baseline string `json:"-"`
}

// Counts are of the rows by what came of them. Every row is in one of them.
type Counts struct {
	Rows       int `json:"rows"`
	Changed    int `json:"changed"`
	Unsure     int `json:"unsure"` // different by themselves, but not sure enough among so many rows
	Equivalent int `json:"equivalent"`
	Undecided  int `json:"undecided"`
	Missing    int `json:"missing"` // no ratio: on one side only, failed, skipped or without a value
}

// Row is one response of one cell on both sides.
type Row struct {
	Workload  string          `json:"workload"` // its label
	Shared    record.Cell     `json:"shared"`   // the levels of its stratum
	Treatment record.Cell     `json:"treatment"`
	Cell      record.Cell     `json:"cell"`
	Baseline  bool            `json:"baseline,omitempty"`
	Response  record.Response `json:"response"`
	OnlyIn    string          `json:"only_in,omitempty"` // "A" or "B": the other study does not have the cell or the response
	Question  Question        `json:"question"`          // Cost or Level: which of the two the row answers
	A         *Measured       `json:"a,omitempty"`
	B         *Measured       `json:"b,omitempty"`
	Cost      *Change         `json:"cost,omitempty"`
	Level     *Change         `json:"level,omitempty"`
}

// Change is the one that answers the row's question, nil for a cell of one side
// only.
func (r *Row) Change() *Change {
	if r.Question == Level {
		return r.Level
	}
	return r.Cost
}

// Missing says why the row has no ratio, "" if it has one.
func (r *Row) Missing() string {
	switch c := r.Change(); {
	case r.OnlyIn != "":
		return "only in " + r.OnlyIn
	case c == nil:
		return "there is nothing to compare"
	default:
		return c.Undefined
	}
}

// Measured is what one side says of a row.
type Measured struct {
	N       int           `json:"n"`     // blocks with a value of the cell
	Level   float64       `json:"level"` // typical value in base units: their geometric mean, or median
	Cost    stat.Estimate `json:"cost"`  // the ratio to the baseline, with the study's own interval
	Failed  int           `json:"failed,omitempty"`
	Skipped string        `json:"skipped,omitempty"`
	GaveUp  string        `json:"gave_up,omitempty"`
}

// Change is a ratio of B to A.
type Change struct {
	Ratio     float64      `json:"ratio,omitempty"` // 0: there is none, and Undefined says why
	Lo        float64      `json:"lo,omitempty"`    // of the interval; 0: there is none
	Hi        float64      `json:"hi,omitempty"`
	P         *float64     `json:"p,omitempty"` // two-sided; nil without an interval
	Q         *float64     `json:"q,omitempty"` // the false discovery rate at which it would just count as changed
	SE        float64      `json:"se,omitempty"`
	DF        float64      `json:"df,omitempty"` // of SE, Welch-Satterthwaite; at most 1e9, which stands for infinitely many
	Verdict   stat.Verdict `json:"verdict"`      // of this ratio alone
	Why       string       `json:"why,omitempty"`
	Changed   bool         `json:"changed"` // faster, slower, higher or lower, and Q within the wanted rate
	Undefined string       `json:"undefined,omitempty"`
}

// HasInterval reports whether there is one.
func (c *Change) HasInterval() bool { return c != nil && c.Lo > 0 }

// Compare compares. The order of trials does not matter. Errors are a *Refusal.
func Compare(a, b Side, opt Options) (*Result, error) {
	c := &comparing{a: a, b: b, opt: opt, fdr: opt.FDR}
	if c.fdr == 0 {
		c.fdr = 0.05
	}
	var describe []analyse.Option
	if opt.Describe != nil {
		describe = append(describe, analyse.Describe(opt.Describe))
	}
	c.ra = analyse.Analyse(a.Study, a.Trials, a.Skips, describe...)
	c.rb = analyse.Analyse(b.Study, b.Trials, b.Skips, describe...)
	if err := sameKind(a, b, c.ra.Modelled, c.rb.Modelled); err != nil {
		return nil, err
	}
	c.fixed = a.Study.Stop.Fixed > 0 && b.Study.Stop.Fixed > 0
	c.confidence = math.Max(c.ra.Confidence, c.rb.Confidence)
	res := &Result{Study: a.Study.Name, Compare: a.Study.Compare, Baseline: a.Study.Baseline, Question: opt.Question, FDR: c.fdr,
		Confidence:  c.confidence,
		Margin:      math.Min(c.ra.Margin, c.rb.Margin),
		A:           about(a, c.ra),
		B:           about(b, c.rb),
		Differences: Differences(a, b)}
	if res.Question == "" {
		res.Question = Auto
	}
	if opt.Margin != nil {
		res.Margin = *opt.Margin
	} else if c.ra.Margin != c.rb.Margin {
		res.Warnings = append(res.Warnings, "the studies have unlike margins; the smaller one holds here, --margin sets another")
	}
	if c.ra.Confidence != c.rb.Confidence {
		res.Warnings = append(res.Warnings, "the studies have unlike confidences; the higher one holds here")
	}
	if c.ra.Modelled {
		res.Modelled = true
		res.Warnings = append(res.Warnings, "both sides are modelled: what changed is the model or the study, and no machine was measured")
	}
	if a.Study.Name != b.Study.Name {
		res.Warnings = append(res.Warnings, "the studies have unlike names; what matches is compared")
	}
	for _, s := range []Side{a, b} {
		for _, d := range s.Damage {
			res.Warnings = append(res.Warnings, s.Name+": "+d)
		}
	}
	for _, x := range []struct {
		name string
		r    *analyse.Result
		st   *study.Study
	}{{a.Name, c.ra, a.Study}, {b.Name, c.rb, b.Study}} {
		if n := stoppedAtVerdict(x.r, x.st); n > 0 {
			res.Warnings = append(res.Warnings, fmt.Sprintf("%s stopped %d of its rows as soon as they looked different, as older versions did: "+
				"such costs are overstated; measure again, or with `fixed: N`", x.name, n))
		}
	}
	for _, s := range []About{res.A, res.B} {
		if !s.Finished {
			res.Warnings = append(res.Warnings, s.Name+" is not finished")
		}
	}
	if err := c.match(res); err != nil {
		return nil, err
	}
	c.estimate(res)
	c.judge(res)
	return res, nil
}

// precision is the share of the effect that half the width of an interval may be
// when a row stops: the logarithm of a ratio is known to a quarter of itself.
const precision = 0.25

// stoppedAtVerdict counts the costs of a study without a fixed number of blocks that
// were measured until they looked different: before the last look, with an
// interval that leaves out 1 and is wider than stopping by precision allows. Such
// a ratio is overstated, since chance that made it larger also ended it.
func stoppedAtVerdict(r *analyse.Result, st *study.Study) int {
	rule := plan.Rule(st)
	if rule.Fixed > 0 || len(rule.Looks) == 0 {
		return 0
	}
	n := 0
	for i := range r.Compared {
		x := &r.Compared[i]
		e := &x.Estimate
		early := e.HasInterval() && e.N < slices.Max(rule.Looks) && (x.Ending == nil || x.Ending.Code == plan.EndDecided)
		if early && (e.Lo > 1 || e.Hi < 1) && e.HalfWidth() > math.Max(rule.Width, precision*math.Abs(math.Log(e.Ratio))) {
			n++
		}
	}
	return n
}

func about(s Side, r *analyse.Result) About {
	return About{Name: s.Name, Study: s.Study.Name, Trials: r.Trials, Failed: r.Failed, Finished: r.Finished, Baseline: r.Baseline}
}

// comparing is a comparison under way.
type comparing struct {
	a, b   Side
	ra, rb *analyse.Result
	opt    Options
	fdr    float64

	confidence float64 // of an interval
	fixed      bool    // both studies measure a fixed number of blocks
}
