package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/expr-lang/expr"
	"gonum.org/v1/gonum/stat/distuv"

	"tare/analyse/stat"
)

// Doubt is a row that does not break a gate, but whose change might have been missed
// if it did.
type Doubt struct {
	Gate    string  `json:"gate"`
	Row     int     `json:"row"` // index into Result.Rows
	Why     string  `json:"why"`
	Limit   float64 `json:"limit,omitempty"`   // the ratio B/A from which the gate is broken; 0: the row has no interval
	Power   float64 `json:"power,omitempty"`   // probability that a true change a third above the limit breaks the gate
	Breaks  float64 `json:"breaks,omitempty"`  // true ratio B/A that breaks the gate with the wanted power; 0: none does
	Blocks  int     `json:"blocks,omitempty"`  // as many a side have the wanted power; 0: no number that can be measured does
	Width   float64 `json:"width,omitempty"`   // a study with this width makes as many; 0: no width makes so many for this row
	Results int     `json:"results,omitempty"` // as many results a side are enough, where sides have several
}

// Bounds of the advice: nobody measures more.
const (
	mostBlocks  = 1000
	mostResults = 50
)

// Held is what a gate that held promises.
type Held struct {
	Gate   string  `json:"gate"`
	Power  float64 `json:"power"`            // the wanted one
	Breaks float64 `json:"breaks,omitempty"` // a true change of this ratio or more, either way, breaks the gate in any row with at least this probability; 0: no such ratio is known
}

// above is the size of the change, in limits by logarithms, that a gate must be able to
// find. A change of the limit's own size breaks a gate in half of the cases only, however
// precise the row is, because the estimate must exceed the limit too.
// One that asks for the whole interval must find a change of twice the limit.
const above, aboveSurely = 4. / 3, 2.

// Unjudged lists the rows that a gate cannot judge, gate by gate. A gate can judge a row
// that does not break it when either
//
//   - the interval is within its limit: neither end of it would break the gate; or
//   - it has the wanted power: a true change a third above the limit (twice the limit for
//     "surely worse") would break it with at least this probability: the row would be
//     found changed, among so many rows, and its estimate would exceed the limit.
//     Power 0 asks for an interval alone.
//
// That limit is found by trial: the gate is evaluated for the same row with other
// ratios that are known exactly. So a gate that does not use the ratio judges every
// row. Rows that only one study has, and those without a figure on both sides, are
// left to gates that name them.
func (r *Result) Unjudged(gates []*Gate, breaches []Breach, power float64) ([]Doubt, error) {
	broken := make(map[Breach]bool)
	for _, b := range breaches {
		broken[b] = true
	}
	out, names := []Doubt{}, r.factors()
	for _, g := range gates {
		for i := range r.Rows {
			if broken[Breach{Gate: g.Text, Row: i}] {
				continue
			}
			t := r.trial(g, i, power, names)
			d, doubt := t.judge()
			if t.err != nil {
				return nil, t.err
			}
			if doubt {
				d.Gate, d.Row = g.Text, i
				out = append(out, d)
			}
		}
	}
	return out, nil
}

// Promises says what each gate promises that nothing broke and that could judge all rows.
func (r *Result) Promises(gates []*Gate, breaches []Breach, doubts []Doubt, power float64) ([]Held, error) {
	out, names := []Held{}, r.factors()
	for _, g := range gates {
		if slices.ContainsFunc(breaches, func(b Breach) bool { return b.Gate == g.Text }) || slices.ContainsFunc(doubts, func(d Doubt) bool { return d.Gate == g.Text }) {
			continue
		}
		h, worst := Held{Gate: g.Text, Power: power}, 0.0
		for i := range r.Rows {
			c := r.Rows[i].Change()
			if !c.HasInterval() || power == 0 {
				continue
			}
			const far = 1e9
			t := r.trial(g, i, power, names)
			for _, end := range []float64{far, 1 / far} {
				if t.breaks(end) {
					worst = math.Max(worst, math.Abs(math.Log(t.breaking(t.asks(end), c))))
				}
			}
			if t.err != nil {
				return nil, t.err
			}
		}
		if worst > 0 && !math.IsInf(worst, 0) {
			h.Breaks = math.Exp(worst)
		}
		out = append(out, h)
	}
	return out, nil
}

func (r *Result) trial(g *Gate, row int, power float64, names []string) *trial {
	return &trial{res: r, row: &r.Rows[row], gate: g, names: names, power: power, margin: r.Margin}
}

// trial tries a gate on a row.
type trial struct {
	res   *Result
	row   *Row
	gate  *Gate
	names []string
	power float64

	margin float64 // of the verdicts
	err    error
}

