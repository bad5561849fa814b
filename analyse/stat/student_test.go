package stat

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// TestStudentQuantiles holds the quantiles to gonum's, and to the tail that they leave. With many
// degrees of freedom gonum's quantiles are good to few digits, or wrong, and its tails to eight.
func TestStudentQuantiles(t *testing.T) {
	for _, df := range []float64{0.5, 1, 1.3, 2, 2.2, 3, 3.7, 4.5, 5, 6, 8, 11.9, 15, 30, 80, 299, 1e4, 9e5} {
		want, within := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}, 1e-11
		if df >= 1e4 {
			within = 1e-7
		}
		for _, p := range []float64{1e-6, 0.01, 0.1, 0.49, 0.5, 0.501, 0.6, 0.75, 0.9, 0.95, 0.975, 0.99, 0.9975, 0.9995, 1 - 1e-5, 1 - 1e-7, 1 - 1e-9} {
			got := Student(df).Quantile(p)
			if x := want.Quantile(p); df < 1e4 && math.Abs(got-x) > 1e-8*math.Abs(x) {
				t.Errorf("df %g, p %g: %v, want %v", df, p, got, x)
			}
			if tail := want.Survival(got); math.Abs(tail-(1-p)) > within*(1-p) {
				t.Errorf("df %g, p %g: the tail is %v, want %v", df, p, tail, 1-p)
			}
		}
	}
	// Tables of the t distribution.
	for _, c := range []struct{ df, p, want float64 }{{1, 0.975, 12.706}, {2, 0.975, 4.303}, {5, 0.975, 2.571}, {10, 0.99, 2.764}, {30, 0.9995, 3.646}} {
		if got := Student(c.df).Quantile(c.p); math.Abs(got-c.want) > 5e-4 {
			t.Errorf("df %g, p %g: %v, want %v", c.df, c.p, got, c.want)
		}
	}
}

func BenchmarkStudentQuantile(b *testing.B) {
	for _, df := range []float64{2, 5.3, 17, 200} {
		for range b.N {
			_ = Student(df).Quantile(0.975)
		}
	}
}
