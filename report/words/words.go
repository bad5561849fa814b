// Package words says in sentences what an analysis found, for people who read no
// table, and writes figures as people read them.
//
// The data path: 1. each comparison is sorted into what may be said of it (kind): worse,
// better, equal, without a cost above some bound, of too few blocks or too noisy to say, or not compared and
// why; 2. those of the same workload and response are put together (costs.go); 3. clauses
// are joined into one sentence a sandbox, the greatest costs first, the rest counted; 4. a
// headline counts over all.
//
// Ratios are said as costs: more is always worse, so that a third of the throughput is 3 ×
// the cost. What is said is never more than the verdict.
package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/stat"
	"tare/ordered"
	"tare/plan"
	"tare/record"
)

// Tone is what a sentence comes to, for colours and order.
type Tone string

// Tones. A sentence has the worst of what it says; Note judges nothing.
const (
	Worse     Tone = "worse"
	Better    Tone = "better"
	Differs   Tone = "differs" // without a better side; of cells
	Equal     Tone = "equal"
	Bounded   Tone = "bounded" // surely no cost above some bound
	Undecided Tone = "undecided"
	Note      Tone = "note"
)

// Sentence is one statement. About is the Treatment.Key that it is about, the first where
// it is about several, "" for the study as a whole. Short is its most important part, for a small
// screen; "" of one that has no such part.
type Sentence struct {
	About string `json:"about,omitempty"`
	Tone  Tone   `json:"tone"`
	Text  string `json:"text"`
	Short string `json:"short,omitempty"`
	Load  bool   `json:"load,omitempty"` // it gives the result of a load
}

// Options of the sentences.
type Options struct {
	Items int // how many workloads a clause names before it counts the rest; 0: 3
}

func (o Options) items() int {
	if o.Items <= 0 {
		return 3
	}
	return o.Items
}

// Answer says what was found: the headline, a sentence for each level of the compared
// factor, such as a sandbox, and what must be known beside them.
func Answer(r *analyse.Result, opt Options) []Sentence {
	if r == nil {
		return nil
	}
	out := []Sentence{Headline(r)}
	loads := Loads(r)
	if len(loads) == 1 && out[0].Text == loads[0].Text {
		loads = nil
	}
	out = append(out, loads...)
	if s := Serving(r); s != "" {
		out = append(out, Sentence{Tone: Note, Text: s})
	}
	_, sides := Sides(r)
	for _, k := range sides {
		var of []*analyse.Comparison
		for i := range r.Compared {
			if c := &r.Compared[i]; k.Has(c) {
				of = append(of, c)
			}
		}
		if len(r.Tuned) > 0 { // the headline counts what is undecided
			if of = slices.DeleteFunc(of, unasked); len(of) == 0 {
				continue
			}
		}
		tone, text, short := costs(of, opt.items())
		head := named(r, k.Name) + ": "
		out = append(out, Sentence{About: k.Of[0].Key, Tone: tone, Text: head + text + idles(r, k.Of[0].Cell[0]), Short: head + short})
	}
	if p := r.Published; p != nil && p.Judged() > 0 {
		out = append(out, Sentence{Tone: Note, Text: p.Summary})
	}
	if s := state(r); s != "" {
		out = append(out, Sentence{Tone: Note, Text: s})
	}
	return out
}

// idles says what a sandbox uses while it does nothing, where that matters; "" where it does not.
func idles(r *analyse.Result, l record.Level) string {
	for i := range r.Overheads {
		if o := &r.Overheads[i]; l.Factor == r.Compare && o.Sandbox == l.Value && o.Idles() {
			return " Idle, it uses " + Value(*o.Idle, record.Fraction) + " of a core."
		}
	}
	return ""
}

// kind is what may be said of a comparison.
type kind int

const (
	worse kind = iota
	better
	differs // without a better side
	few     // too few blocks: for an interval, or for so much scatter
	undecided
	bounded
	equal
	noRatio
	belowNoise
	failed
	noValue
	skipped
	kinds
)