func (t *trial) judge() (Doubt, bool) {
	c := t.row.Change()
	if t.row.OnlyIn != "" || c == nil {
		return Doubt{}, false
	}
	if !c.HasInterval() {
		nothing := !t.row.A.figure(t.row.Question) && !t.row.B.figure(t.row.Question)
		const far = 1e9
		return Doubt{Why: cmp.Or(t.row.Missing(), c.Why)}, !nothing && (t.breaks(far) || t.breaks(1/far))
	}
	worst, found, by := Doubt{Power: 1}, false, asked{}
	for _, end := range []float64{c.Lo, c.Hi} {
		if t.power == 0 || !t.breaks(end) {
			continue
		}
		asked := t.asks(end)
		d := Doubt{Limit: asked.limit}
		if d.Power = t.powerAt(asked, asked.wanted(), c.SE, c.DF, c.N); d.Power < t.power && d.Power <= worst.Power {
			worst, found, by = d, true, asked
		}
	}
	if found {
		t.advise(&worst, by)
	}
	return worst, found
}

// figure reports whether a side has a figure for the question.
func (m *Measured) figure(q Question) bool {
	if m == nil {
		return false
	}
	return q == Cost && m.Cost.Ratio > 0 || q == Level && m.N > 0
}

// breaks reports whether the gate would be broken if the row's ratio were exactly this.
func (t *trial) breaks(ratio float64) bool {
	zero := 0.0
	c := &Change{Ratio: ratio, Lo: ratio, Hi: ratio, N: mostBlocks, P: &zero, Q: &zero}
	c.judge(stat.NewRule(t.res.Confidence, 0, t.margin, nil, 1), t.row.Response.Better, 1)
	return t.brokenBy(c)
}

// brokenBy reports whether the gate would be broken if this had become of the row.
func (t *trial) brokenBy(c *Change) bool {
	row := *t.row
	if row.Question == Cost {
		row.Cost = c
	} else {
		row.Level = c
	}
	v, err := expr.Run(t.gate.program, environment(&row, t.names))
	if err != nil {
		t.err = fmt.Errorf("the gate %q cannot be evaluated for %s, %s: %w", t.gate.Text, row.Cell, row.Response.Name, err)
		return false
	}
	b, _ := v.(bool)
	return b
}

// hidden returns the limit of a gate that lies within the margin, where nothing counts as
// changed, so that the gate cannot be broken there; 0 if there is none. A gate without a
// limit of its own, such as `changed`, has the margin for one.
func (t *trial) hidden() float64 {
	free := *t
	free.margin = 0
	for _, end := range []float64{1 + t.margin, 1 / (1 + t.margin)} {
		inside := math.Pow(end, 0.999)
		if !free.breaks(inside) || t.breaks(inside) {
			continue
		}
		if l := free.limit(inside); math.Abs(math.Log(l)) > 1e-6 {
			return l
		}
	}
	return 0
}

// asked is what a gate asks of an estimate to be broken.
type asked struct {
	limit   float64 // ratio that it must exceed
	changed bool    // the row must be found changed
	surely  bool    // the end of the interval must exceed the limit too
}

// wanted is the true ratio that the gate must be able to find.
func (a asked) wanted() float64 {
	if a.surely {
		return math.Pow(a.limit, aboveSurely)
	}
	return math.Pow(a.limit, above)
}

// asks finds out by trial what the gate asks of a row that changed towards the given end.
func (t *trial) asks(end float64) asked {
	out := asked{limit: t.limit(end)}
	past := math.Exp(math.Copysign(1.5*math.Abs(math.Log(out.limit))+1e-9, math.Log(end)))
	one, zero := 1.0, 0.0
	interval := func(c Change, near, far float64) *Change {
		c.Ratio, c.N, c.Lo, c.Hi = past, mostBlocks, min(near, far), max(near, far)
		return &c
	}
	out.changed = !t.brokenBy(interval(Change{P: &one, Q: &one, Verdict: stat.Undecided}, past, past))
	sure := &Change{}
	*sure = *interval(Change{P: &zero, Q: &zero}, past, past)
	sure.judge(stat.NewRule(t.res.Confidence, 0, t.margin, nil, 1), t.row.Response.Better, 1)
	near := math.Sqrt(out.limit)
	out.surely = out.limit != 1 && !t.brokenBy(interval(Change{P: &zero, Q: &zero, Verdict: sure.Verdict, Changed: sure.Changed}, near, past*past/near))
	return out
}

// limit is the ratio nearest to 1, towards the given end, that breaks the gate.
func (t *trial) limit(end float64) float64 {
	if t.breaks(1) {
		return 1
	}
	in, out := 0.0, math.Log(end)
	for range 50 {
		if mid := (in + out) / 2; t.breaks(math.Exp(mid)) {
			out = mid
		} else {
			in = mid
		}
	}
	return math.Exp(out)
}

