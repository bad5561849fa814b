package httpload

import (
	"errors"
	"fmt"
	"slices"
)

// uncorrect removes the values that wrk adds to its latencies. For each latency L of more than
// two expected intervals, wrk adds values L-i, L-2i, ... that a generator at a constant rate
// would have seen (stats_correct in src/stats.c of wrk 4), with i the mean time of a request on
// a connection. That estimates an open loop; here the open loop is measured, and the closed one
// shows the server's time.
//
// wrk goes through the values upwards and adds only for measured ones, so going down from the
// largest finds the same numbers. pairs are values in microseconds, rising, and their counts;
// interval is wrk's, in microseconds.
func uncorrect(pairs [][2]int64, interval int64) ([][2]int64, error) {
	if interval <= 0 {
		return nil, errors.New("the mean time of a request is not above zero")
	}
	at := make(map[int64]int, len(pairs))
	out := make([][2]int64, len(pairs))
	for i, p := range pairs {
		if p[0] < 0 || p[0] > maxLatency/1000 || p[1] <= 0 || i > 0 && p[0] <= pairs[i-1][0] {
			return nil, fmt.Errorf("the latency %d us with a count of %d is out of range or out of order", p[0], p[1])
		}
		out[i], at[p[0]] = p, i
	}
	steps := 0
	for _, o := range slices.Backward(out) {
		n, count := o[0], o[1]
		if count == 0 || n < 2*interval {
			continue
		}
		for m := n - interval; m > interval; m -= interval {
			j, ok := at[m]
			if !ok || out[j][1] < count {
				return nil, fmt.Errorf("latency %d us lacks what wrk adds for %d us", m, n)
			}
			out[j][1] -= count
			if steps++; steps > maxSteps {
				return nil, errors.New("there are more values than a run of wrk can have")
			}
		}
	}
	kept := out[:0]
	for _, p := range out {
		if p[1] > 0 {
			kept = append(kept, p)
		}
	}
	return kept, nil
}

// maxSteps bounds the work on invalid output: only an hour with almost nothing but stalls has 10
// million added values.
const maxSteps = 10e6
