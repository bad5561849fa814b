package steady

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// noise is a way in which a response scatters around a fixed level: mean 0,
// standard deviation 1 or thereabouts.
type noise struct {
	name string
	slow int // points that the slowest part of it takes to come round
	make func(r *rand.Rand, n int) []float64
}

func ar(rho float64, innovation func(*rand.Rand) float64) func(*rand.Rand, int) []float64 {
	return func(r *rand.Rand, n int) []float64 {
		out := make([]float64, n)
		x := r.NormFloat64()
		for i := range out {
			x = rho*x + math.Sqrt(1-rho*rho)*innovation(r)
			out[i] = x
		}
		return out
	}
}

func normal(r *rand.Rand) float64 { return r.NormFloat64() }

// student3 is Student's t with 3 degrees of freedom, scaled to variance 1.
func student3(r *rand.Rand) float64 {
	a, b, c := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
	return r.NormFloat64() / math.Sqrt((a*a+b*b+c*c)/3) / math.Sqrt(3)
}

func noises() []noise {
	out := []noise{}
	for _, rho := range []float64{0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95} {
		out = append(out, noise{fmt.Sprintf("AR(1), rho %g", rho), 0, ar(rho, normal)})
	}
	return append(out,
		noise{"AR(1), rho -0.5", 0, ar(-0.5, normal)},
		noise{"Student's t, 3 df", 0, ar(0, student3)},
		noise{"Student's t, 3 df, rho 0.7", 0, ar(0.7, student3)},
		noise{"5 % of points 10 sd low", 0, func(r *rand.Rand, n int) []float64 {
			out := ar(0, normal)(r, n)
			for i := range out {
				if r.Float64() < 0.05 {
					out[i] -= 10
				}
			}
			return out
		}},
		noise{"stalls of 3 points, 10 sd low", 0, func(r *rand.Rand, n int) []float64 {
			out := ar(0.3, normal)(r, n)
			for i := 0; i < n; i++ {
				if r.Float64() < 0.02 {
					for j := i; j < min(n, i+3); j++ {
						out[j] -= 10
					}
				}
			}
			return out
		}},
		noise{"a quota: 100 ms periods, read each 20 ms", 0, func(r *rand.Rand, n int) []float64 {
			out := ar(0, normal)(r, n)
			shift := r.IntN(5)
			for i := range out {
				out[i] *= 0.3
				if (i+shift)%5 < 2 {
					out[i] += 2
				}
			}
			return out
		}},
		noise{"a quota: 100 ms periods, read each 97 ms", 34, func(r *rand.Rand, n int) []float64 {
			out := ar(0, normal)(r, n)
			phase := r.Float64() * 2 * math.Pi
			for i := range out {
				out[i] = 0.3*out[i] + math.Sqrt2*math.Sin(phase+2*math.Pi*0.97*float64(i))
			}
			return out
		}})
}

// level turns noise into a response of mean 1000 and relative scatter, with a
// shape on top: a factor as a function of the place, 0 to 1.
func level(noise []float64, scatter float64, shape func(x float64) float64) ([]time.Duration, []float64) {
	n := len(noise)
	t, v := make([]time.Duration, n), make([]float64, n)
	for i := range t {
		t[i] = time.Duration(i+1) * 20 * time.Millisecond
		f := 1.0
		if shape != nil {
			f = shape((float64(i) + 0.5) / float64(n))
		}
		v[i] = 1000 * f * (1 + scatter*noise[i])
	}
	return t, v
}

type shares struct{ steady, not, short, late float64 }

// play judges many series. late: steady, but not from the start.
func play(sims, n int, seed uint64, make func(*rand.Rand, int) []float64, scatter float64, shape func(float64) float64, tolerance float64) shares {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	var s shares
	one := 100 / float64(sims)
	for range sims {
		at, x := level(make(r, n), scatter, shape)
		v := Look(at, x, tolerance)
		switch {
		case v.Steady && v.From > 0:
			s.late += one
			s.steady += one
		case v.Steady:
			s.steady += one
		case v.TooShort:
			s.short += one
		default:
			s.not += one
		}
	}
	return s
}

// A fixed level is seldom called unsteady, whatever scatters around it. Without
// a tolerance: nothing that is only small is passed over.
func TestSimulatedFalseAlarms(t *testing.T) {
	sims := simulations(t, 300)
	t.Logf("%-42s %5s: steady (not from the start) / no steady state / too short to tell, %%", "noise", "n")
	for i, x := range noises() {
		for _, n := range []int{16, 20, 30, 50, 100, 300, 1000} {
			s := play(sims, n, uint64(i), x.make, 0.05, nil, 0)
			t.Logf("%-42s %5d: %5.1f (%4.1f) / %4.1f / %5.1f", x.name, n, s.steady, s.late, s.not, s.short)
			// 5 %, and two standard errors of a share of so many simulations.
			if x.slow > n {
				continue // a beat longer than the window is a drift in it
			}
			if most := 5 + 2*100*math.Sqrt(0.05*0.95/float64(sims)); s.not > most {
				t.Errorf("%s, %d points: %.1f %% of steady series are said not to be", x.name, n, s.not)
			}
		}
	}
}

