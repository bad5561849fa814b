package httpload

import (
	"errors"
	"fmt"
)

// uncorrect takes out of wrk's latencies what wrk puts in. For each latency L of
// more than two expected intervals, wrk adds values L-i, L-2i, ... as a generator would
// have seen that goes on sending (stats_correct in src/stats.c of wrk 4), with i the
// mean time of a request on a connection. That is a guess at an open loop; here
// the open loop is measured, and the closed one shows what the server took.
//
// wrk goes through the values upwards and counts for each only what was measured,
// so going down from the largest finds the same numbers again. pairs are value in microseconds
// and count, the values rising; interval is wrk's, in microseconds.
func uncorrect(pairs [][2]int64, interval int64) ([][2]int64, error) {
	if interval <= 0 {
		return nil, errors.New("the mean time of a request is not above zero")
	}
	at := make(map[int64]int, len(pairs))
	out := make([][2]int64, len(pairs))
	for i, p := range pairs {
		if p[0] < 0 || p[0] > maxLatency/1000 || p[1] <= 0 || i > 0 && p[0] <= pairs[i-1][0] {
			return nil, fmt.Errorf("latency %d us, counted %d times, cannot be there", p[0], p[1])
		}
		out[i], at[p[0]] = p, i
	}
	steps := 0
	for i := len(out) - 1; i >= 0; i-- {
		n, count := out[i][0], out[i][1]
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

// maxSteps bounds the work on an output that is not wrk's: 10 million added
// values are those of an hour that was almost all stall.
const maxSteps = 10e6
