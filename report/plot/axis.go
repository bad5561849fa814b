package plot

import (
	"math"
	"strconv"
	"strings"

	"tare/record"
	"tare/report/words"
)

// farApart is the span of values from which an axis is logarithmic.
const farApart = 20

// tick is a mark at an axis; without a label it is a minor one.
type tick struct {
	at    float64
	label string
}

// scale maps values to 0..1 along an axis.
type scale struct {
	log    bool
	lo, hi float64
	base   float64 // where bars begin
	ticks  []tick
	unit   string // what the ticks' numbers are in: "k/s"; "" when each tick says
	cut    bool   // an interval goes on beyond it
}

// norm is the place of v: 0 at the lower end, 1 at the upper.
func (s *scale) norm(v float64) float64 {
	if !s.log {
		return (v - s.lo) / (s.hi - s.lo)
	}
	if v <= 0 {
		return math.Inf(-1)
	}
	return math.Log(v/s.lo) / math.Log(s.hi/s.lo)
}

// newScale fits an axis to the marks of a figure. Intervals that reach far
// beyond all values do not make the values small; they are cut with an arrow.
func newScale(f *Figure, points bool) scale {
	lo, hi := math.Inf(1), math.Inf(-1) // of the values
	wide := [2]float64{lo, hi}          // of intervals and blocks
	see := func(to *[2]float64, v float64) { to[0], to[1] = min(to[0], v), max(to[1], v) }
	values := [2]float64{lo, hi}
	for i := range f.Marks {
		m := &f.Marks[i]
		if m.Gap != "" {
			continue
		}
		if !m.single() {
			see(&values, m.Value)
		}
		if m.HasInterval() {
			see(&wide, m.Lo)
			see(&wide, m.Hi)
		}
		if points || m.single() {
			for _, p := range m.Points {
				see(&wide, p)
				if m.single() {
					see(&values, p)
				}
			}
		}
	}
	if f.Value == Cost {
		see(&values, 1/(1+f.Margin))
		see(&values, 1+f.Margin)
	}
	if math.IsInf(values[0], 0) {
		values = [2]float64{0, 1} // gaps alone
	}
	lo, hi = values[0], values[1]
	s := scale{log: lo > 0 && hi/lo > farApart}
	if s.log {
		from, to := max(min(lo, wide[0]), lo/10), min(max(hi, wide[1]), hi*10)
		s.cut = wide[0] < from || wide[1] > to
		s.lo, s.hi = from/1.5, to*1.35
		s.base = s.lo
		if f.Value == Cost {
			s.base = 1
		}
		s.logTicks(f.unit(), f.Value)
		return s
	}
	span := max(hi-min(lo, 0), math.Abs(hi)*1e-9)
	if f.Value == Cost {
		span = hi - lo
		s.base = 1
	}
	if !(span > 0) {
		span = 1
	}
	from, to := max(min(lo, wide[0]), lo-span), min(max(hi, wide[1]), hi+span)
	if f.Value == Level && lo >= 0 {
		from = 0
	}
	s.cut = wide[0] < from || wide[1] > to
	s.lo, s.hi = from, to+(to-from)*0.1
	if from < 0 || f.Value == Cost {
		s.lo = from - (to-from)*0.1
	}
	if f.Value == Cost {
		s.lo = max(s.lo, 0)
	}
	s.linearTicks(f.unit(), f.Value)
	return s
}

// linearTicks marks round numbers in one unit for the whole axis.
func (s *scale) linearTicks(unit record.Unit, v Value) {
	per := 1.0
	if v == Cost {
		s.unit = ""
	} else {
		per, s.unit = prefix(max(math.Abs(s.lo), math.Abs(s.hi)), unit)
	}
	step := niceStep((s.hi - s.lo) / per / 6)
	// Adding 0 makes a zero of -0, which would be written so.
	for k := math.Ceil(s.lo/per/step-1e-9) + 0; k*step <= s.hi/per*(1+1e-12); k++ {
		s.ticks = append(s.ticks, tick{k * step * per, decimal(k*step, step)})
	}
}

