package cause

import (
	"math"
	"slices"
	"testing"
)

// TestHostInProportion: a full host is the cause of no ratio that its waits cannot make, beyond those of the baseline beside
// the same load. The first case was measured: getpid in gVisor, with one core of two taken by others for both sides.
func TestHostInProportion(t *testing.T) {
	for _, c := range []struct {
		name        string
		wait, base  float64 // s/s that threads wait; each side runs 0.95 and 0.76 of a core
		times       float64 // that an operation takes, of the baseline's
		host, maybe bool
	}{
		{"54 times the time, three times the waiting, 68 times the processor time", 1.14, 0.345, 54, false, false},
		{"1.5 times the time, and that is how much longer it waits", 1.14, 0.345, 1.5, true, true},
		{"54 times the time, and the baseline's waits were not read", 1.14, math.NaN(), 54, false, false},
		{"twice the time, and the baseline waits as much", 0.4, 0.345, 2, false, true},
		{"20 times the time, which it waits", 18, 0.345, 20, true, true},
	} {
		f := facts{
			own:  native(fHostBusy, 1.0, fWork, 0.5, fWorkBusy, 0.5, fHelperCPU, 0.45, fHelperBusy, 0.45, fWait, c.wait, fRate, 1e6/c.times, fTime, 1e-6*c.times),
			base: native(fHostBusy, 1.0, fWork, 0.76, fWorkBusy, 0.76, fWait, c.base, fRate, 1e6, fTime, 1e-6),
			load: 1, baseLoad: 1, helper: "sentry", costs: true,
		}
		v := decide(rules(), &f)
		if got := v.cause == Host; got != c.host {
			t.Errorf("%s: %s %v, weights %v", c.name, v.cause, v.among, v.weights)
		}
		if got := v.cause == Host || slices.Contains(v.among, Host); got != c.maybe {
			t.Errorf("%s: the host is among the causes: %v, of %s %v", c.name, got, v.cause, v.among)
		}
	}
}
