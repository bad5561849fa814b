package steady

// ESS is the effective sample size of values with a fixed level: how many independent values
// would have the same variance of the mean. It is n / (1 + 2 times the sum of the
// autocorrelations), summed by the initial positive sequence: in pairs of neighbours, until a
// pair is not positive (C. J. Geyer, "Practical Markov chain Monte Carlo", Statistical
// Science 7, 1992). It is from 1 to len(v), even for alternating values, which are worth
// more. Without values it is 0.
func ESS(v []float64) float64 {
	n := len(v)
	m, total := mean(v), squares(v)
	if n < 4 || total == 0 {
		return float64(n)
	}
	sum := 0.0
	for k := 0; k+1 < min(n/3+1, mostLags); k += 2 {
		pair := correlation(v, m, total, k) + correlation(v, m, total, k+1)
		if pair <= 0 {
			break
		}
		sum += pair
	}
	tau := 2*sum - 1 // the correlation at lag 0 is 1 and counts once
	return min(max(float64(n)/max(tau, 1e-9), 1), float64(n))
}

// mostLags bounds the lags that are summed, because the sum of all takes quadratic time. ESS
// also sums at most a third of the lags, because longer ones have too few products.
const mostLags = 2000

// correlation returns the autocorrelation at lag k of values with mean m and sum of squared
// deviations total, which is not 0.
func correlation(v []float64, m, total float64, k int) float64 {
	s := 0.0
	for i := k; i < len(v); i++ {
		s += (v[i] - m) * (v[i-k] - m)
	}
	return s / total
}

// lag returns the autocorrelation at lag k; 0 for constant values.
func lag(v []float64, k int) float64 {
	total := squares(v)
	if total == 0 {
		return 0
	}
	return correlation(v, mean(v), total, k)
}
