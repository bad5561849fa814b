package main

import (
	"cmp"
	"math"
	"slices"

	"tare/analyse/stat"
)

// quantity is one of the figures that are compared with the truth.
type quantity int

// The quantities. Each is a ratio of two sums over studies.
const (
	covered           quantity = iota // rows whose interval holds the truth
	coveredOther                      // rows whose truth is not one
	coveredNoisy                      // likewise, of the noisiest quarter of a study's rows; of the loud workload's where there is one
	coveredQuiet                      // of the quietest quarter
	coveredTable                      // cells of the geometric-mean table over all strata
	coveredTableOther                 // those of studies with effects
	coveredColumn                     // cells of the one with a column for each workload
	coveredMean                       // cells of rows over several treatments
	width                             // half-width, in that of the best interval
	widthTable                        // likewise of the table over all strata
	equalCalled                       // rows of equal things called different, in A/A studies
	equalTable                        // cells of tables likewise
	falseFound                        // false discovery rate, with effects about
	studiesFound                      // A/A studies with any discovery
	equivalentSaid                    // equal things called equivalent
	undecidedSaid                     // equal things left undecided
	power5                            // rows slower or faster by 5 % called so
	power5Best                        // the same by the best test
	power5Of                          // the first, in the second
	power10                           // for 10 %
	power10Best                       //
	power10Of                         //
	overstated                        // by how much called rows overstate the difference, in hundredths of its logarithm
	overstated5                       // those whose truth is 5 %
	corrected                         // the same of the bias-corrected ratio
	corrected5                        //
	blocks                            // of a row
	noInterval                        // rows without an interval
	gateBroken                        // A/A pairs of results that break the gate
	gateJudges                        // rows of pairs that the gate can judge
	gateMissed                        // those of them that are 10 % worse and do not break it
	tookTime                          // seconds taken, in those of 16 fixed blocks of everything in two turns
	madeTrials                        // trials made, in those of 16 fixed blocks of everything
	rightSaid                         // rows with a verdict that is true
	wrongSaid                         // rows with one that is not
	quantities
)

// sum is what one study adds to a quantity.
type sum struct{ hits, of float64 }

// score is what one study says.
type score struct {
	sums   [quantities]sum
	trials int
	few    []fewRow      // rows of a study that has too few for quarters
	power  [2][]powerRow // by powerSizes
}

// powerRow is a row whose difference is one of powerSizes.
type powerRow struct {
	truth, pair, n float64
	found          bool
}

type fewRow struct {
	pair    float64
	covered bool
}

func (s *score) count(q quantity, hit bool) {
	s.sums[q].of++
	if hit {
		s.sums[q].hits++
	}
}

func (s *score) add(q quantity, x, of float64) {
	s.sums[q].hits += x
	s.sums[q].of += of
}

// quarters is the least number of rows whose quarters a study itself tells.
const quarters = 4

// judge compares a study with the truth.
func judge(p *played) *score {
	s := &score{trials: p.trials}
	s.add(madeTrials, float64(p.trials), float64(16*p.cells))
	s.add(tookTime, p.took, p.whole)
	order := make([]int, len(p.rows))
	loud := false
	for i := range order {
		order[i] = i
		loud = loud || p.rows[i].noisy
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.rows[a].pair, p.rows[b].pair) })
	var found, wrong float64
	for rank, i := range order {
		r := &p.rows[i]
		s.add(blocks, float64(r.n), 1)
		s.count(noInterval, math.IsNaN(r.lo))
		discovery := r.q <= 0.05
		if discovery {
			found++
			if r.truth == 0 {
				wrong++
			}
		}
		s.verdict(r, p.aa)
		if math.IsNaN(r.lo) {
			continue
		}
		hit := r.lo <= r.truth && r.truth <= r.hi
		s.count(covered, hit)
		if r.truth != 0 {
			s.count(coveredOther, hit)
		}
		best := best95 * r.pair / math.Sqrt(float64(r.n))
		s.add(width, (r.hi-r.lo)/2/best, 1)
		if len(order) < quarters {
			s.few = append(s.few, fewRow{r.pair, hit})
			continue
		}
		share := float64(rank) / float64(len(order))
		if share < 0.25 {
			s.count(coveredQuiet, hit)
		}
		if r.noisy || !loud && share >= 0.75 {
			s.count(coveredNoisy, hit)
		}
	}
	if p.aa {
		s.count(studiesFound, found > 0)
	} else {
		s.add(falseFound, wrong/math.Max(found, 1), 1)
	}
	s.tables(p)
	return s
}

