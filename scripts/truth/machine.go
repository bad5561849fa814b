package main

import (
	"math"
	"math/rand/v2"
)

// machine says how trials are disturbed. All of it is in natural logarithms.
type machine struct {
	name  string
	drift float64 // standard deviation of an AR(1) process over the trials in the order of execution, felt by all alike
	rho   float64 // its correlation from one trial to the next
	steps float64 // standard deviation of levels that hold for stepEvery trials on average; and one step of twice that
	heavy bool    // a cell's own noise is Student's t with three degrees of freedom, else normal
	loud  float64 // the scatter of one workload, as a multiple of the median of the others
	busy  bool    // cells scatter as much as in the shipped components, else as on a quiet machine
	tuned bool    // they scatter as on a host that is set up for measuring
	even  float64 // the scatter of every cell, instead of one that is drawn; 0: drawn
	turns *turns  // of studies with turns; nil: a trial has one value
}

// turns says how the trials of a study with turns scatter within a start, and what they take.
type turns struct {
	starts [5]float64 // seconds to start and settle, by cell; the first is the baseline
	turn   float64    // seconds
}

// typical is the most that the typical scatter of a trial may be.
func (m machine) typical() float64 {
	switch {
	case m.busy:
		return math.Inf(1)
	case m.tuned:
		return tuned
	}
	return quiet
}

const (
	driftSize = 0.05
	stepSize  = 0.10
	stepEvery = 40
)

// machines are those that are simulated: independent noise, drift, heavy tails, steps, one loud workload.
func machines() []machine {
	return []machine{
		{name: "iid"},
		{name: "AR 0.5", drift: driftSize, rho: 0.5},
		{name: "AR 0.8", drift: driftSize, rho: 0.8},
		{name: "AR 0.95", drift: driftSize, rho: 0.95},
		{name: "t3", heavy: true},
		{name: "steps", steps: stepSize},
		{name: "loud", loud: 10},
		{name: "even 2 %", even: 0.02},
		{name: "even 8 %", even: 0.08},
		{name: "busy", busy: true},
	}
}

// world is one life of a machine: everything that is random in a simulated study. What it
// draws for a cell depends on the seed, the cell and the block alone, not on the rule under
// which the study stops.
type world struct {
	m       machine
	truth   [][]float64 // ln of the true ratio, by stratum and treatment from 0; strata of a second response follow
	sd      [][]float64 // by stratum and cell, the baseline first
	tied    []float64   // correlation of the cells of a block, by stratum
	noisy   []bool      // by stratum: of the loud workload
	aa      bool
	apart   float64 // machine.between
	level   []float64
	inner   []float64      // by stratum: part of the variance of a trial of two turns that is of turns
	cells   [][]*rand.Rand // own noise, by stratum and cell
	blocks  []*rand.Rand   // what a block's cells share, by stratum
	inBlock []float64      // of the block under way, by stratum
	block   []int

	common []float64 // by place in the order of execution
	process
}

// process is the state of what all trials feel.
type process struct {
	r         *rand.Rand
	ar, level float64
	stepAt    int
}

// fork makes a source of random numbers of its own from a name of numbers.
func fork(seed uint64, name ...uint64) *rand.Rand {
	const odd = 0x9e3779b97f4a7c15
	h := seed
	for _, n := range name {
		h = (h ^ n) * odd
		h ^= h >> 29
	}
	return rand.New(rand.NewPCG(seed, h)) //nolint:gosec // repeatable on purpose
}

