package plan

import (
	"math"
	"math/rand/v2"
)

// scenery is a machine that misbehaves in a known way, and what is measured on
// it. All of it is in natural logarithms, so that 0.05 is about 5 %.
//
// What the machine does hangs on the place of a trial in the order of execution
// (Next.Seq), not on its block: a block gets no favours.
type scenery struct {
	name string

	rho, drift float64 // AR(1) over the trials, and its standard deviation
	shifts     float64 // standard deviation of levels that change every 40 trials or so
	step       float64 // one step of this size, somewhere in the first eight passes
	ramp       float64 // excess at the start, that dies away over 40 trials
	spikes     float64 // probability that a trial takes 1.5 to 3 times as long
	tail       func(*rand.Rand) float64

	noise  float64 // standard deviation within a cell
	spread float64 // of ln noise among strata
	feels  float64 // how much more of the drift the treatments feel: 0 as much as the baseline
	slips  float64 // probability that a treatment's trial takes 1.5 times as long; the baseline's never
	unlike float64 // noise of the first stratum, as a multiple; then only that is counted
	strata int
	treats int    // beside the baseline
	extra  int    // places beyond those of 16 passes: for sentinels and what runs again
	breaks string // why the promises do not hold here; "" where they must
}

// machine is one life of a scenery: what each trial in a row would meet.
type machine struct {
	sc     *scenery
	common []float64 // by place in the order: felt by whatever runs then
	own    []float64 // by place: noise in units of the cell's own
	slip   []bool    // by place
	level  []float64 // by stratum and treatment
	sd     []float64 // by stratum
	effect [][]float64
}

func normal(r *rand.Rand) float64 { return r.NormFloat64() }

// student3 is Student's t with three degrees of freedom, of variance one. Its
// fourth moment is infinite: variances of samples of it never settle.
func student3(r *rand.Rand) float64 {
	chi := 0.0
	for range 3 {
		z := r.NormFloat64()
		chi += z * z
	}
	return r.NormFloat64() / math.Sqrt(chi)
}

// mixture is a normal with one trial of ten late by a log-normal excess, five
// standard deviations in the median: a page cache that missed, a neighbour.
func mixture(r *rand.Rand) float64 {
	z := r.NormFloat64()
	if r.Float64() < 0.1 {
		z += 5 * math.Exp(0.7*r.NormFloat64())
	}
	return z
}

// start draws a machine for a study of the scenery with these true effects, by
// stratum and treatment.
func (sc *scenery) start(r *rand.Rand, effect [][]float64) *machine {
	cells := sc.strata * (sc.treats + 1)
	n := cells*16 + sc.extra
	m := &machine{sc: sc, effect: effect, common: make([]float64, n), own: make([]float64, n), slip: make([]bool, n)}
	stepAt := r.IntN(cells * 8)
	x, level := sc.drift*r.NormFloat64(), sc.shifts*r.NormFloat64()
	tail := sc.tail
	if tail == nil {
		tail = normal
	}
	for i := range n {
		if i > 0 {
			x = sc.rho*x + sc.drift*math.Sqrt(1-sc.rho*sc.rho)*r.NormFloat64()
		}
		if r.Float64() < 1.0/40 {
			level = sc.shifts * r.NormFloat64()
		}
		m.common[i] = x + level + sc.ramp*math.Exp(-float64(i)/40)
		if i >= stepAt {
			m.common[i] += sc.step
		}
		if r.Float64() < sc.spikes {
			m.common[i] += math.Log(1.5 + 1.5*r.Float64())
		}
		m.own[i] = tail(r)
		m.slip[i] = r.Float64() < sc.slips
	}
	for i := range sc.strata {
		sd := sc.noise * math.Exp(sc.spread*r.NormFloat64())
		if i == 0 && sc.unlike > 0 {
			sd = sc.noise * sc.unlike
		}
		m.sd = append(m.sd, sd)
		m.level = append(m.level, r.NormFloat64())
	}
	return m
}

