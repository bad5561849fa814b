package held

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Meter adds up the CPU time of stretches of code on their thread, by
// CLOCK_THREAD_CPUTIME_ID of clock_gettime(2). getrusage(RUSAGE_THREAD) would
// do too, but counts in ticks on kernels without precise accounting.
type Meter struct {
	start time.Duration
	total time.Duration
}

// Start begins a stretch. The goroutine stays on its thread until Stop, or the
// clock would be another thread's.
func (m *Meter) Start() {
	runtime.LockOSThread()
	m.start = clock(unix.CLOCK_THREAD_CPUTIME_ID)
}

// Stop ends the stretch.
func (m *Meter) Stop() {
	if d := clock(unix.CLOCK_THREAD_CPUTIME_ID) - m.start; d > 0 {
		m.total += d
	}
	runtime.UnlockOSThread()
}

// Seconds is the CPU time of all ended stretches.
func (m *Meter) Seconds() float64 { return m.total.Seconds() }