func kindOf(c *analyse.Comparison) kind {
	switch c.Outcome() {
	case analyse.Skipped:
		return skipped
	case analyse.BelowNoise:
		return belowNoise
	case analyse.GivenUp, analyse.Failed:
		return failed
	case analyse.NoValue:
		return noValue
	case analyse.NoRatio:
		return noRatio
	}
	switch c.Verdict {
	case stat.Slower:
		return worse
	case stat.Faster:
		return better
	case stat.Higher, stat.Lower:
		return differs
	case stat.Equivalent:
		return equal
	}
	v := shown(c)
	_, perhaps := v.Perhaps()
	switch {
	case perhaps, v == stat.TooFew:
		return few
	case v == stat.Bounded:
		return bounded
	}
	return undecided
}

func shown(c *analyse.Comparison) stat.Verdict {
	return c.Estimate.Shown(c.Verdict, c.Response.Better)
}

// cost is how many times the baseline's a comparison costs; 1 where there is no ratio.
func cost(c *analyse.Comparison) float64 {
	if x, _, _ := c.Estimate.Cost(c.Response.Better); x > 0 {
		return x
	}
	return 1
}

// Headline sums up the study in a few sentences. All reports have it, so that they count alike. Like the sentences below it,
// it counts the comparisons by which the study stops. Those of further responses it only mentions.
func Headline(r *analyse.Result) Sentence {
	var n [kinds]int
	total := 0
	var worst *analyse.Comparison
	var more []*analyse.Comparison // of further responses
	first := firsts(r)
	for i := range r.Compared {
		c := &r.Compared[i]
		if c.Baseline {
			continue
		}
		if !c.First && first[c.Workload] {
			more = append(more, c)
			continue
		}
		k := kindOf(c)
		n[k]++
		total++
		if k == worse && (worst == nil || cost(c) > cost(worst)) {
			worst = c
		}
	}
	if loads := Loads(r); total == 0 && len(loads) == 1 {
		return Sentence{Tone: Note, Text: loads[0].Text}
	} else if total == 0 && len(loads) > 1 {
		return Sentence{Tone: Note, Text: loadHeadline(r)}
	}
	if total == 0 || total == n[noValue]+n[skipped] && r.Trials == 0 {
		return Sentence{Tone: Note, Text: "Nothing has been compared with " + Base(r) + "."}
	}
	var open int // of a search
	if len(r.Tuned) > 0 {
		open = n[few] + n[undecided]
		n[few], n[undecided] = 0, 0
	}
	var parts []string
	for _, k := range told() {
		if n[k] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[k], said()[k]))
			if k == equal {
				parts[len(parts)-1] += " within " + percent(r.Margin)
			}
		}
	}
	text := fmt.Sprintf("Of %s with %s: %s.", Count(total, "comparison"), Base(r), List(parts))
	if !r.Finished {
		text = "So far, of" + strings.TrimPrefix(text, "Of")
	}
	if worst != nil {
		x, lo, hi := worst.Estimate.Cost(worst.Response.Better)
		text += fmt.Sprintf(" The largest: %s in %s, %s", named(r, TreatmentOf(r, worst.Treatment)), name(r, worst, varying(r)), Times(x))
		if hi > 0 {
			text += fmt.Sprintf(" (%s to %s)", Ratio(lo), Ratio(hi))
		}
		text += "."
	}
	switch d := r.Discoveries; {
	case len(more) > 0: // the discoveries are of these too
		text += " " + further(r, more, worst)
	case d != nil && d.Hold < d.Called:
		text += " " + survivors(d) + "."
	}
	if open == total {
		text = ""
	}
	if open > 0 {
		text = strings.TrimSpace(text + " " + Unasked(open, "comparison"))
	}
	if same := sameRuntime(r); len(same) > 0 {
		text += fmt.Sprintf(" %s ran the same runtime as %s, so it is not what makes them differ.", List(same), r.Baseline)
	}
	return Sentence{Tone: tone(n), Text: text}
}

