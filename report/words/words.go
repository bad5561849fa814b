// Package words says in sentences what an analysis found, for people who read no
// table, and writes figures as people read them.
//
// The data path: 1. each comparison is sorted into what may be said of it (kind):
// worse, better, equal, differing without a better side, undecided, or not
// compared and why; 2. for each treatment, those of the same workload and
// response are put together where there are many; 3. clauses are joined into one
// sentence a treatment, first responses and the greatest costs first, the rest
// counted; 4. a headline counts over all.
//
// What is said is never more than the verdict: a ratio without a verdict is "not
// decided", and equal is only said of what lies within the margin.
package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/stat"
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
	Undecided Tone = "undecided"
	Note      Tone = "note"
)

// Sentence is one statement. About is the Treatment.Key that it is about, "" for
// the study as a whole.
type Sentence struct {
	About string `json:"about,omitempty"`
	Tone  Tone   `json:"tone"`
	Text  string `json:"text"`
}

// Options of the sentences.
type Options struct {
	Items int // how many comparisons a clause names before it counts the rest; 0: 4
}

func (o Options) items() int {
	if o.Items <= 0 {
		return 4
	}
	return o.Items
}

// Answer says what was found: the headline, a sentence for each treatment, and
// what must be known beside them.
func Answer(r *analyse.Result, opt Options) []Sentence {
	if r == nil {
		return nil
	}
	out := []Sentence{Headline(r)}
	by := make(map[string][]*analyse.Comparison)
	for i := range r.Compared {
		if c := &r.Compared[i]; !c.Baseline {
			by[c.Treatment] = append(by[c.Treatment], c)
		}
	}
	for _, t := range r.Treatments {
		if len(by[t.Key]) > 0 {
			tone, text := treatment(by[t.Key], r, opt)
			out = append(out, Sentence{t.Key, tone, Treatment(r, t.Cell) + ": " + text})
		}
	}
	if p := r.Published; p != nil && p.Judged() > 0 {
		out = append(out, Sentence{Tone: Note, Text: p.Summary})
	}
	if s := state(r); s != "" {
		out = append(out, Sentence{Tone: Note, Text: s})
	}
	return out
}

// kind is what may be said of a comparison.
type kind int

const (
	worse kind = iota
	better
	differs // without a better side
	equal
	undecided
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
	return undecided
}

// cost is how many times worse a comparison is: of a throughput the inverse
// ratio.
func cost(c *analyse.Comparison) float64 {
	switch ratio := c.Estimate.Ratio; {
	case !(ratio > 0):
		return 1
	case c.Response.Better == record.Higher:
		return 1 / ratio
	default:
		return ratio
	}
}

// Headline sums up the study in a sentence or two.
func Headline(r *analyse.Result) Sentence {
	var n [kinds]int
	total := 0
	var worst *analyse.Comparison
	for i := range r.Compared {
		c := &r.Compared[i]
		if c.Baseline {
			continue
		}
		k := kindOf(c)
		n[k]++
		total++
		if k == worse && (worst == nil || cost(c) > cost(worst)) {
			worst = c
		}
	}
	if total == 0 || total == n[noValue]+n[skipped] && r.Trials == 0 {
		return Sentence{Tone: Note, Text: "Nothing has been compared with " + r.Baseline + "."}
	}
	var parts []string
	for k, say := range said(r) {
		if n[k] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[k], say))
		}
	}
	text := fmt.Sprintf("Of %s with %s: %s.", Count(total, "comparison"), r.Baseline, List(parts))
	if !r.Finished {
		text = "So far, of" + strings.TrimPrefix(text, "Of")
	}
	if d := r.Discoveries; d != nil && d.Hold < d.Called {
		text += fmt.Sprintf(" Of the %d called different, %s at a false discovery rate of %s.", d.Called, holding(d), percent(d.Rate))
	}
	if worst != nil {
		text += fmt.Sprintf(" The largest cost: in %s, %s.", TreatmentOf(r, worst.Treatment), phrase(worst, name(r, worst, varying(r))))
	}
	return Sentence{Tone: tone(n), Text: text}
}

// Discoveries says how many of the rows that are called different hold among all
// rows; "" when none is called different.
func Discoveries(r *analyse.Result) string {
	d := r.Discoveries
	if d == nil || d.Called == 0 {
		return ""
	}
	is := "are"
	if d.Called == 1 {
		is = "is"
	}
	return fmt.Sprintf("%s %s called different; %s at a false discovery rate of %s (Benjamini-Hochberg over %s).",
		Count(d.Called, "row"), is, holding(d), percent(d.Rate), Count(d.Rows, "row"))
}

