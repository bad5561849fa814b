package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

func testLooks(a, b []int) *looks {
	return &looks{a: a, b: b, confidence: 0.95, trees: map[int][]float64{}, levels: map[int]float64{}}
}

// TestLooksBound plays pairs of studies that stop where their difference is
// largest, the worst that stopping can do: the bound must hold, and not by much
// more than it must.
func TestLooksBound(t *testing.T) {
	all := []int{3, 4, 6, 8, 12, 16}
	const draws = 40000
	for _, c := range []struct {
		a, b  []int
		ratio float64
		loose float64 // how many times the bound may be what was found
	}{
		{all, all, 1, 2}, {all, all, 9, 2}, {all, all, 1.0 / 64, 1.6}, {all, []int{5}, 1, 1.3}, {[]int{8}, []int{8}, 2, 1}, {[]int{3, 16}, all, 0.5, 1.4},
	} {
		l := testLooks(c.a, c.b)
		level := l.nominal(c.ratio)
		crit := distuv.UnitNormal.Quantile(1 - level/2)
		r := rand.New(rand.NewPCG(1, 2))
		sd := math.Sqrt(c.ratio)
		beyond := 0
		for range draws {
			x, y := means(r, c.a, 1), means(r, c.b, sd)
			worst := 0.0
			for i, n := range c.a {
				for j, m := range c.b {
					worst = max(worst, math.Abs(y[j]-x[i])/math.Sqrt(1/float64(n)+c.ratio/float64(m)))
				}
			}
			if worst > crit {
				beyond++
			}
		}
		got := float64(beyond) / draws
		t.Logf("looks %v and %v, variances 1 to %.3g: nominal %.4f (%.2f standard errors), all looks err in %.4f", c.a, c.b, c.ratio, level, crit, got)
		chance := 4 * math.Sqrt(0.05*0.95/draws)
		if got > 0.05+chance {
			t.Errorf("looks %v and %v, ratio %g: %.4f err, want at most 0.05", c.a, c.b, c.ratio, got)
		}
		if got*c.loose < 0.05-chance {
			t.Errorf("looks %v and %v, ratio %g: only %.4f err: the bound is needlessly strict", c.a, c.b, c.ratio, got)
		}
	}
}

// means are those of the first n values, for each n.
func means(r *rand.Rand, looks []int, sd float64) []float64 {
	var out []float64
	sum, n := 0.0, 0
	for _, k := range looks {
		for ; n < k; n++ {
			sum += sd * r.NormFloat64()
		}
		out = append(out, sum/float64(k))
	}
	return out
}

func TestLooks(t *testing.T) {
	all := []int{3, 4, 6, 8, 12, 16}
	one := testLooks([]int{8}, []int{8})
	if got := one.nominal(3); math.Abs(got-0.05) > 1e-12 {
		t.Errorf("two studies without looks: nominal %g, want 0.05", got)
	}
	if got := one.p(0.03, 3); got != 0.03 {
		t.Errorf("two studies without looks: p %g, want 0.03", got)
	}
	l, turned := testLooks(all, []int{3, 5}), testLooks([]int{3, 5}, all)
	for _, ratio := range []float64{1, 0.1, 7.3, math.NaN(), math.Inf(1), 0, 1e300} {
		other := 1 / ratio
		if math.IsNaN(ratio) {
			continue
		}
		if a, b := l.nominal(ratio), turned.nominal(other); math.Abs(a/b-1) > 1e-9 {
			t.Errorf("ratio %g: nominal %g, with A and B exchanged %g", ratio, a, b)
		}
	}
	_ = l.nominal(math.NaN())
	// p is under 0.05 exactly where the interval leaves out 1.
	l = testLooks(all, all)
	for _, ratio := range []float64{0.2, 1, 30} {
		level := l.nominal(ratio)
		if in, out := l.p(level*1.001, ratio), l.p(level*0.999, ratio); in < 0.05 || out > 0.05 {
			t.Errorf("ratio %g: p at the interval's edge goes from %g to %g, want around 0.05", ratio, out, in)
		}
		last := 0.0
		for _, p := range []float64{0, 1e-300, 1e-15, 1e-13, 1e-6, 0.001, 0.01, 0.2, 0.9, 1} {
			got := l.p(p, ratio)
			if got < p || got < last || got > 1 {
				t.Errorf("ratio %g: p(%g) = %g after %g: it must rise, and not be under the plain one", ratio, p, got, last)
			}
			last = got
		}
	}
	// The tail of two correlated normals, against a draw.
	r := rand.New(rand.NewPCG(3, 4))
	for _, rho := range []float64{0, 0.5, 0.9, 0.999} {
		n, draws, c := 0, 400000, 1.5
		for range draws {
			x := r.NormFloat64()
			y := rho*x + math.Sqrt(1-rho*rho)*r.NormFloat64()
			if math.Abs(y) > c && math.Abs(x) <= c {
				n++
			}
		}
		want := float64(n) / float64(draws)
		if rho == 0 {
			q := 2 * distuv.UnitNormal.Survival(c)
			want = q * (1 - q)
		}
		if got := alone(max(rho, 1e-9), c); math.Abs(got-want) > 4*math.Sqrt(want/float64(draws))+1e-6 {
			t.Errorf("correlation %g: %g, drawn %g", rho, got, want)
		}
	}
	if alone(1, 2) != 0 {
		t.Error("what is the same is never beyond by itself")
	}
}