// value is what a trial of a stratum's treatment (0 is the baseline) gives at a
// place in the order of execution, from 0.
func (m *machine) value(stratum, treatment, place int) float64 {
	y := m.level[stratum] + m.sd[stratum]*m.own[place] + m.common[place]
	if treatment > 0 {
		y += m.effect[stratum][treatment-1] + m.sc.feels*m.common[place]
		if m.slip[place] {
			y += math.Log(1.5)
		}
	}
	return math.Exp(y)
}

// truth is the logarithm of the ratio of geometric means that a treatment has in
// the long run.
func (m *machine) truth(stratum, treatment int) float64 {
	return m.effect[stratum][treatment-1] + m.sc.slips*math.Log(1.5)
}

// sceneries are the machines that the default rule must hold on, and after them
// those that it is known not to, with the reason.
func sceneries() []scenery {
	base := scenery{noise: 0.02, spread: 0.5, strata: 6, treats: 4}
	with := func(name string, f func(*scenery)) scenery {
		s := base
		s.name = name
		f(&s)
		return s
	}
	pair := func(s *scenery) { s.strata, s.treats = 1, 1 }
	return []scenery{
		with("steady", func(*scenery) {}),
		with("drift, rho 0", func(s *scenery) { s.rho, s.drift = 0, 0.05 }),
		with("drift, rho 0.5", func(s *scenery) { s.rho, s.drift = 0.5, 0.05 }),
		with("drift, rho 0.8", func(s *scenery) { s.rho, s.drift = 0.8, 0.05 }),
		with("drift, rho 0.95", func(s *scenery) { s.rho, s.drift = 0.95, 0.05 }),
		with("level shifts of 10 %", func(s *scenery) { s.shifts = 0.1 }),
		with("one step of 20 %", func(s *scenery) { s.step = 0.18 }),
		with("warm-up ramp from 15 %", func(s *scenery) { s.ramp = 0.14 }),
		with("noise of Student's t, 3 df", func(s *scenery) { s.tail = student3 }),
		with("noise with log-normal lateness", func(s *scenery) { s.tail = mixture }),
		with("3 % of trials 1.5 to 3 times as long", func(s *scenery) { s.spikes = 0.03 }),
		with("all of these together", func(s *scenery) {
			s.rho, s.drift, s.shifts, s.step, s.ramp, s.spikes, s.tail = 0.8, 0.05, 0.05, 0.1, 0.1, 0.01, student3
		}),
		with("12 strata of one treatment, rho 0.95", func(s *scenery) { s.strata, s.treats, s.rho, s.drift = 12, 1, 0.95, 0.05 }),
		with("one comparison alone, rho 0.95", func(s *scenery) { pair(s); s.rho, s.drift = 0.95, 0.05 }),
		with("one comparison alone, t with 3 df", func(s *scenery) { pair(s); s.tail = student3 }),

		with("drift, rho 0.95, of which treatments feel 1.5 times as much; 6 strata", func(s *scenery) {
			s.rho, s.drift, s.feels, s.breaks = 0.95, 0.05, 0.5, "pairs do not cancel what only one side feels"
		}),
		with("the same, one comparison alone", func(s *scenery) {
			pair(s)
			s.rho, s.drift, s.feels, s.breaks = 0.95, 0.05, 0.5, "pairs do not cancel what only one side feels"
		}),
		with("warm-up ramp from 15 %, of which treatments feel 1.5 times as much; one comparison alone", func(s *scenery) {
			pair(s)
			s.ramp, s.feels, s.breaks = 0.14, 0.5, "a ramp that only one side feels is an effect while it lasts"
		}),
		with("10 % of a treatment's trials 1.5 times as long, never the baseline's", func(s *scenery) {
			s.slips, s.breaks = 0.1, "a rare slowness is not in the first blocks"
		}),
		with("one stratum with 10 times the scatter of the others: that one", func(s *scenery) {
			s.unlike, s.spread, s.breaks = 10, 0, "its variance is drawn towards the others'"
		}),
	}
}
