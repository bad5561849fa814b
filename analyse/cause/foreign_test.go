package cause

import (
	"math"
	"strings"
	"testing"
)

// TestForeign has the cases that were named wrongly at confidence 0.8 before: causes that
// no rule knew, each with the readings of the cell and of its baseline.
func TestForeign(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name      string
		own, base sheet
		low       *point
		want      Name
		says      string
	}{
		{"nested paging: one thread, as full natively, and its work takes 1.6 times as long",
			with(fGuest, 1.05, fGuestTask, 0.98, fGuestTop, 0.95, fGuestReady, 1.0, fRate, 6e4, fTime, 130e-6),
			native(fWork, 1.02, fWorkBusy, 0.98, fRate, 1e5, fTime, 80e-6), nil, Other, "1.72 times the processor time"},
		{"nested paging: nothing is full",
			with(fGuest, 0.4, fGuestTask, 0.3, fRate, 8e3, fTime, 120e-6, fHelperCPU, 0.02, fHelperBusy, 0.02),
			native(fWork, 0.2, fRate, 1.2e4, fTime, 80e-6), nil, Other, "3 times the processor time"},
		{"an I/O thread that polls: as busy with a tenth of the load",
			with(fHelperCPU, 0.98, fHelperBusy, 0.98, fGuest, 2.2, fGuestTask, 1.8, fGuestReady, 8.0, fRate, 6e4, fTime, 130e-6),
			native(fWork, 1.3, fRate, 1e5, fTime, 80e-6), &point{load: 1, value: 6e3, helper: 0.98, busy: 0.98, added: 30e-6}, Other, "processor time"},
		{"a hypervisor takes a third",
			with(fHostSteal, 0.34, fRate, 5e4, fTime, 160e-6), native(fHostSteal, 0.0, fTime, 80e-6, fRate, 1e5), &point{load: 1, added: 1e-6}, Steal, "34 %"},
		{"a hypervisor takes a tenth, and that is what it costs",
			with(fHostSteal, 0.1, fGuest, 4.0, fGuestCPUs, 16.0, fGuestReady, 16.0, fGuestTask, 3.5, fRate, 9e4, fTime, 88e-6), native(fHostSteal, 0.0, fWork, 4.0, fTime, 80e-6, fRate, 1e5), &point{load: 1, added: 1e-6}, Steal, "10 %"},
		{"a host's processor full of interrupts",
			with(fHostSoft, 0.97, fTime, 300e-6, fRate, 3e4), native(fHostSoft, 0.05, fTime, 75e-6), &point{load: 1, added: 1e-6}, SoftIRQ, "97 %"},
		{"few operations take very long",
			with(fTime, 160e-6, fMedian, 76e-6, fRate, 5e4), native(fTime, 80e-6, fMedian, 74e-6), &point{load: 1, added: 80e-6}, Other, "few operations"},
		{"a thread of the other end, for this sandbox alone",
			with(fTime, 160e-6, fRate, 5e4, fOther, 0.97), native(fTime, 80e-6, fOther, 0.4), &point{load: 1, added: 40e-6}, Other, "on the other side"},
		{"the disk serves others",
			with(fGuest, 0.01, fTime, 4e-3, fRate, 1e3, fDisk, 4e6, fDeviceBytes, 12e6, fDeviceBusy, 0.8, fDeviceQueue, 9.0),
			native(fWork, 0.02, fTime, 2e-3, fRate, 2e3, fDisk, 8e6, fDeviceBytes, 8e6, fDeviceBusy, 0.6, fDeviceQueue, 4.0), &point{load: 1, added: 1e-3}, Other, "disk serves other processes"},
	} {
		f := facts{own: c.own, base: c.base, load: nan, helper: "iothread", costs: true, low: c.low}
		f.polling = f.polls()
		got := decide(rules(), &f)
		text := sentence(&Finding{Cause: got.cause, Among: got.among}, &f, &got)
		if got.cause != c.want || !strings.Contains(text, c.says) {
			t.Errorf("%s: %s %v, want %s: %s; weights %v", c.name, got.cause, got.among, c.want, text, got.weights)
		}
	}
}

// TestGuestClaims: on a busy host, an emulated guest counts the time that its processors wait as
// used. The host's count of its vCPUs decides how much more processor time the work takes, and the
// text says the same figure as the price beside it.
func TestGuestClaims(t *testing.T) {
	f := facts{own: with(fGuest, 1.3, fGuestTask, 1.2, fVCPU, 0.44, fRate, 1e4, fTime, 130e-6), base: native(fWork, 0.19, fRate, 1e5, fTime, 80e-6), costs: true}
	if got := f.took(); math.Abs(got-0.44/0.19*10) > 1e-9 {
		t.Errorf("took %v times, and the host counted %v", got, 0.44/0.19*10)
	}
	f.own[fGuest] = 0.3 // the rest is exits, and polling for idle processors
	if got := f.took(); math.Abs(got-0.3/0.19*10) > 1e-9 {
		t.Errorf("took %v times, and the guest used %v", got, 0.3/0.19*10)
	}
	f.price = &Price{Unit: "GB", Ratio: 24.4}
	v := verdict{cause: Other, why: whyWork}
	if text := sentence(&Finding{Cause: Other}, &f, &v); !strings.Contains(text, "the same work takes 24.4 times the processor time") {
		t.Error(text)
	}
}
