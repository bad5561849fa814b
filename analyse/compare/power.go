package compare

import (
	"fmt"
	"math"

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
	Power   float64 `json:"power,omitempty"`   // probability that a change of this size would be found
	Blocks  int     `json:"blocks,omitempty"`  // as many a side find it with the wanted power; 0: no number that can be measured does
	Width   float64 `json:"width,omitempty"`   // a study with this width makes as many; 0: no width makes so many for this row
	Results int     `json:"results,omitempty"` // as many results a side are enough, where sides have several
}

// Bounds of the advice: nobody measures more.
const (
	mostBlocks  = 1000
	mostResults = 50
)

// Unjudged lists the rows that a gate cannot judge, gate by gate. A gate can judge a row
// that does not break it when either
//
//   - the interval is within its limit: neither end of it would break the gate; or
//   - it has the wanted power: if the true ratio were the first that breaks the gate,
//     the row would be found changed, among so many rows, with at least this
//     probability. Power 0 asks for an interval alone.
//
// That ratio is found by trial: the gate is evaluated for the same row with other
// ratios that are known exactly. So a gate that does not use the ratio judges every
// row. Rows that only one study has, and those without a figure on both sides, are
// left to gates that name them.
func (r *Result) Unjudged(gates []*Gate, breaches []Breach, power float64) ([]Doubt, error) {
	broken := make(map[Breach]bool)
	for _, b := range breaches {
		broken[b] = true
	}
	out := []Doubt{}
	names := r.factors()
	for _, g := range gates {
		for i := range r.Rows {
			if broken[Breach{Gate: g.Text, Row: i}] {
				continue
			}
			t := trial{res: r, row: &r.Rows[i], gate: g, names: names, power: power}
			d, doubt := t.judge()
			if t.err != nil {
				return nil, fmt.Errorf("the gate %q cannot be evaluated for %s, %s: %w", g.Text, t.row.Cell, t.row.Response.Name, t.err)
			}
			if doubt {
				d.Gate, d.Row = g.Text, i
				out = append(out, d)
			}
		}
	}
	return out, nil
}

// trial tries a gate on a row.
type trial struct {
	res   *Result
	row   *Row
	gate  *Gate
	names []string
	power float64
	err   error
}

func (t *trial) judge() (Doubt, bool) {
	c := t.row.Change()
	if t.row.OnlyIn != "" || c == nil {
		return Doubt{}, false
	}
	if !c.HasInterval() {
		why := t.row.Missing()
		if why == "" {
			why = c.Why
		}
		nothing := !t.row.A.figure(t.row.Question) && !t.row.B.figure(t.row.Question)
		const far = 1e9
		return Doubt{Why: why}, !nothing && (t.breaks(far) || t.breaks(1/far))
	}
	worst, found := Doubt{Power: 1}, false
	for _, end := range []float64{c.Lo, c.Hi} {
		if t.power == 0 || !t.breaks(end) {
			continue
		}
		d := Doubt{Limit: t.limit(end)}
		if d.Power = t.powerAt(d.Limit, c.SE, c.DF, c.N); d.Power < t.power && d.Power <= worst.Power {
			worst, found = d, true
		}
	}
	if found {
		t.advise(&worst)
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
	row, zero := *t.row, 0.0
	c := &Change{Ratio: ratio, Lo: ratio, Hi: ratio, N: mostBlocks, P: &zero, Q: &zero}
	c.judge(t.res.rule(), row.Response.Better, 1)
	if row.Question == Cost {
		row.Cost = c
	} else {
		row.Level = c
	}
	v, err := expr.Run(t.gate.program, environment(&row, t.names))
	if err != nil {
		t.err = err
		return false
	}
	b, _ := v.(bool)
	return b
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

// powerAt is the probability that a row with this true ratio is found changed, with
// the false discovery rate controlled over the family's rows and the number of others
// that changed. The noncentral t distribution is the approximation 26.7.10 of
// Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964).
func (t *trial) powerAt(ratio, se, df float64, n int) float64 {
	d := math.Abs(math.Log(ratio))
	half := stat.Student(df).Quantile(0.5+t.res.Confidence/2) * se
	noisy, _ := t.res.rule().Judge(stat.Estimate{Ratio: stat.Exp(d), Lo: stat.Exp(d - half), Hi: stat.Exp(d + half), N: n}, t.row.Response.Better)
	switch {
	case d == 0, d > half && noisy == stat.Undecided: // so few blocks with so much scatter are never called
		return 0
	case se == 0:
		return 1
	}
	asked, changed := 0, 0 // in the row's family
	for i := range t.res.Rows {
		if c := t.res.Rows[i].Change(); c.HasInterval() && t.res.Rows[i].Question == t.row.Question {
			asked++
			if c.Changed && &t.res.Rows[i] != t.row {
				changed++
			}
		}
	}
	level := math.Min(1-t.res.Confidence, t.res.FDR*float64(changed+1)/float64(asked))
	crit := stat.Student(df).Quantile(1 - level/2)
	return distuv.UnitNormal.Survival((crit*(1-1/(4*df)) - d/se) / math.Sqrt(1+crit*crit/(2*df)))
}

// advise says what would have the wanted power, and why this row does not have it.
func (t *trial) advise(d *Doubt) {
	c := t.row.Change()
	d.Why = fmt.Sprintf("the interval reaches the limit, %.6g, and a change of that size would be found in %.0f %%", d.Limit, 100*d.Power)
	if d.Limit == 1 {
		d.Why = "the interval reaches ratios at which the gate is broken"
		return
	}
	if k := t.row.A.Results + t.row.B.Results; k > 0 {
		each := float64(k) / 2
		for n := int(math.Ceil(each)); n <= mostResults; n++ {
			if t.powerAt(d.Limit, c.SE*math.Sqrt(each/float64(n)), math.Max(c.DF, float64(2*n-2)), c.N*n) >= t.power {
				d.Results = n
				return
			}
		}
		return
	}
	a, b := float64(t.row.A.blocks(t.row.Question)), float64(t.row.B.blocks(t.row.Question))
	each := 2 / (1/a + 1/b)
	for n := int(math.Ceil(each)); n <= mostBlocks; n++ {
		more := float64(n) / each
		se, df := c.SE/math.Sqrt(more), c.DF*more
		if t.powerAt(d.Limit, se, df, n) >= t.power {
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

func (m *Measured) blocks(q Question) int {
	if q == Cost {
		return m.Cost.N
	}
	return m.N
}