// newWorld draws a world for a study. In every second one all things are equal.
func newWorld(p *population, m machine, s shape, seed uint64, effects effects) *world {
	r := fork(seed, 1)
	w := &world{m: m, aa: effects.aa, apart: m.between(s.treatments() + 1)}
	for range s.names() {
		sd, tied := p.draw(r, s, m.typical())
		w.sd, w.tied = append(w.sd, sd...), append(w.tied, tied...)
		w.truth = append(w.truth, effects.draw(fork(seed, 2, uint64(len(w.truth))), s)...)
	}
	n := len(w.sd)
	w.noisy = make([]bool, n)
	w.disturb(r, s)
	w.level = make([]float64, n)
	for i := range n {
		w.level[i] = 2 * r.NormFloat64()
	}
	for range n {
		// As measured: ln of the variance of starts in that of a turn is -0.9 on average, and scatters by 1.
		w.inner = append(w.inner, 1/(1+2*math.Exp(-0.9+r.NormFloat64())))
	}
	w.begin(seed, s)
	return w
}

// begin starts a session: all noise is new.
func (w *world) begin(seed uint64, s shape) {
	n := len(w.sd)
	w.inBlock, w.block, w.cells, w.blocks = make([]float64, n), make([]int, n), nil, nil
	for i := range n {
		var of []*rand.Rand
		for k := range s.treatments() + 1 {
			of = append(of, fork(seed, 3, uint64(i), uint64(k)))
		}
		w.cells, w.blocks = append(w.cells, of), append(w.blocks, fork(seed, 4, uint64(i)))
	}
	w.r = fork(seed, 5)
	// The one step comes in the first eight passes, where most studies are.
	w.stepAt = w.r.IntN(8 * s.strata() * (s.treatments() + 1))
	w.ar, w.process.level = w.r.NormFloat64(), w.r.NormFloat64()
}

// disturb applies what the machine says about the cells' own scatter.
func (w *world) disturb(r *rand.Rand, s shape) {
	switch {
	case w.m.even > 0:
		for i := range w.sd {
			for k := range w.sd[i] {
				w.sd[i][k] = w.m.even
			}
			w.tied[i] = 0
		}
	case w.m.loud > 0 && s.workloads > 1:
		loud := r.IntN(s.workloads)
		var rest []float64
		for i, of := range w.sd {
			if w.noisy[i] = i%s.strata()/s.points == loud; !w.noisy[i] {
				rest = append(rest, of...)
			}
		}
		sd := w.m.loud * quantile(rest, 0.5)
		for i, of := range w.sd {
			for k := range of {
				if w.noisy[i] {
					of[k] = sd
				}
			}
		}
	}
}

// value is what a trial of a cell gives in a block at a place in the order of execution, both
// from 1.
func (w *world) value(stratum, cell, block, place int) float64 {
	for len(w.common) < place {
		w.common = append(w.common, w.next(w.m, len(w.common)))
	}
	if w.block[stratum] != block {
		w.block[stratum] = block
		w.inBlock[stratum] = w.blocks[stratum].NormFloat64()
	}
	return math.Exp(w.mean(stratum, cell, place) + w.sd[stratum][cell]*w.noise(stratum, cell))
}

// noise is that of a trial, of variance one.
func (w *world) noise(stratum, cell int) float64 {
	tied := w.tied[stratum]
	return math.Sqrt(tied)*w.inBlock[stratum] + math.Sqrt(1-tied)*w.own(w.cells[stratum][cell])
}

// mean is ln of what a cell gives at a place, without the noise of its own.
func (w *world) mean(stratum, cell, place int) float64 {
	y := w.level[stratum] + w.common[place-1]
	if cell > 0 {
		y += w.truth[stratum][cell-1]
	}
	return y
}

// values are those of the turns of a trial. With two turns, their mean scatters as value does.
func (w *world) values(stratum, cell, block, place, n int) []float64 {
	_ = w.value(stratum, cell, block, place) // goes on to this place and block
	inner, sd := w.inner[stratum], w.sd[stratum][cell]
	y := w.mean(stratum, cell, place) + sd*math.Sqrt(1-inner)*w.noise(stratum, cell)
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Exp(y + sd*math.Sqrt(2*inner)*w.own(w.cells[stratum][cell]))
	}
	return out
}