// Changes that anybody would see are seen; the table says which others are.
func TestSimulatedPower(t *testing.T) {
	sims := simulations(t, 100)
	shapes := []struct {
		name  string
		sees  float64 // per cent that are seen at least, in 50 and more points with 1 % of independent scatter
		shape func(float64) float64
	}{
		{"ramp of 10 % over the window", 60, func(x float64) float64 { return 1 + 0.1*x }},
		{"ramp of 30 %", 95, func(x float64) float64 { return 1 + 0.3*x }},
		{"warm-up: 30 % low, gone after a fifth", 95, func(x float64) float64 { return 1 - 0.3*max(0, 1-5*x) }},
		{"warm-up: 50 % low, decays with a tenth", 90, func(x float64) float64 { return 1 - 0.5*math.Exp(-10*x) }},
		{"step of 10 % after a quarter", 95, func(x float64) float64 { return 1 + 0.1*step(x, 0.25) }},
		{"step of 10 % after three quarters", 95, func(x float64) float64 { return 1 + 0.1*step(x, 0.75) }},
		{"step of 30 % after a half", 95, func(x float64) float64 { return 1 + 0.3*step(x, 0.5) }},
		{"step of 2 %, less than the tolerance", 0, func(x float64) float64 { return 1 + 0.02*step(x, 0.5) }},
	}
	for _, s := range shapes {
		for _, scatter := range []float64{0.01, 0.03} {
			for _, rho := range []float64{0, 0.5, 0.8} {
				for _, n := range []int{20, 50, 100, 300} {
					p := play(sims, n, 7, ar(rho, normal), scatter, s.shape, 0.03)
					t.Logf("%-40s scatter %.0f %%, rho %.1f, %3d points: left out %5.1f, no steady state %5.1f, steady all along %5.1f, too short to tell %5.1f %%",
						s.name, 100*scatter, rho, n, p.late, p.not, p.steady-p.late, p.short)
					seen := p.late + p.not
					if scatter == 0.01 && rho == 0 && n >= 50 && seen < s.sees {
						t.Errorf("%s: seen in %.0f %%, want %.0f", s.name, seen, s.sees)
					}
					if s.sees == 0 && rho == 0 && seen > 5 {
						t.Errorf("%s, scatter %g, rho %g, %d points: called a change in %.0f %%", s.name, scatter, rho, n, seen)
					}
				}
			}
		}
	}
}

func step(x, at float64) float64 {
	if x >= at {
		return 1
	}
	return 0
}

// The effective sample size is what theory says of AR(1): n (1-rho)/(1+rho).
func TestSimulatedESS(t *testing.T) {
	sims := simulations(t, 100)
	r := rand.New(rand.NewPCG(3, 5))
	for _, n := range []int{300, 2000} {
		for _, rho := range []float64{0, 0.3, 0.5, 0.7, 0.9, 0.95} {
			var all []float64
			for range sims {
				all = append(all, ESS(ar(rho, normal)(r, n)))
			}
			got, want := median(all), float64(n)*(1-rho)/(1+rho)
			t.Logf("AR(1), rho %g, %d points: effective sample size %.0f, theory %.0f", rho, n, got, want)
			// The mean is taken from the values too, which hides the slowest part: few
			// independent values are overestimated.
			allowed := 0.15
			if want < 50 {
				allowed = 0.7
			}
			if math.Abs(got/want-1) > allowed {
				t.Errorf("AR(1), rho %g, %d points: effective sample size %.1f, want %.1f", rho, n, got, want)
			}
		}
	}
}

// The mean of Whole is what a tool that counts over the window prints, and a
// planted change is found where it is.
func TestSimulatedPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 100 {
		n := 60 + r.IntN(200)
		at, v := level(ar(0.3, normal)(r, n), 0.005, func(x float64) float64 { return 1 - 0.4*(1-step(x, 0.3)) })
		got := Look(at, v, 0.03)
		want := 0.3 * float64(n) * 0.02
		if !got.Steady || math.Abs(got.From.Seconds()-want) > 0.05*float64(n)*0.02 {
			t.Errorf("%d points, a step at %.2f s: %+v", n, want, got)
		}
		if math.Abs(got.Level/1000-1) > 0.01 || math.Abs(got.Whole/880-1) > 0.01 {
			t.Errorf("level %.0f, want 1000; whole %.0f, want 880", got.Level, got.Whole)
		}
	}
}

// simulations is how many to play: TARE_SIMULATE, for the tables of
// docs/method/trial.md, or as many as a test may take.
func simulations(t *testing.T, usual int) int {
	if n, err := strconv.Atoi(os.Getenv("TARE_SIMULATE")); err == nil && n > 0 {
		return n
	}
	if testing.Short() {
		return usual / 3
	}
	return usual
}
