// Package compare compares two sides of the same study: before and after an
// upgrade, or two hosts. A side is one result, or several from different days.
//
// The data path: 1. copy.go refuses results that share trials; 2. match.go
// groups the same response of the same cell from all results, after it has checked
// that it is the same; 3. change.go estimates what changed, as a ratio with
// an interval and a p-value, and several.go does it where a side has several
// results; 4. the false discovery rate is controlled over all that was asked, and each
// row gets its verdict; 5. hosts.go lists what else is different; 6. gate.go
// tells which rows break a gate, and power.go which a gate cannot judge.
//
// The two sides were measured at different times, so that their blocks are no
// pairs. What can be asked is therefore two things: Cost, the ratio to the
// baseline in B by that in A, which the machine cancels out of on each side; and
// Level, the value itself in B by that in A, of which any difference between the
// two sessions is part. A baseline has a level alone.
package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

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
// level. A study without treatments has no cost, so it is asked for
// levels.
const (
	Auto  Question = "auto"
	Cost  Question = "cost"
	Level Question = "level"
)

// Questions are all that can be asked.
func Questions() []Question { return []Question{Auto, Cost, Level} }

// Folder is one result. A side has one or several.
type Folder struct {
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

// Result is the comparison of two sides. All of it is in the order of A's study,
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

	Began   time.Time `json:"began,omitzero"`    // when its first trial did; zero if no trial knows
	Days    int       `json:"days,omitempty"`    // of several results: groups that began twelve hours or more after one another; 0: not known
	Results []About   `json:"results,omitempty"` // each result, where the side has several; then the fields above are totals
}

// Counts says how many rows came out how. Each row is counted once, beside Rows.
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

// Measured is what one side says about a row. With several results, N and Failed are sums,
// Level and the cost's ratio are geometric means, and the cost has no interval.
type Measured struct {
	Results int           `json:"results,omitempty"` // how many of the side's results have a ratio, where there are several
	N       int           `json:"n"`                 // blocks with a value of the cell
	Level   float64       `json:"level"`             // typical value in base units: their geometric mean, or median
	Cost    stat.Estimate `json:"cost"`              // the ratio to the baseline, with the study's own interval
	Failed  int           `json:"failed,omitempty"`
	Skipped string        `json:"skipped,omitempty"`
	GaveUp  string        `json:"gave_up,omitempty"`
}

// Change is a ratio of B to A.
type Change struct {
	Ratio     float64      `json:"ratio,omitempty"` // 0: there is none, and Undefined says why
	Lo        float64      `json:"lo,omitempty"`    // of the interval; 0: there is none
	Hi        float64      `json:"hi,omitempty"`
	N         int          `json:"n,omitempty"`       // blocks of the side that has fewer, in all its results
	P         *float64     `json:"p,omitempty"`       // two-sided; nil without an interval
	Q         *float64     `json:"q,omitempty"`       // the false discovery rate at which it would just count as changed
	SE        float64      `json:"se,omitempty"`      // standard error of ln(Ratio)
	DF        float64      `json:"df,omitempty"`      // degrees of freedom of SE; at most 1e9, which stands for infinitely many
	Between   float64      `json:"between,omitempty"` // standard deviation of ln(Ratio) among results of one side beyond their own scatter; several a side alone
	Verdict   stat.Verdict `json:"verdict"`           // of this ratio alone
	Why       string       `json:"why,omitempty"`
	Changed   bool         `json:"changed"` // faster, slower, higher or lower, and Q within the wanted rate
	Undefined string       `json:"undefined,omitempty"`
}

// Cost is the change and its interval as a multiple of A's cost: more is worse.
func (c *Change) Cost(better record.Better) (cost, lo, hi float64) {
	return stat.Estimate{Ratio: c.Ratio, Lo: c.Lo, Hi: c.Hi}.Cost(better)
}

// HasInterval reports whether there is one.
func (c *Change) HasInterval() bool { return c != nil && c.Lo > 0 }

// Compare compares two sides. The order of trials does not matter. The order of a
// side's results matters only for the order of rows. Errors are a *Refusal.
func Compare(a, b []Folder, opt Options) (*Result, error) {
	c := &comparing{opt: opt, fdr: cmp.Or(opt.FDR, 0.05), fixed: true}
	if len(a) == 0 || len(b) == 0 {
		return nil, refuse("each side needs a result")
	}
	alike, err := distinct(slices.Concat(a, b))
	if err != nil {
		return nil, err
	}
	for i, side := range [][]Folder{a, b} {
		for _, f := range side {
			x := c.read(f)
			c.sides[i] = append(c.sides[i], x)
			c.confidence = math.Max(c.confidence, x.r.Confidence)
			c.fixed = c.fixed && f.Study.Stop.Fixed > 0
		}
	}
	first := c.sides[0][0]
	res := &Result{Study: first.Study.Name, Compare: first.Study.Compare, Baseline: first.Study.Baseline, Question: opt.Question, FDR: c.fdr,
		Confidence: c.confidence, Margin: first.r.Margin, A: c.about(0), B: c.about(1), Differences: Differences(a, b)}
	res.Question = cmp.Or(res.Question, Auto)
	for _, x := range c.all() {
		if err := sameKind(first, x); err != nil {
			return nil, err
		}
		res.Margin = math.Min(res.Margin, x.r.Margin)
	}
	res.Warnings = alike
	c.warn(res)
	if opt.Margin != nil {
		res.Margin = *opt.Margin
	}
	if err := c.match(res); err != nil {
		return nil, err
	}
	c.estimate(res)
	c.judge(res)
	return res, nil
}