// powerAt is the probability that a row with this true ratio breaks the gate: that its
// estimate exceeds the limit and, where the gate asks for it, that the row is found changed,
// with the false discovery rate controlled over the family's rows and the number of others
// that changed. The estimate is normal. How much the standard error varies is
// averaged over quantiles of chi-square (E. B. Wilson, M. M. Hilferty, PNAS 17 (1931) 684).
func (t *trial) powerAt(a asked, ratio, se, df float64, n int) float64 {
	d := math.Abs(math.Log(ratio))
	limit := math.Abs(math.Log(a.limit))
	plain := stat.Student(df).Quantile(0.5 + t.res.Confidence/2)
	half := plain * se
	noisy, _ := t.res.rule().Judge(stat.Estimate{Ratio: stat.Exp(d), Lo: stat.Exp(d - half), Hi: stat.Exp(d + half), N: n}, t.row.Response.Better)
	switch {
	case d == 0, a.changed && d > half && noisy == stat.Undecided: // so few blocks with so much scatter are never called
		return 0
	case se == 0:
		return float64(count(d > limit))
	}
	crit := 0.0
	if a.changed {
		crit = stat.Student(df).Quantile(1 - t.level()/2)
	}
	const points = 24
	out := 0.0
	for i := range points {
		z := distuv.UnitNormal.Quantile((float64(i) + 0.5) / points)
		w := se * math.Pow(math.Max(0, 1-2/(9*df)+z*math.Sqrt(2/(9*df))), 1.5) // a standard error that may come out
		least := math.Max(limit, crit*w)
		if a.surely {
			least = math.Max(least, limit+plain*w)
		}
		out += distuv.UnitNormal.CDF((d-least)/se) / points
	}
	return out
}

// level is the p-value that the row needs to be a discovery, given those that there are.
func (t *trial) level() float64 {
	rows, changed := 0, 0 // in the row's family
	for i := range t.res.Rows {
		if c := t.res.Rows[i].Change(); c.HasInterval() && t.res.Rows[i].Question == t.row.Question {
			rows++
			changed += count(c.Changed && &t.res.Rows[i] != t.row)
		}
	}
	return math.Min(1-t.res.Confidence, t.res.FDR*float64(changed+1)/float64(rows))
}

// breaking is the true ratio from which the row breaks the gate with the wanted power, if it
// stays as precise as it is; infinite if no ratio does.
func (t *trial) breaking(a asked, c *Change) float64 {
	lo, hi := math.Abs(math.Log(a.limit)), 20.0
	if t.powerAt(a, math.Exp(hi), c.SE, c.DF, c.N) < t.power {
		return math.Inf(1)
	}
	for range 40 {
		if mid := (lo + hi) / 2; t.powerAt(a, math.Exp(mid), c.SE, c.DF, c.N) < t.power {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp(math.Copysign(hi, math.Log(a.limit)))
}

// advise says what would have the wanted power, and why this row does not have it.
func (t *trial) advise(d *Doubt, a asked) {
	c := t.row.Change()
	if d.Limit == 1 {
		d.Why = "this gate is broken by any change, however small; give it a limit"
		return
	}
	cost := func(ratio float64) float64 { // as the table has it
		x, _, _ := stat.Estimate{Ratio: ratio}.Cost(t.row.Response.Better)
		return x
	}
	d.Why = fmt.Sprintf("the interval reaches the limit, %.6g, and a true change of %.4g would break the gate in %.0f %% only", cost(d.Limit), cost(a.wanted()), 100*d.Power)
	if b := t.breaking(a, c); b > 0 && !math.IsInf(b, 0) {
		d.Breaks = b
		d.Why += fmt.Sprintf(", one of %.3g in %.0f %%", cost(b), 100*t.power)
	}
	if k := t.row.A.Results + t.row.B.Results; k > 0 {
		each := float64(k) / 2
		for n := int(math.Ceil(each)); n <= mostResults; n++ {
			if t.powerAt(a, a.wanted(), c.SE*math.Sqrt(each/float64(n)), math.Max(c.DF, float64(2*n-2)), c.N*n) >= t.power {
				d.Results = n
				return
			}
		}
		return
	}
	na, nb := float64(t.row.A.blocks(t.row.Question)), float64(t.row.B.blocks(t.row.Question))
	each := 2 / (1/na + 1/nb)
	for n := int(math.Ceil(each)); n <= mostBlocks; n += 1 + n/100 {
		more := float64(n) / each
		se, df := c.SE/math.Sqrt(more), c.DF*more
		if t.powerAt(a, a.wanted(), se, df, n) >= t.power {
			d.Blocks = n
			// A study's width is for its costs; for a large cost, a share of it is enough.
			width := math.Expm1(stat.Student(df/2).Quantile(0.5+t.res.Confidence/2) * se / math.Sqrt2)
			if t.row.Question == Cost && width >= precision*math.Max(math.Abs(math.Log(t.row.A.Cost.Ratio)), math.Abs(math.Log(t.row.B.Cost.Ratio))) {
				d.Width = width
			}
			return
		}
	}
}

func count(of bool) int {
	if of {
		return 1
	}
	return 0
}

func (m *Measured) blocks(q Question) int {
	if q == Cost {
		return m.Cost.N
	}
	return m.N
}
