package pod

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPhases: each step has the time until its event, that of start until the agent's first instruction, and their sum is the
// time until the agent came, whatever was not heard or heard late.
func TestPhases(t *testing.T) {
	begun := time.Now()
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	for name, c := range map[string]struct {
		seen map[string]time.Time
		want map[string]int // ms
	}{
		"cold":    {map[string]time.Time{eventScheduled: at(20), eventPulling: at(500), eventPulled: at(900), eventCreated: at(920), eventStarted: at(1080)}, map[string]int{"admit": 10, "schedule": 10, "sandbox": 480, "pull": 400, "create": 20, "start": 80, "agent": 100}},
		"warm":    {map[string]time.Time{eventScheduled: at(20), eventPulled: at(500), eventCreated: at(520), eventStarted: at(1100)}, map[string]int{"admit": 10, "schedule": 10, "sandbox": 480, "create": 20, "start": 480, "agent": 100}},
		"copied":  {map[string]time.Time{eventScheduled: at(20), eventCopy + eventPulled: at(400), eventPulled: at(500), eventCreated: at(520), eventStarted: at(600)}, map[string]int{"admit": 10, "schedule": 10, "sandbox": 380, "copy": 100, "create": 20, "start": 480, "agent": 100}},
		"late":    {map[string]time.Time{eventScheduled: at(5), eventPulled: at(950), eventCreated: at(1050)}, map[string]int{"admit": 10, "sandbox": 940, "create": 50, "agent": 100}},
		"unheard": {nil, map[string]int{"admit": 10, "start": 990, "agent": 100}},
	} {
		got, sum := map[string]int{}, time.Duration(0)
		for _, p := range (moments{begun, at(10), c.seen, at(1000), at(1100)}).phases() {
			if sum += p.Took; p.Took > 0 {
				got[p.Name] = int(p.Took.Milliseconds())
			}
		}
		if d := cmp.Diff(c.want, got); d != "" || sum != 1100*time.Millisecond {
			t.Errorf("%s: sum %s, %s", name, sum, d)
		}
	}
}

// TestSteps: an event counts once, and the last one of a start is awaited.
func TestSteps(t *testing.T) {
	var s Steps
	begun := time.Now()
	s.note("a", eventScheduled, "", begun.Add(1))
	s.note("a", eventScheduled, "", begun.Add(2))
	s.note("a", eventPulled, `Successfully pulled image "r/app" in 1.2s (1.3s including waiting). Image size: 39000000 bytes.`, begun.Add(2))
	s.note("b", eventStarted, "", begun)
	go func() {
		time.Sleep(10 * time.Millisecond)
		s.note("a", eventStarted, "", begun.Add(3))
	}()
	if got := s.take("a"); !got.at[eventScheduled].Equal(begun.Add(1)) || !got.at[eventStarted].Equal(begun.Add(3)) || got.pulled != 39_000_000 {
		t.Error(got)
	}
	if got := s.take("a"); len(got.at) != 0 {
		t.Errorf("after it was taken: %v", got)
	}
	if len(s.seen) != 1 {
		t.Errorf("pods that are kept: %v", s.seen)
	}
}

// FuzzPulledBytes: a kubelet's message gives a size or none, and never a negative one.
func FuzzPulledBytes(f *testing.F) {
	for message, want := range map[string]int64{
		`Successfully pulled image "r/app@sha256:0" in 1.307s (1.31s including waiting). Image size: 41234567 bytes.`: 41234567,
		`Successfully pulled image "r/app:1" in 1.307s`:                                                               0,
		`Container image "r/app:1" already present on machine`:                                                        0,
		`Image size: 99999999999999999999 bytes.`:                                                                     0,
	} {
		if got := pulledBytes(message); got != want {
			f.Errorf("%s: %d, want %d", message, got, want)
		}
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		if n := pulledBytes(message); n < 0 {
			t.Errorf("%q: %d bytes", message, n)
		}
	})
}
