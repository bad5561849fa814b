package inside

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestPace: requests that were not sent are the generator's fault only if its threads had no processor time left, and a late tail only if
// most of it is its own.
func TestPace(t *testing.T) {
	for name, c := range map[string]struct {
		p    Pace
		want string
	}{
		"kept":                      {Pace{Due: 1000, Unsent: 4, Busy: 0.9, Full: 0.5, Waits: 990, Wake: 1e-5, Latency: 1e-3}, ""},
		"the server is slow":        {Pace{Due: 1000, Unsent: 400, Busy: 0.1, Full: 0.5, Waits: 9, Wake: 1e-5, Latency: 1}, ""},
		"the generator is slow":     {Pace{Due: 1000, Unsent: 400, Busy: 0.6, Full: 0.5, Waits: 9, Wake: 1e-5, Latency: 1}, "400 of 1000 requests"},
		"it wakes up late":          {Pace{Due: 1000, Busy: 0.1, Full: 0.5, Waits: 900, Wake: 3e-3, Latency: 4e-3}, "woke up 3 ms late, and the latency is 4 ms"},
		"late, but seldom it waits": {Pace{Due: 1000, Busy: 0.1, Full: 0.5, Waits: 90, Wake: 3e-3, Latency: 4e-3}, ""},
		"nothing known":             {Pace{}, ""},
	} {
		if got := c.p.Late(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestBusy: a thread that computes is busy, and one that sleeps is not.
func TestBusy(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const span = 100 * time.Millisecond
	own := ThreadBusy()
	for end := time.Now().Add(span); time.Now().Before(end); {
		continue
	}
	if own := ThreadBusy() - own; own < span*8/10 || own > span*3/2 {
		t.Errorf("computed for %v: busy for %v", span, own)
	}
	own = ThreadBusy()
	time.Sleep(span)
	if own := ThreadBusy() - own; own > span/2 {
		t.Errorf("slept for %v: busy for %v", span, own)
	}
}

func TestReadSchedstat(t *testing.T) {
	for text, want := range map[string]time.Duration{"1480000 320000 12\n": 1800000, "": -1, "1": -1, "a 1 1": -1, "-1 5 5": -1} {
		if got, ok := readSchedstat([]byte(text)); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
}
