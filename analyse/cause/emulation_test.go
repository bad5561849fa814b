package cause

import (
	"math"
	"strings"
	"testing"
)

// TestEmulation: what an emulated processor makes of a guest's work has that name, and what is full for another reason keeps its own.
func TestEmulation(t *testing.T) {
	// Reads of a virtual disk, one and 64 in flight: measured beside a process, with two processors and without KVM.
	one := native(fRate, 7.4e3, fTime, 135e-6, fWork, 0.22, fWorkBusy, 0.22)
	many := native(fRate, 57e3, fTime, 1.1e-3, fWork, 0.35, fWorkBusy, 0.1)
	alone := with(fRate, 1.66e3, fTime, 600e-6, fVCPU, 0.78, fVCPUBusy, 0.6, fGuest, 0.78, fGuestTask, 0.7, fHelperCPU, 0.27, fHelperBusy, 0.25)
	loaded := with(fRate, 9.0e3, fTime, 7.1e-3, fVCPU, 1.1, fVCPUBusy, 0.6, fGuest, 1.1, fGuestTask, 1.0, fHelperCPU, 0.33, fHelperBusy, 0.3)
	full := with(fRate, 1e3, fTime, 1e-3, fVCPU, 4.0, fVCPUBusy, 1.0, fGuest, 4.0, fGuestTask, 4.0)
	crowd := full
	crowd[fGuestRunnable] = 32
	thread := with(fRate, 50e3, fTime, 1.28e-3, fVCPU, 0.6, fVCPUBusy, 0.3, fGuest, 0.6, fGuestTask, 0.6, fHelperCPU, 0.9, fHelperBusy, 0.9)
	quota := alone
	quota[fQuota], quota[fCgroup], quota[fThrottled] = 1.0, 1.0, 0.9
	for _, c := range []struct {
		name      string
		own, base sheet
		load      float64
		want      Name
	}{
		{"one in flight", alone, one, 1, Emulation},
		{"64 in flight", loaded, many, 64, Emulation},
		{"a full guest", full, one, 1, Emulation},
		{"a guest with many threads that wait", crowd, one, 1, Guest},
		{"a full I/O thread, and little more work", thread, many, 64, Helper},
		{"a quota", quota, one, 1, Quota},
	} {
		for _, emulated := range []bool{true, false} {
			f := facts{own: c.own, base: c.base, load: c.load, baseLoad: c.load, costs: true, emulated: emulated}
			v := decide(rules(), &f)
			switch text := sentence(&Finding{Cause: v.cause, Among: v.among}, &f, &v); {
			case !emulated && v.cause == Emulation, emulated && v.cause != c.want:
				t.Errorf("%s, emulated %t: %s of %v: %s", c.name, emulated, v.cause, v.among, text)
			case v.cause == Emulation && !strings.Contains(text, "emulates (TCG): the same work takes"):
				t.Errorf("%s: %s", c.name, text)
			}
			if sure, _ := v.atBest(&f); v.cause == Emulation && !(sure >= half) || math.IsNaN(v.margin) {
				t.Errorf("%s: at best %g, by %g", c.name, sure, v.margin)
			}
		}
	}
}