// further says how many comparisons of further responses there are, and, if the largest cost is among them, how many cost more: the short
// table has the first responses alone, and would hide it. worst is the largest cost of the first ones; nil: none is decided.
func further(r *analyse.Result, of []*analyse.Comparison, worst *analyse.Comparison) string {
	n, c := largest(of)
	if c == nil || worst != nil && cost(c) <= cost(worst) {
		return fmt.Sprintf("Not counted: %d of further responses.", len(of))
	}
	return fmt.Sprintf("Of %d of further responses, %d cost more, up to %s (%s in %s %s).", len(of), n, Times(cost(c)), named(r, TreatmentOf(r, c.Treatment)), name(r, c, varying(r)), c.Response.Name)
}

// largest counts the comparisons that surely cost more, and returns the one that costs most; nil if none does.
func largest(of []*analyse.Comparison) (n int, worst *analyse.Comparison) {
	for _, c := range of {
		if kindOf(c) != worse {
			continue
		}
		if n++; worst == nil || cost(c) > cost(worst) {
			worst = c
		}
	}
	return n, worst
}

// unasked reports whether a comparison is undecided.
func unasked(c *analyse.Comparison) bool {
	k := kindOf(c)
	return k == few || k == undecided
}

// Unasked says why a search leaves so many rows undecided.
func Unasked(n int, what string) string {
	return fmt.Sprintf("A search for a level stops when its answer is sure: %s left undecided %s not its question.", Count(n, what), plural(n, "was", "were"))
}

// sameRuntime lists the treatments that ran the baseline's runtime with the same settings, and differed in nothing else that is known, in
// all their comparisons.
func sameRuntime(r *analyse.Result) (out []string) {
	other := map[string]bool{}
	for i := range r.Compared {
		c := &r.Compared[i]
		switch x := r.Certificate(c); {
		case c.Baseline || c.Level.N == 0 || c.Base.N == 0:
		case x == nil || x.Program == "" || len(x.Differ) > 0:
			other[c.Treatment] = true
		default:
			out = ordered.Add(out, c.Treatment)
		}
	}
	out = slices.DeleteFunc(out, func(t string) bool { return other[t] })
	for i, t := range out {
		out[i] = TreatmentOf(r, t)
	}
	return out
}

// Discoveries says how many of the rows that are called different survive among all rows;
// "" when none is called different.
func Discoveries(r *analyse.Result) string {
	if d := r.Discoveries; d != nil && d.Called > 0 {
		return fmt.Sprintf("%s (Benjamini-Hochberg over %s, at most %s of them false).", survivors(d), Count(d.Rows, "row"), percent(d.Rate))
	}
	return ""
}

func survivors(d *analyse.Discoveries) string {
	s := fmt.Sprintf("%d of the %d differences survive", d.Hold, d.Called)
	switch {
	case d.Called == 1 && d.Hold == 1:
		s = "The one difference survives"
	case d.Called == 1:
		s = "The one difference does not survive"
	case d.Hold == d.Called:
		s = fmt.Sprintf("All %d differences survive", d.Called)
	case d.Hold == 0:
		s = fmt.Sprintf("None of the %d differences survives", d.Called)
	}
	return s + " correction for multiple comparisons"
}

