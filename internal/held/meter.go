package held

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Meter adds up the CPU time of sections of code, by CLOCK_THREAD_CPUTIME_ID of
// clock_gettime(2). getrusage(RUSAGE_THREAD) was rejected: it counts in ticks on kernels
// without precise accounting.
type Meter struct {
	start time.Duration
	total time.Duration
}

// Start begins a section. It locks the goroutine to its thread until Stop, because the clock
// is the thread's.
func (m *Meter) Start() {
	runtime.LockOSThread()
	m.start = clock(unix.CLOCK_THREAD_CPUTIME_ID)
}

// Stop ends the section.
func (m *Meter) Stop() {
	if d := clock(unix.CLOCK_THREAD_CPUTIME_ID) - m.start; d > 0 {
		m.total += d
	}
	runtime.UnlockOSThread()
}

// Seconds returns the CPU time of all ended sections.
func (m *Meter) Seconds() float64 { return m.total.Seconds() }
