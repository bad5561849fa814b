package main

import (
	"fmt"
	"math"
)

// band is the range that a figure is promised to be in.
type band struct {
	lo, hi float64 // -Inf, +Inf: not bounded there
}

func none() band              { return band{math.Inf(-1), math.Inf(1)} }
func coverage() band          { return band{0.94, 0.97} }
func atMost(hi float64) band  { return band{math.Inf(-1), hi} }
func atLeast(lo float64) band { return band{lo, math.Inf(1)} }
func (b band) bounded() bool  { return !math.IsInf(b.lo, -1) || !math.IsInf(b.hi, 1) }
func (b band) String() string {
	switch {
	case !b.bounded():
		return "-"
	case math.IsInf(b.lo, -1):
		return fmt.Sprintf("<= %g", 100*b.hi)
	case math.IsInf(b.hi, 1):
		return fmt.Sprintf(">= %g", 100*b.lo)
	}
	return fmt.Sprintf("%g-%g", 100*b.lo, 100*b.hi)
}

// chance is how many standard errors a figure may be outside its band. Of a thousand figures
// at the very edge, two would be farther out.
const chance = 3

// figure is one achieved value beside what is promised.
type figure struct {
	of         string // the case
	name       string
	value, err float64 // the Monte-Carlo standard error
	number     float64 // rows, cells or studies that it is over
	studies    int
	band       band
	promised   bool // outside fails the command
}

// spread is the standard error, or that of a share at the band's edge if it is larger: a share of 0
// or 1 of a few has a standard error of zero.
func (f *figure) spread(edge float64) float64 {
	if edge <= 0 || edge >= 1 || f.number == 0 {
		return f.err
	}
	return math.Max(f.err, math.Sqrt(edge*(1-edge)/f.number))
}

// enoughStudies is the number of studies from which their scatter can be estimated.
const enoughStudies = 20

// outside reports whether chance does not explain that the figure is outside its band.
func (f *figure) outside() bool { return f.studies >= enoughStudies && (f.below() || f.above()) }

func (f *figure) below() bool { return f.value < f.band.lo-chance*f.spread(f.band.lo) }
func (f *figure) above() bool { return f.value > f.band.hi+chance*f.spread(f.band.hi) }

// mark is ! for outside the band, and ? for outside by no more than chance explains.
func (f *figure) mark() string {
	switch {
	case f.outside():
		return "!"
	case f.value < f.band.lo || f.value > f.band.hi:
		return "?"
	}
	return ""
}

// unit of a figure as it is printed.
type format int

const (
	percent format = iota // of a share
	times
	plain
)

func (f *figure) text(as format) string {
	if math.IsNaN(f.value) {
		return "-"
	}
	switch as {
	case percent:
		return fmt.Sprintf("%.1f ±%.1f%s", 100*f.value, 100*f.err, f.mark())
	case times:
		return fmt.Sprintf("%.2f ±%.2f%s", f.value, f.err, f.mark())
	default:
		return fmt.Sprintf("%.1f ±%.1f%s", f.value, f.err, f.mark())
	}
}
