package cause

import (
	"math"
	"strings"
	"testing"
)

// TestDoubt: a verdict stands where trials repeat, and is open where their scatter may hide
// another cause.
func TestDoubt(t *testing.T) {
	disk := func(pairs ...any) sheet {
		return with(append([]any{fGuest, 0.01, fTime, 1.6e-3, fRate, 1e4, fDisk, 8e7, fDeviceBytes, 8e7, fDeviceBusy, 0.99, fDeviceQueue, 16.0}, pairs...)...)
	}
	full := native(fWork, 0.02, fTime, 1.5e-3, fRate, 1.05e4, fDisk, 8e7, fDeviceBytes, 8e7, fDeviceBusy, 0.99, fDeviceQueue, 16.0)
	path := with(fTime, 160e-6, fMedian, 155e-6)
	for _, c := range []struct {
		name      string
		own, base sheet
		costs     bool
		from      difference
		want      Name
	}{
		{"nothing costs, and trials repeat", with(), native(), false, difference{0, 0.02}, None},
		{"nothing costs, and trials scatter", with(), native(), false, difference{0, 0.2}, Untold},
		{"a disk that is as full natively, and trials repeat", disk(), full, false, difference{0.05, 0.02}, Device},
		{"the same, and trials scatter", disk(), full, false, difference{0.05, 0.2}, Untold},
		{"a path, and trials repeat", path, native(fMedian, 73e-6), true, difference{0.7, 0.02}, Path},
		{"a path, and nearly as much scatter", path, native(fMedian, 73e-6), true, difference{0.7, 0.6}, Untold},
		{"a path, and more scatter", path, native(fMedian, 73e-6), true, difference{0.7, 0.8}, Untold},
		{"a guest with half of the baseline's processors", with(fGuestCPUs, 1.0, fGuest, 0.99, fGuestTask, 0.95, fTime, 160e-6), with(fGuestCPUs, 2.0, fGuest, 1.96, fGuestTask, 1.9), true, difference{0.69, 0.1}, Guest},
		{"a guest with as many", with(fGuestCPUs, 2.0, fGuest, 1.98, fGuestTask, 1.9, fTime, 160e-6), with(fGuestCPUs, 2.0, fGuest, 1.96, fGuestTask, 1.9), true, difference{0.69, 0.1}, Untold},
		{"one pair of trials", path, native(fMedian, 73e-6), true, difference{math.NaN(), math.NaN()}, Path},
	} {
		f := facts{own: c.own, base: c.base, load: math.NaN(), low: &point{load: 1, added: 78e-6, value: 4e4}, costs: c.costs, undecided: !c.costs, from: c.from}
		v := decide(rules(), &f)
		if got := v.doubt(rules(), &f); got.cause != c.want || c.want == Untold && (got.among[0] != v.cause || got.because == "") {
			t.Errorf("%s: %s %v, want %s (%s)", c.name, got.cause, got.among, c.want, v.cause)
		}
	}
}

// TestDoubtOfDepth: a cost by a shallow queue that is not decided is left open because of the
// scatter. What the baseline fills is not the reason: nothing is full.
func TestDoubtOfDepth(t *testing.T) {
	f := facts{costs: true, undecided: true, from: difference{1.1, 0.9}}
	got := verdict{cause: Depth}.doubt(rules(), &f)
	if got.cause != Untold || !strings.Contains(got.because, "the trials scatter") {
		t.Errorf("%s, because %q", got.cause, got.because)
	}
}