// niceStep is the next of 1, 2, 2.5, 5 times a power of ten.
func niceStep(x float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*p >= x*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// decimal writes a multiple of step with the digits that the step has.
func decimal(v, step float64) string {
	if a := max(math.Abs(v), step); a >= 1e6 || step < 1e-6 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	n := 0
	for x := step; n < 7 && math.Abs(x-math.Round(x)) > 1e-6; n++ {
		x *= 10
	}
	return strconv.FormatFloat(v, 'f', n, 64)
}

// prefix chooses the unit in which the largest value is a readable number.
func prefix(largest float64, unit record.Unit) (per float64, name string) {
	type step struct {
		per  float64
		name string
	}
	var steps []step
	switch unit {
	case record.Second:
		steps = []step{{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}}
	case record.Byte:
		steps = []step{{1, "B"}, {1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}, {1 << 40, "TiB"}}
	case record.BytesPerSecond:
		steps = []step{{1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}}
	case record.BitsPerSecond:
		steps = []step{{1. / 8, "b/s"}, {1e3 / 8, "kb/s"}, {1e6 / 8, "Mb/s"}, {1e9 / 8, "Gb/s"}, {1e12 / 8, "Tb/s"}}
	case record.PerSecond:
		steps = []step{{1, "/s"}, {1e3, "k/s"}, {1e6, "M/s"}, {1e9, "G/s"}}
	case record.Fraction:
		return 0.01, "%"
	case record.Cores:
		return 1, "cores"
	case record.Count:
		steps = []step{{1, ""}, {1e3, "thousand"}, {1e6, "million"}}
	default:
		return 1, string(unit)
	}
	best := steps[0]
	for _, s := range steps {
		if s.per <= largest*1.0001 {
			best = s
		}
	}
	return best.per, best.name
}

// logTicks marks powers of ten, and 2 and 5 times those on a short axis. Each
// says its own unit: 10 µs, 1 ms.
func (s *scale) logTicks(unit record.Unit, v Value) {
	if unit == record.Byte && v != Cost {
		s.byteTicks()
		return
	}
	decades := math.Log10(s.hi / s.lo)
	every := max(1, int(math.Ceil(decades/8)))
	label := func(x float64) string {
		if v == Cost {
			return strconv.FormatFloat(x, 'g', 6, 64)
		}
		return short(words.Value(x, unit))
	}
	for e := int(math.Floor(math.Log10(s.lo))); ; e++ {
		p, err := strconv.ParseFloat("1e"+strconv.Itoa(e), 64) // exact, unlike math.Pow
		if err != nil || p > s.hi {
			return
		}
		for m := 1.0; m < 10; m++ {
			x := m * p
			if x < s.lo || x > s.hi {
				continue
			}
			t := tick{at: x}
			if m == 1 && e%every == 0 || (m == 2 || m == 5) && decades < 3.2 {
				t.label = label(x)
			}
			if every == 1 || m == 1 {
				s.ticks = append(s.ticks, t)
			}
		}
	}
}

// byteTicks marks powers of two, which are round numbers of KiB and MiB. Powers of ten are not.
func (s *scale) byteTicks() {
	from, to := int(math.Ceil(math.Log2(s.lo))), int(math.Floor(math.Log2(s.hi)))
	every := 10
	for _, n := range []int{1, 2, 5} {
		if to-from <= 8*n {
			every = n
			break
		}
	}
	for e := from; e <= to; e++ {
		t := tick{at: math.Ldexp(1, e)}
		if e%every == 0 {
			t.label = short(words.Value(t.at, record.Byte))
		}
		s.ticks = append(s.ticks, t)
	}
}

// short takes the zeros off a number's end: 10.0 us is 10 us at a tick.
func short(s string) string {
	n, unit, found := strings.Cut(s, " ")
	if strings.Contains(n, ".") && !strings.Contains(n, "e") {
		n = strings.TrimRight(strings.TrimRight(n, "0"), ".")
	}
	if !found {
		return n
	}
	return n + " " + unit
}

// unit is that of the values of a figure.
func (f *Figure) unit() record.Unit {
	for i := range f.Marks {
		if u := f.Marks[i].Response.Shown(); u != "" {
			return u
		}
	}
	return f.Response.Shown()
}
