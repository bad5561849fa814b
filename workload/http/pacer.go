package httpload

import (
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// pacer says when each request is due: the n-th n intervals after the first. It
// sleeps with nanosleep(2) on its own thread without timer slack, because the runtime's timers
// may be late by a millisecond, and releases late requests at once. vegeta calls it from one
// goroutine.
type pacer struct {
	interval float64 // nanoseconds
	total    uint64  // requests
	until    time.Duration

	locked bool
	start  time.Time // when the first was due
	wake   *hdrhistogram.Histogram
}

// Pace implements vegeta.Pacer.
func (p *pacer) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	if !p.locked {
		// The thread ends with the goroutine, which stays locked to it.
		runtime.LockOSThread()
		// prctl(2): do not delay wake-ups to combine them.
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		p.locked, p.start = true, time.Now()
	}
	if hits >= p.total {
		return 0, true
	}
	due := p.due(hits)
	if wait := time.Until(due); wait > 0 {
		t := unix.NsecToTimespec(int64(wait))
		for unix.Nanosleep(&t, &t) == unix.EINTR {
			continue
		}
		note(p.wake, time.Since(due))
	} else if time.Since(p.start) > p.until {
		return 0, true // requests that are not sent by the end count as unsent
	}
	return 0, false
}

// Rate implements vegeta.Pacer.
func (p *pacer) Rate(time.Duration) float64 { return 1e9 / p.interval }

// due returns when the request with that number, from 0, should be sent.
func (p *pacer) due(n uint64) time.Time {
	return p.start.Add(time.Duration(float64(n) * p.interval))
}

// newHistogram returns a histogram with three significant digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatency, 3) }

func note(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(max(1, min(int64(d), maxLatency)))
}

func spreadOf(h *hdrhistogram.Histogram) spread {
	if h.TotalCount() == 0 {
		return spread{}
	}
	return spread{Mean: h.Mean() * 1e-9, P99: float64(h.ValueAtPercentile(99)) * 1e-9}
}
