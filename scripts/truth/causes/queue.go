package causes

import "math"

// station is a place where an operation spends time: seconds of service, and how many
// are served at once; 0 is a delay, where nobody waits.
type station struct {
	demand  float64
	servers int
}

// closed solves a closed network of n operations by mean value analysis (Reiser and
// Lavenberg, 1980), where the service that is under way on arrival has the residual of a
// squared coefficient of variation c2; a station of several servers is one fast server
// and a delay (Seidmann, 1987). It returns operations a second, and the mean seconds of
// one.
func closed(n int, all []station, c2 float64) (rate, time float64) {
	var delay float64
	var demand []float64
	for _, s := range all {
		if s.demand <= 0 {
			continue
		}
		if s.servers == 0 {
			delay += s.demand
			continue
		}
		m := float64(s.servers)
		delay += s.demand * (m - 1) / m
		demand = append(demand, s.demand/m)
	}
	queue, here := make([]float64, len(demand)), make([]float64, len(demand))
	for k := 1; k <= n; k++ {
		time = delay
		for i, d := range demand {
			here[i] = d * (1 + queue[i] - min(queue[i], rate*d)*(1-c2)/2)
			time += here[i]
		}
		rate = float64(k) / time
		for _, d := range demand {
			if rate*d > 1 { // the correction is an approximation: no server is over full
				rate = 1 / d
				time = float64(k) / rate
			}
		}
		for i := range demand {
			queue[i] = rate * here[i]
		}
	}
	return rate, time
}

// limited solves a network in which at most slots operations are past the door at once:
// the inner network as one station whose speed depends on how many are inside, and the
// outer delay, as a birth-and-death chain.
func limited(n, slots int, inner []station, outer, c2 float64) (rate, time float64) {
	speed := make([]float64, n+1)
	for k := 1; k <= n; k++ {
		speed[k], _ = closed(min(k, slots), inner, c2)
	}
	p, sum, served := 1.0, 1.0, 0.0
	for k := 1; k <= n; k++ {
		p *= float64(n-k+1) / outer / speed[k]
		sum += p
		served += p * speed[k]
	}
	rate = served / sum
	return rate, float64(n) / rate
}

// search finds x in lo to hi, by logarithms, at which a falling f is want; false where
// it is not within them.
func search(lo, hi, want float64, f func(float64) float64) (float64, bool) {
	if f(lo) < want || f(hi) > want {
		return 0, false
	}
	for range 50 {
		mid := math.Sqrt(lo * hi)
		if f(mid) > want {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Sqrt(lo * hi), true
}