// Exaggerated names the differences whose ratio is likely too far from 1, because of all
// differences those are called that came out large: the corrected effect is less than nine
// tenths of the measured one. "" where there is none.
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
			named = append(named, fmt.Sprintf("%s %s %.3g instead of %.3g", Stratum(r, c.Workload, c.Shared, nil), TreatmentOf(r, c.Treatment), c.Estimate.Shrunk, c.Estimate.Ratio))
		}
	}
	if n == 0 {
		return ""
	}
	if n > most {
		named = append(named, fmt.Sprintf("%d more (in --json)", n-most))
	}
	return fmt.Sprintf("%s likely too far from 1, because differences that come out large are called more often. Corrected: %s.",
		map[bool]string{true: "One ratio is", false: Count(n, "ratio") + " are"}[n == 1], strings.Join(named, "; "))
}

func holding(d *analyse.Discoveries) string {
	switch d.Hold {
	case 0:
		return "none holds"
	case 1:
		return "1 holds"
	case d.Called:
		return "all hold"
	}
	return strconv.Itoa(d.Hold) + " hold"
}

// said is how each kind is called where comparisons are counted.
func said(r *analyse.Result) []string {
	return []string{worse: "worse", better: "better", differs: "different", equal: "equal within " + percent(r.Margin),
		undecided: "not decided", noRatio: "without a ratio", belowNoise: "below noise", failed: "failed", noValue: "not measured", skipped: "skipped"}
}

func tone(n [kinds]int) Tone {
	switch {
	case n[worse] > 0:
		return Worse
	case n[better] > 0:
		return Better
	case n[undecided] > 0:
		return Undecided
	case n[equal] > 0:
		return Equal
	}
	return Note
}

// State says how far the study is: why it is finished, or what is left.
func State(r *analyse.Result) string {
	if r.Finished {
		return "Finished: " + strings.TrimSuffix(r.Reason, ".")
	}
	s := "Not finished: " + Count(r.Left.AtMost, "trial") + " left"
	if r.Left.AtLeast != r.Left.AtMost {
		s = fmt.Sprintf("Not finished: %d to %d trials left", r.Left.AtLeast, r.Left.AtMost)
	}
	if r.Left.MostTime > 0 {
		s += ", at most " + Duration(r.Left.MostTime)
	}
	return s
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

// treatment says what was found of one.
func treatment(all []*analyse.Comparison, r *analyse.Result, opt Options) (Tone, string) {
	var n [kinds]int
	var by [kinds][]*analyse.Comparison
	for _, c := range all {
		k := kindOf(c)
		n[k]++
		by[k] = append(by[k], c)
	}
	if n[skipped] == len(all) {
		return Note, "skipped, " + all[0].Skipped
	}
	if groups := group(all); len(all) > 12 && len(groups) < len(all) {
		return tone(n), grouped(groups, r, opt)
	}
	vary := varying(r)
	var clauses []string
	// What costs needs no word: "takes 2.1 x as long" says it.
	for k, head := range []string{worse: "", better: "better: ", differs: "", equal: "equal within " + percent(r.Margin) + ": ", undecided: "not decided: ",
		noRatio: "no ratio: ", belowNoise: "below noise: ", failed: "failed: ", noValue: "not measured: ", skipped: "skipped: "} {
		list := by[k]
		if len(list) == 0 {
			continue
		}
		slices.SortStableFunc(list, func(a, b *analyse.Comparison) int {
			if a.First != b.First {
				return map[bool]int{true: -1, false: 1}[a.First]
			}
			return cmp.Compare(math.Abs(math.Log(cost(b))), math.Abs(math.Log(cost(a))))
		})
		var items []string
		for _, c := range list[:min(len(list), opt.items())] {
			s := name(r, c, vary)
			switch kind(k) {
			case worse, better, differs:
				s = phrase(c, s)
			case undecided:
				s += " " + c.Response.Name
				if e := c.Estimate; e.HasInterval() {
					s += fmt.Sprintf(" (%s to %s x)", Ratio(e.Lo), Ratio(e.Hi))
				} else {
					s += fmt.Sprintf(" (n = %d)", e.N)
				}
			default:
				s += " " + c.Response.Name
			}
			items = append(items, s)
		}
		if more := len(list) - len(items); more > 0 {
			items = append(items, fmt.Sprintf("%d more", more))
		}
		clauses = append(clauses, head+List(items))
	}
	return tone(n), strings.Join(clauses, "; ") + "."
}

func percent(x float64) string { return strconv.FormatFloat(100*x, 'g', 3, 64) + " %" }
