package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// scenery is a machine of known truth, as in the tests of package plan: what it
// does hangs on the place of a trial in the order of execution. Here the same
// study runs twice, on two lives of it. All of it is in natural logarithms.
type scenery struct {
	name       string
	rho, drift float64 // AR(1) over the trials, and its standard deviation
	ramp       float64 // excess at the start, that dies away over 40 trials
	step       float64 // somewhere in the first eight passes
	spikes     float64 // probability that a trial takes 1.5 to 3 times as long
	heavy      bool    // Student's t with 3 degrees of freedom for the noise

	noise  float64 // standard deviation within a cell
	spread float64 // of ln noise among strata
	second float64 // B's noise by A's
	host   float64 // how much longer everything takes in B
	day    float64 // a session's own effect on the cost of each treatment of each stratum
	common float64 // share of its variance that all strata have in common
	noisy  float64 // factor on the noise of the first stratum; 0: 1
	strata int
	treats int
	fixed  [2]int // blocks of A and B; 0: adaptive
	breaks bool   // the promises for levels do not hold
}

func sceneries() []scenery {
	base := scenery{noise: 0.02, spread: 0.5, second: 1, strata: 6, treats: 4}
	with := func(name string, f func(*scenery)) scenery {
		s := base
		s.name = name
		f(&s)
		return s
	}
	// Scatter of a ratio from 3 to 31 %, as in real results: ln of its variance
	// varies by 3.7 around that of 9.6 %. A ratio has the noise of two trials.
	real := func(strata, treats int) func(*scenery) {
		return func(s *scenery) {
			s.noise, s.spread, s.strata, s.treats = 0.096/math.Sqrt2, math.Sqrt(3.7)/2, strata, treats
		}
	}
	return []scenery{
		with("scatter of 3 to 31 %, 1 x 1", real(1, 1)),
		with("scatter of 3 to 31 %, 10 x 1", real(10, 1)),
		with("scatter of 3 to 31 %, 25 x 4", real(25, 4)),
		with("scatter of 3 to 31 %, 25 x 4, `fixed: 8` twice", func(s *scenery) { real(25, 4)(s); s.fixed = [2]int{8, 8} }),
		with("scatter of 3 %, one workload ten times as noisy", func(s *scenery) { s.noise, s.spread, s.noisy, s.strata = 0.03/math.Sqrt2, 0, 10, 10 }),
		with("steady", func(*scenery) {}),
		with("steady, `fixed: 6` twice", func(s *scenery) { s.fixed = [2]int{6, 6} }),
		with("steady, `fixed: 5` and looks", func(s *scenery) { s.fixed = [2]int{5, 0} }),
		with("steady, B scatters 3 times as much", func(s *scenery) { s.second = 3 }),
		with("drift, rho 0.8", func(s *scenery) { s.rho, s.drift = 0.8, 0.05 }),
		with("drift, rho 0.95", func(s *scenery) { s.rho, s.drift, s.breaks = 0.95, 0.05, true }),
		with("one step of 20 %, warm-up ramp from 15 %", func(s *scenery) { s.step, s.ramp, s.breaks = 0.18, 0.14, true }),
		with("noise of Student's t, 3 df", func(s *scenery) { s.heavy = true }),
		with("3 % of trials 1.5 to 3 times as long", func(s *scenery) { s.spikes = 0.03 }),
		with("host B 1.3 times as slow", func(s *scenery) { s.host, s.breaks = math.Log(1.3), true }),
		with("12 strata of one treatment, rho 0.95", func(s *scenery) {
			s.strata, s.treats, s.rho, s.drift, s.breaks = 12, 1, 0.95, 0.05, true
		}),
		with("one comparison alone", func(s *scenery) { s.strata, s.treats = 1, 1 }),
		with("one comparison alone, rho 0.95", func(s *scenery) {
			s.strata, s.treats, s.rho, s.drift, s.breaks = 1, 1, 0.95, 0.05, true
		}),
	}
}

// truth is what a study measures, apart from noise: the baseline is treatment 0.
type truth struct {
	level  [][]float64 // by stratum and treatment
	sd     []float64   // by stratum
	change [][]float64 // of the level, in B
}

func (sc *scenery) truth(r *rand.Rand, same bool) *truth {
	effects := []float64{1, 1, 1.02, 1.05, 1.1, 1.3, 2, 5, 1 / 1.1}
	changes := []float64{1.05, 1.1, 1.3, 1 / 1.1}
	tr := &truth{}
	for i := range sc.strata {
		base := r.NormFloat64()
		level, change := []float64{base}, []float64{0}
		for k := range sc.treats {
			level = append(level, base+math.Log(effects[r.IntN(len(effects))]))
			d := 0.0
			if !same && (i+k)%2 == 0 {
				d = math.Log(changes[r.IntN(len(changes))])
			}
			change = append(change, d)
		}
		tr.level, tr.change = append(tr.level, level), append(tr.change, change)
		sd := sc.noise * math.Exp(sc.spread*r.NormFloat64())
		if i == 0 && sc.noisy > 0 {
			sd *= sc.noisy
		}
		tr.sd = append(tr.sd, sd)
	}
	return tr
}

