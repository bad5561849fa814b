package fio

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"tare/param"
	"tare/record"
)

// fio's Poisson process has whole requests a second and whole microseconds: a pause is a whole mean times a random number, without
// what is left of a microsecond (usec_for_io in its backend.c). So the mean pause is shorter by half a microsecond, and
// rate_iops=64000 sends about 69,000. Tare gives fio the number whose real rate is nearest.

const (
	microseconds = 1e6 // in a second
	// mostOff is by what share fio's nearest rate may differ from the asked one: half of the usual distance of loads.
	mostOff = 0.05
	// scatter is how many standard deviations of the random number of due requests a load may lack before they count as not sent.
	scatter = 3
)

// paced returns fio's rate_iops, of each direction of each job, and how many requests a second are then due, all together.
func paced(v param.Values) (each int, all float64) {
	rate, flows := v.Float("rate"), float64(v.Int("jobs")*len(directions(v.Str("rw"))))
	if rate == 0 {
		return 0, 0
	}
	first := max(1, int(microseconds/math.Round(microseconds*flows/rate+0.5)))
	for _, n := range []int{first, first + 1} {
		made := flows * microseconds * math.Expm1(1/math.Floor(microseconds/float64(n)))
		if each == 0 || math.Abs(made-rate) < math.Abs(all-rate) {
			each, all = n, made
		}
	}
	return each, all
}

// pacing is what fio needs to send requests at a rate.
func pacing(v param.Values) ([]string, error) {
	each, all := paced(v)
	switch rate := v.Float("rate"); {
	case rate == 0:
		return nil, nil
	case math.Abs(all-rate) > mostOff*rate:
		return nil, &param.ValueError{Param: "rate", Err: fmt.Errorf("rate = %s over jobs = %s is not possible: fio has whole requests per second and microseconds for each job and direction, and the nearest rate is %.0f; write that, or other jobs", v.Str("rate"), v.Str("jobs"), all)}
	}
	return []string{"--rate_iops=" + strconv.Itoa(each), "--rate_process=poisson"}, nil
}

// offered adds how much of the load was sent. fio does not say how many requests were due: their number scatters by its root.
func offered(rd *record.Reading, rate float64, sent int64, ran time.Duration, flight int) {
	due := math.Round(rate * ran.Seconds())
	unsent := due - float64(sent)
	if unsent <= scatter*math.Sqrt(due) {
		unsent = 0
	}
	rd.Value(record.SampleDue, record.Count, due)
	rd.Value(record.SampleUnsent, record.Count, unsent)
	if unsent > 0 {
		rd.Warn("fio-overload", "the rate of %.4g/s was not reached: %.0f of %.0f requests were not sent by the end, with at most %d in flight (jobs x iodepth); fio's latency begins when a request is sent, so it lacks the wait before that",
			rate, unsent, due, flight)
	}
}
