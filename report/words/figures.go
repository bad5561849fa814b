package words

import (
	"fmt"
	"math"
	"strings"

	"tare/analyse"
	"tare/analyse/merit"
	"tare/record"
	"tare/study"
)

// FigureTitle says what a table of a figure of merit shows.
func FigureTitle(r *analyse.Result, t *merit.Table) string {
	name := t.Response.Name
	var s string
	switch t.Kind {
	case study.FigureValue:
		s = name
	case study.FigureBest:
		s = fmt.Sprintf("best %s over %s", name, t.Of)
	case study.FigureGain:
		s = fmt.Sprintf("how much better the best %s over %s is than that with %s %s", name, t.Of, t.Of, t.Base)
	case study.FigureRatio:
		s = fmt.Sprintf("%s relative to %s %s", name, t.Of, t.Base)
	case study.FigureDifference:
		s = fmt.Sprintf("%s minus that with %s %s", name, t.Of, t.Base)
	case study.FigureFewest:
		s = fmt.Sprintf("fewest %s that reach %s of the best %s", t.Of, Share(t.Share), name)
	default:
		one, other, _ := strings.Cut(t.Figure, " over ")
		s = fmt.Sprintf("best %s of %s as a multiple of that of %s", name, one, other)
		if t.Response.Better == record.Lower {
			s = fmt.Sprintf("best %s of %s as a multiple of that of %s, so that more than 1 is better for %s", name, other, one, one)
		}
	}
	if len(t.Fixed) > 0 {
		s += ", " + Levels(r, t.Fixed, " ")
	}
	return t.Name + ": " + s
}

// Share writes a share of the best: 90 %.
func Share(x float64) string { return strings.TrimSuffix(fmt.Sprintf("%.4g", 100*x), ".0") + " %" }

// FigureValue writes a figure and its interval. second is "" where there is no interval, or
// where it says no more than the figure.
func FigureValue(t *merit.Table, row *merit.Row, c *merit.Cell) (first, second string) {
	if c.Value == nil {
		return "-", ""
	}
	write := func(v float64) string {
		switch t.Kind {
		case study.FigureGain:
			return fmt.Sprintf("%.0f %%", round(100*v))
		case study.FigureFewest:
			return fmt.Sprintf("%.0f", round(v))
		case study.FigureOver, study.FigureRatio:
			return Ratio(v)
		case study.FigureDifference:
			return signed(v, t.Response.Shown())
		}
		return Value(v, t.Response.Shown())
	}
	if t.Kind == study.FigureFewest && !row.Total {
		first = c.Level
		if c.Interval != nil && !c.Decided {
			second = c.Lowest + "–" + c.Highest + " ?"
		}
		return first, second
	}
	if first = write(*c.Value); c.Interval != nil {
		lo, hi := write(c.Interval[0]), write(c.Interval[1])
		if v, unit, ok := strings.Cut(lo, " "); ok && strings.HasSuffix(hi, " "+unit) {
			lo = v
		}
		to := "–"
		if t.Kind == study.FigureDifference {
			to = " to " // beside signs
		}
		second = lo + to + hi
	}
	return first, second
}

// signed writes a difference with its sign: +12 µs.
func signed(v float64, u record.Unit) string {
	switch {
	case v > 0:
		return "+" + Value(v, u)
	case v < 0:
		return "−" + Value(-v, u)
	}
	return Value(v, u)
}

// round is to the nearest whole number, a half away from 0, as the published tables have it.
func round(v float64) float64 { return math.Round(v) }

// FigureColumn names a column by its levels: 4 × 16 is of two factors, which FigureAcross
// names.
func FigureColumn(r *analyse.Result, t *merit.Table, column record.Cell) string {
	switch len(t.Across) {
	case 0:
		return t.Response.Name
	case 1:
		return Levels(r, column, " ")
	}
	names := make([]string, len(column)) // pod beside vm×4: it has no such factor
	for i, l := range column {
		names[i] = r.LevelName(l)
	}
	return strings.Join(names, "×")
}

// FigureAcross says what such names are of; "" where the columns name their factor.
func FigureAcross(t *merit.Table) string {
	if len(t.Across) < 2 {
		return ""
	}
	return "Columns: " + strings.Join(t.Across, " × ") + "."
}