// folder is a result, read and analysed.
type folder struct {
	Folder
	r      *analyse.Result
	rows   map[string]*analyse.Comparison   // by key
	trials map[string]map[int]*record.Trial // those that count, by cellKey and block
}

func (c *comparing) read(f Folder) *folder {
	var describe []analyse.Option
	if c.opt.Describe != nil {
		describe = append(describe, analyse.Describe(c.opt.Describe))
	}
	x := &folder{Folder: f, r: analyse.Analyse(f.Study, f.Trials, f.Skips, describe...), rows: make(map[string]*analyse.Comparison)}
	x.trials = counting(x.r, f.Trials)
	for i := range x.r.Compared {
		x.rows[key(&x.r.Compared[i])] = &x.r.Compared[i]
	}
	return x
}

// all are the results of both sides.
func (c *comparing) all() []*folder { return slices.Concat(c.sides[0], c.sides[1]) }

// several reports whether a side has more than one result.
func (c *comparing) several() bool { return len(c.sides[0])+len(c.sides[1]) > 2 }

// warn warns about what makes the comparison doubtful.
func (c *comparing) warn(res *Result) {
	say := func(format string, args ...any) { res.Warnings = append(res.Warnings, fmt.Sprintf(format, args...)) }
	first := c.sides[0][0]
	unlike := func(of func(*folder) any) bool {
		return slices.ContainsFunc(c.all(), func(x *folder) bool { return of(x) != of(first) })
	}
	if c.opt.Margin == nil && unlike(func(x *folder) any { return x.r.Margin }) {
		say("the studies have different margins; the smallest one applies, and --margin sets another")
	}
	if unlike(func(x *folder) any { return x.r.Confidence }) {
		say("the studies have different confidences; the highest one applies")
	}
	if res.Modelled = first.r.Modelled; res.Modelled {
		say("both sides are modelled: what changed is the model or the study, and no machine was measured")
	}
	if unlike(func(x *folder) any { return x.Study.Name }) {
		say("the studies have different names; cells that match are compared")
	}
	switch {
	case res.Modelled:
	case !c.several():
		say("each side has one result, which cannot tell an upgrade from a different day or host; " +
			"measure each side two or three times, on different days, and give the results as --a DIR --a DIR --b DIR --b DIR")
	case len(c.sides[0])+len(c.sides[1]) == 3:
		say("three results leave one degree of freedom for how results of one side differ, so intervals are wide; give two results a side, or better three")
	}
	if !res.Modelled {
		sameDay(&res.A, "A", say)
		sameDay(&res.B, "B", say)
	}
	for _, x := range c.all() {
		if n := stoppedAtVerdict(x.r, x.Study); n > 0 {
			say("%s has %d rows that look different and are less precise than the study asks; older versions stopped there, and such costs are overstated; continue that study, or measure again with `fixed: N`", x.Name, n)
		}
	}
	for _, x := range c.all() {
		for _, d := range x.Damage {
			say("%s: %s", x.Name, d)
		}
	}
	for _, x := range c.all() {
		if !x.r.Finished {
			say("%s is not finished", x.Name)
		}
	}
}

// precision is the share of a large effect that half the width of an interval may be
// when a row stops: the logarithm of a ratio is known to a quarter of itself.
const precision = 0.25

// stoppedAtVerdict counts the costs that were measured until they looked different, in a
// study without a fixed number of blocks. They ended at a look before the last, with
// an interval that excludes 1 and is too wide for the present rule. Such a ratio is
// overstated, because the chance that made it larger also ended it.
func stoppedAtVerdict(r *analyse.Result, st *study.Study) int {
	rule := plan.Rule(st)
	if rule.Fixed > 0 || len(rule.Looks) == 0 {
		return 0
	}
	n := 0
	for i := range r.Compared {
		x := &r.Compared[i]
		e := &x.Estimate
		if x.Ending == nil && slices.Contains(rule.Looks, e.N) && e.N < slices.Max(rule.Looks) && e.HasInterval() && (e.Lo > 1 || e.Hi < 1) {
			n++
		}
	}
	return n
}

// about describes a side.
func (c *comparing) about(side int) About {
	var each []About
	var names []string
	out := About{Finished: true}
	for i, x := range c.sides[side] {
		o := About{Name: x.Name, Study: x.Study.Name, Trials: x.r.Trials, Failed: x.r.Failed, Finished: x.r.Finished, Began: x.firstTrial()}
		each, names = append(each, o), append(names, x.Name)
		if i == 0 {
			out.Study = o.Study
		}
		out.Trials += o.Trials
		out.Failed += o.Failed
		out.Finished = out.Finished && o.Finished
	}
	out.Name, out.Began = strings.Join(names, ", "), each[0].Began
	if len(each) > 1 {
		out.Results, out.Days, out.Began = each, daysOf(each), time.Time{}
	}
	return out
}

// comparing is a comparison under way.
type comparing struct {
	sides [2][]*folder
	opt   Options
	fdr   float64
	found []found // beside Result.Rows

	confidence float64 // of an interval
	fixed      bool    // all studies measure a fixed number of blocks
}

// found is a row in each result of each side; nil where a result does not have it.
type found [2][]*analyse.Comparison