// verdict counts the verdict on a row.
func (s *score) verdict(r *playedRow, aa bool) {
	right, wrong := r.said()
	s.count(rightSaid, right)
	s.count(wrongSaid, wrong)
	if r.truth == 0 {
		if aa {
			s.count(equalCalled, r.called())
		}
		s.count(equivalentSaid, r.verdict == stat.Equivalent)
		s.count(undecidedSaid, r.verdict == stat.Undecided)
	}
	for i, size := range powerSizes() {
		if isSize(r.truth, size) {
			s.power[i] = append(s.power[i], powerRow{math.Abs(r.truth), r.pair, float64(r.n), r.called() && (r.ratio > 0) == (r.truth > 0)})
		}
	}
	if !r.called() {
		return
	}
	// In logarithms, which are near to points where ratios are near to 1, and where a ratio of
	// a hundred does not decide the mean.
	over := func(x float64) float64 { return 100 * (x - r.truth) * math.Copysign(1, r.ratio) }
	five := isSize(r.truth, 0.05)
	s.add(overstated, over(r.ratio), 1)
	if five {
		s.add(overstated5, over(r.ratio), 1)
	}
	if !math.IsNaN(r.shrunk) {
		s.add(corrected, over(r.shrunk), 1)
		if five {
			s.add(corrected5, over(r.shrunk), 1)
		}
	}
}

// powerSizes are the differences whose finding is counted.
func powerSizes() [2]float64 { return [2]float64{0.05, 0.10} }

func isSize(truth, size float64) bool { return math.Abs(math.Abs(truth)-math.Log1p(size)) < 1e-12 }

// bestPower is how often the two-sided test at 5 % that knows the scatter finds a difference,
// in the right direction, from n blocks.
func bestPower(truth, pair, n float64) float64 {
	return 0.5 * math.Erfc((best95-truth*math.Sqrt(n)/pair)/math.Sqrt2)
}

// tables counts the cells of the tables.
func (s *score) tables(p *played) {
	most := 0
	for i := range p.tables {
		most = max(most, p.tables[i].strata)
	}
	for i := range p.tables {
		t := &p.tables[i]
		if math.IsNaN(t.lo) {
			continue
		}
		hit := t.lo <= t.truth && t.truth <= t.hi
		switch {
		case t.mean:
			s.count(coveredMean, hit)
		case t.strata == most:
			s.count(coveredTable, hit)
			s.add(widthTable, (t.hi-t.lo)/2/t.best, 1)
			if p.aa {
				s.count(equalTable, t.called)
			} else {
				s.count(coveredTableOther, hit)
			}
		default:
			s.count(coveredColumn, hit)
		}
	}
}

// total adds up studies.
type total struct {
	scores []*score
	trials int
}

// pool sorts the rows of studies that have too few for quarters of their own into quarters
// of all rows together.
func (t *total) pool() {
	var all []float64
	for _, s := range t.scores {
		for _, r := range s.few {
			all = append(all, r.pair)
		}
	}
	if len(all) == 0 {
		return
	}
	low, high := quantile(all, 0.25), quantile(all, 0.75)
	if low == high {
		return // they scatter alike
	}
	for _, s := range t.scores {
		for _, r := range s.few {
			if r.pair <= low {
				s.count(coveredQuiet, r.covered)
			}
			if r.pair >= high {
				s.count(coveredNoisy, r.covered)
			}
		}
		s.few = nil
	}
}

// best counts what was found and what the best test finds. Rows stop early where they look
// different. So the best test gets the mean number of blocks of rows that scatter as much, not
// the row's own.
func (t *total) best() {
	type where struct{ study, row int }
	for i, q := range [2][3]quantity{{power5, power5Best, power5Of}, {power10, power10Best, power10Of}} {
		var all []where
		for k, s := range t.scores {
			for j := range s.power[i] {
				all = append(all, where{k, j})
			}
		}
		row := func(w where) *powerRow { return &t.scores[w.study].power[i][w.row] }
		slices.SortStableFunc(all, func(a, b where) int { return cmp.Compare(row(a).pair, row(b).pair) })
		size := max(20, len(all)/20)
		for from := 0; from < len(all); from += size {
			bin := all[from:min(from+size, len(all))]
			n := 0.0
			for _, w := range bin {
				n += row(w).n / float64(len(bin))
			}
			for _, w := range bin {
				r, s := row(w), t.scores[w.study]
				p, hit := bestPower(r.truth, r.pair, n), 0.0
				if r.found {
					hit = 1
				}
				s.add(q[0], hit, 1)
				s.add(q[1], p, 1)
				s.add(q[2], hit, p)
			}
		}
		for _, s := range t.scores {
			s.power[i] = nil
		}
	}
}

// value returns a quantity with its Monte-Carlo standard error, which allows for the
// correlation of rows of one study. NaN where no study says anything.
func (t *total) value(q quantity) (value, err float64) {
	var hits, of float64
	for _, s := range t.scores {
		hits, of = hits+s.sums[q].hits, of+s.sums[q].of
	}
	if of == 0 {
		return math.NaN(), math.NaN()
	}
	value = hits / of
	v := 0.0
	for _, s := range t.scores {
		d := s.sums[q].hits - value*s.sums[q].of
		v += d * d
	}
	return value, math.Sqrt(v) / of
}

// number is how many rows, cells or studies a quantity is over.
func (t *total) number(q quantity) (n float64) {
	for _, s := range t.scores {
		n += s.sums[q].of
	}
	return n
}