// Exaggerated names the differences whose ratio is likely too far from 1, because of all
// differences those are called that came out large: the corrected effect is less than nine
// tenths of the measured one. The ratios are costs, as in the tables. "" where there is none.
func Exaggerated(r *analyse.Result) string {
	const most = 4
	var named []string
	n := 0
	for i := range r.Compared {
		c := &r.Compared[i]
		if e := &c.Estimate; !c.Called() || e.Shrunk <= 0 || math.Abs(math.Log(e.Shrunk)) > 0.9*math.Abs(math.Log(e.Ratio)) {
			continue
		}
		if n++; n <= most {
			measured, _, _ := c.Estimate.Cost(c.Response.Better)
			corrected, _, _ := stat.Estimate{Ratio: c.Estimate.Shrunk}.Cost(c.Response.Better)
			named = append(named, fmt.Sprintf("%s %s %.3g instead of %.3g", Stratum(r, c.Workload, c.Shared, nil), TreatmentOf(r, c.Treatment), corrected, measured))
		}
	}
	if n == 0 {
		return ""
	}
	if n > most {
		named = append(named, fmt.Sprintf("%d more (in --json)", n-most))
	}
	return fmt.Sprintf("%s probably exaggerated, because a difference that noise makes larger is more likely to be detected. Corrected: %s.",
		map[bool]string{true: "One ratio is", false: Count(n, "ratio") + " are"}[n == 1], strings.Join(named, "; "))
}

// said is how each kind is called where comparisons are counted.
func said() []string {
	return []string{worse: "cost more", better: "cost less", differs: "different", equal: Free, bounded: "surely without a large cost",
		few: "too few blocks", undecided: "too noisy to say", noRatio: "without a ratio", belowNoise: "below noise", failed: "failed", noValue: "not measured", skipped: "skipped"}
}

// told is the order in which kinds are told: what is known before what is not.
func told() []kind {
	return []kind{worse, better, differs, equal, bounded, few, undecided, noRatio, belowNoise, failed, noValue, skipped}
}

func tone(n [kinds]int) Tone {
	switch {
	case n[worse] > 0:
		return Worse
	case n[better] > 0:
		return Better
	case n[few]+n[undecided] > 0:
		return Undecided
	case n[bounded] > 0:
		return Bounded
	case n[equal] > 0:
		return Equal
	}
	return Note
}

// State says how far the study is: why it is finished, or what is left.
func State(r *analyse.Result) string {
	if r.Finished {
		return "Finished: " + strings.TrimSuffix(r.Reason, ".") + gaps(r.Gaps)
	}
	s := "Not finished: " + Count(r.Left.AtMost, "trial") + " left"
	if r.Left.AtLeast != r.Left.AtMost {
		s = fmt.Sprintf("Not finished: %d to %d trials left", r.Left.AtLeast, r.Left.AtMost)
	}
	if r.Left.MostTime > 0 {
		s += ", at most " + Duration(r.Left.MostTime)
		if r.Modelled { // a rehearsal does not wait for it
			s += " of modelled time"
		}
		s += Past(r.Left)
	}
	return s
}

// gaps says that blocks ran without a figure of some cell, which "all blocks" hides: ". 2 of 3 blocks have no good trial of some cell
// (first failure: ...)".
func gaps(g analyse.Gaps) string {
	if g.Blocks == 0 {
		return ""
	}
	have := "have"
	if g.Blocks == 1 {
		have = "has"
	}
	out := fmt.Sprintf(". %d of %s %s no good trial of some cell", g.Blocks, Count(g.Of, "block"), have)
	if g.Reason != "" {
		out += " (first failure: " + strings.TrimSuffix(g.Reason, ".") + ")"
	}
	return out
}

// Past says that what is left goes past the budget: ", 3 min past the budget"; "" if it does not.
func Past(r plan.Progress) string {
	if r.Past <= 0 {
		return ""
	}
	return ", " + Duration(r.Past) + " past the budget"
}

// state says how far the study is, and what failed.
func state(r *analyse.Result) string {
	var out []string
	if !r.Finished {
		out = append(out, "The study is n"+strings.TrimPrefix(State(r), "N")+".")
	}
	if r.Failed > 0 {
		out = append(out, fmt.Sprintf("%d of %s failed.", r.Failed, Count(r.Trials, "trial")))
	}
	return strings.Join(out, " ")
}

func percent(x float64) string { return strconv.FormatFloat(100*x, 'g', 3, 64) + " %" }

// FewBlocks stands where a search for a level would have a chance (tune.Step.Thin).
const FewBlocks = "too few blocks for a chance"