// measure runs a study to its end on a new life of the machine: in each pass a
// block of every stratum that is not finished, in random order. A stratum without a
// fixed number of blocks ends at the look where every interval is at most
// max(width, a quarter of the effect) to either side: it asks how precise a ratio
// is, never which.
func (sc *scenery) measure(r *rand.Rand, tr *truth, st *study.Study, isB bool) []record.Trial {
	cells := sc.strata * (sc.treats + 1)
	stepAt := r.IntN(cells * 8)
	x := sc.drift * r.NormFloat64()
	common := func(i int) float64 {
		if i > 0 {
			x = sc.rho*x + sc.drift*math.Sqrt(1-sc.rho*sc.rho)*r.NormFloat64()
		}
		v := x + sc.ramp*math.Exp(-float64(i)/40)
		if i >= stepAt {
			v += sc.step
		}
		if r.Float64() < sc.spikes {
			v += math.Log(1.5 + 1.5*r.Float64())
		}
		return v
	}
	var out []record.Trial
	pairs := make([][][]stat.Pair, sc.strata) // by stratum and treatment
	left := r.Perm(sc.strata)
	day := sc.dayEffects(r)
	for block := 1; len(left) > 0; block++ {
		for _, i := range left {
			cells := st.Strata[i].Cells
			values := make([]float64, len(cells))
			for _, k := range r.Perm(len(cells)) {
				noise := r.NormFloat64()
				if sc.heavy {
					noise /= math.Sqrt((sq(r.NormFloat64()) + sq(r.NormFloat64()) + sq(r.NormFloat64())))
				}
				y := tr.level[i][k] + common(len(out)) + day[i][k]
				if isB {
					y += tr.change[i][k] + sc.host + sc.second*tr.sd[i]*noise
				} else {
					y += tr.sd[i] * noise
				}
				values[k] = math.Exp(y)
				out = append(out, record.Trial{Seq: len(out) + 1, Block: block, Attempt: 1, Cell: cells[k], Status: record.OK,
					Samples: []record.Sample{{Name: "time", Unit: record.Second, Value: values[k]}}})
			}
			if pairs[i] == nil {
				pairs[i] = make([][]stat.Pair, len(cells))
			}
			for k := range cells[1:] {
				pairs[i][k] = append(pairs[i][k], stat.Pair{Base: values[0], Other: values[k+1]})
			}
		}
		left = slices.DeleteFunc(r.Perm(sc.strata), func(i int) bool { return !slices.Contains(left, i) || precise(&st.Stop, block, pairs[i]) })
	}
	return out
}

// precise reports whether a stratum needs no more blocks.
func precise(stop *study.Stop, block int, pairs [][]stat.Pair) bool {
	switch {
	case stop.Fixed > 0:
		return block >= stop.Fixed
	case block >= slices.Max(stop.Looks):
		return true
	case !slices.Contains(stop.Looks, block):
		return false
	}
	return !slices.ContainsFunc(pairs, func(p []stat.Pair) bool {
		e := stat.Compare(p, stop.Confidence)
		return len(p) > 0 && !(e.HalfWidth() <= math.Max(stop.Width, 0.25*math.Abs(math.Log(e.Ratio))))
	})
}

// dayEffects are what one session does to each treatment by itself, beside what it
// does to all alike.
func (sc *scenery) dayEffects(r *rand.Rand) [][]float64 {
	common := make([]float64, sc.treats+1)
	for k := range sc.treats {
		common[k+1] = sc.day * math.Sqrt(sc.common) * r.NormFloat64()
	}
	out := make([][]float64, sc.strata)
	for i := range out {
		out[i] = make([]float64, sc.treats+1)
		for k := range sc.treats {
			out[i][k+1] = common[k+1] + sc.day*math.Sqrt(1-sc.common)*r.NormFloat64()
		}
	}
	return out
}

func sq(x float64) float64 { return x * x }

// makeStudy has strata workloads and treats sandboxes beside the baseline.
func makeStudy(strata, treats int) *study.Study {
	st := &study.Study{Name: "test", Seed: 7, Compare: "sandbox", Baseline: "process",
		Stop: study.Stop{Looks: []int{3, 4, 6, 8, 12, 16}, Confidence: 0.95, Width: 0.05, Margin: 0.03}}
	boxes := []string{"process"}
	for k := range treats {
		boxes = append(boxes, fmt.Sprintf("box%d", k+1))
	}
	var labels []string
	for i := range strata {
		w := fmt.Sprintf("w%d", i+1)
		labels = append(labels, w)
		l := record.Level{Factor: "workload", Value: w}
		s := study.Stratum{Key: record.Cell{l}.Key(), Shared: record.Cell{l}, Workload: i}
		for _, b := range boxes {
			s.Cells = append(s.Cells, record.Cell{l, {Factor: "sandbox", Value: b}})
		}
		st.Strata = append(st.Strata, s)
		st.Workloads = append(st.Workloads, study.Workload{Label: w, Kind: "fake", Responses: []string{"time"}})
	}
	st.Factors = []study.Factor{{Name: "workload", Levels: labels}, {Name: "sandbox", Levels: boxes}}
	return st
}

func describe(study.Workload) []record.Response {
	return []record.Response{{Name: "time", Unit: record.Second, Better: record.Lower}}
}