// next is what all trials feel at a place, counted from 0.
func (p *process) next(m machine, place int) float64 {
	y := 0.0
	if m.drift > 0 {
		if place > 0 {
			p.ar = m.rho*p.ar + math.Sqrt(1-m.rho*m.rho)*p.r.NormFloat64()
		}
		y += m.drift * p.ar
	}
	if m.steps > 0 {
		if p.r.IntN(stepEvery) == 0 {
			p.level = p.r.NormFloat64()
		}
		y += m.steps * p.level
		if place >= p.stepAt {
			y += 2 * m.steps
		}
	}
	return y
}

// own is a cell's noise, of variance one.
func (w *world) own(r *rand.Rand) float64 {
	if !w.m.heavy {
		return r.NormFloat64()
	}
	// Student's t is a normal over the root of a mean square, and has variance 3 here.
	var chi float64
	for range 3 {
		x := r.NormFloat64()
		chi += x * x
	}
	return r.NormFloat64() / math.Sqrt(chi)
}

// between is the variance that the machine's process adds to a ratio within a block of so many
// cells in random order.
func (m machine) between(cells int) float64 {
	v := 0.0
	// Two cells of a block of c are k trials apart in 2(c-k) of c(c-1) orders.
	c := float64(cells)
	for k := 1; k < cells; k++ {
		p := 2 * (c - float64(k)) / (c * (c - 1))
		v += p * 2 * m.drift * m.drift * (1 - math.Pow(m.rho, float64(k)))
		v += p * 2 * m.steps * m.steps * (1 - math.Pow(1-1.0/stepEvery, float64(k)))
	}
	return v
}

// pair is the true standard deviation of the ratio of a treatment to the baseline in a block,
// which only the simulation knows.
func (w *world) pair(stratum, treatment int) float64 {
	a, b := w.sd[stratum][0], w.sd[stratum][treatment+1]
	return math.Sqrt(a*a + b*b - 2*w.tied[stratum]*a*b + w.apart)
}

// meanVariance is the variance, in one block, of the mean over treatments of ln ratio to their
// common baseline.
func (w *world) meanVariance(stratum int, treatments []int) float64 {
	// Weights of the cells' noise: 1/m for each treatment, -1 for the baseline.
	sd, m := w.sd[stratum], float64(len(treatments))
	squares, sum := sd[0]*sd[0], -sd[0]
	for _, k := range treatments {
		squares += sd[k+1] * sd[k+1] / (m * m)
		sum += sd[k+1] / m
	}
	return (1-w.tied[stratum])*squares + w.tied[stratum]*sum*sum + w.apart
}

// effects says how the truth of a study is drawn.
type effects struct {
	aa   bool    // all things are equal
	form *form   // treatments are levels of a factor; nil: mixed
	only float64 // each treatment is slower by this; 0: mixed
}

// draw gives ln of the true ratio by stratum and treatment. Of mixed effects half are 0, a
// tenth each 5 and 10 %, the rest from 0 to 30 %. Most of one treatment go the same way, as
// those of a sandbox do.
func (e effects) draw(r *rand.Rand, s shape) [][]float64 {
	sign := make([]float64, s.treatments())
	for k := range sign {
		sign[k] = 1 - 2*float64(r.IntN(2))
	}
	out := make([][]float64, s.strata())
	for i := range out {
		out[i] = make([]float64, s.treatments())
		if e.form != nil {
			e.form.ratios(r, out[i])
			continue
		}
		for k := range out[i] {
			if e.aa {
				continue
			}
			if e.only != 0 {
				out[i][k] = math.Log1p(e.only)
				continue
			}
			size := 0.0
			switch u := r.Float64(); {
			case u < 0.5:
			case u < 0.6:
				size = 0.05
			case u < 0.7:
				size = 0.10
			default:
				size = 0.30 * r.Float64()
			}
			out[i][k] = sign[k] * math.Log1p(size)
			if r.IntN(10) == 0 {
				out[i][k] = -out[i][k]
			}
		}
	}
	return out
}
