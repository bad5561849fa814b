package cause

import (
	"math"
	"strings"
	"testing"
)

// with is a sheet on which an endpoint of a virtual machine has room everywhere, and some
// figures are other: in pairs, figure and value.
func with(pairs ...any) sheet {
	s := blank()
	for f, v := range map[figure]float64{
		fCgroup: 0.8, fHelperCPU: 0.2, fHelperBusy: 0.2, fHelperWait: 0, fVCPU: 0.6, fVCPUBusy: 0.4, fVCPUWait: 0, fWait: 0.01,
		fGuestCPUs: 4, fGuest: 0.5, fGuestTask: 0.3, fGuestSteal: 0, fGuestBusiest: 0.3, fGuestTop: 0.25, fGuestSoft: 0.1, fGuestSoftPart: 0.9, fGuestRunnable: 1, fGuestReady: 2,
		fHostCores: 64, fHostBusy: 0.1, fLinkIn: 1e6, fLinkOut: 1e6, fLinkRate: 1e9, fRate: 1e5, fTime: 80e-6,
	} {
		s[f] = v
	}
	told := false
	for i := 0; i < len(pairs); i += 2 {
		s[pairs[i].(figure)] = pairs[i+1].(float64)
		told = told || pairs[i] == fVCPU
	}
	if !told {
		s[fVCPU] = max(s[fVCPU], s[fGuest]) // the host gave what the guest used
	}
	return s
}

// native is such a sheet of a process.
func native(pairs ...any) sheet {
	s := with(append([]any{fHelperCPU, math.NaN(), fHelperBusy, math.NaN(), fVCPU, math.NaN(), fVCPUBusy, math.NaN(), fGuestCPUs, math.NaN(), fGuest, math.NaN(),
		fGuestTask, math.NaN(), fGuestSteal, math.NaN(), fGuestReady, math.NaN(), fWork, 0.5, fWorkBusy, 0.1, fTime, 75e-6}, pairs...)...)
	return s
}

// delayed is a sheet of a native server with one connection, whose packets are delayed by
// 4 ms a round trip: its threads are too seldom there to be seen one by one.
func delayed(pairs ...any) sheet {
	return native(append([]any{fWork, 0.007, fWorkBusy, math.NaN(), fWait, 0.001, fRate, 209.0, fTime, 4.78e-3, fLinkIn, 1e5, fLinkOut, 1e5}, pairs...)...)
}

// TestDecide has one case of each cause with the figures that were published for it
// (../../docs/kata-network.md) or that follow from its definition.
func TestDecide(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name string
		own  sheet
		base sheet
		want Name
		more func(*facts)
	}{
		{"room everywhere", with(), native(), None, nil},
		{"1.23 of 1.25 cores", with(fQuota, 1.25, fCgroup, 1.23, fThrottled, 0.9), native(), Quota, nil},
		{"a quota that is seldom reached", with(fQuota, 1.25, fCgroup, 0.8, fThrottled, 0.1), native(), None, nil},
		{"a quota far away", with(fQuota, 8.0, fThrottled, 0.0), native(), None, nil},
		{"one vhost thread at 87 %", with(fHelperBusy, 0.87, fHelperCPU, 0.87), native(), Helper, nil},
		{"a thread at 50 % that waits for another 22 %", with(fHelperBusy, 0.5, fHelperCPU, 0.5, fHelperWait, 0.22), native(), Helper, nil},
		{"one at 34 % that waits for another 40 %", with(fHelperBusy, 0.34, fHelperCPU, 0.34, fHelperWait, 0.4), native(), None, nil},
		{"throttled and its thread busy as well", with(fQuota, 1.25, fCgroup, 1.24, fThrottled, 1.0, fHelperBusy, 0.8), native(), Quota, nil},
		{"throttled, and the baseline as much: its calls take 25 times as long", native(fQuota, 0.5, fCgroup, 0.5, fThrottled, 1.0, fThrottledTime, 0.5, fWork, 0.5, fWorkBusy, 0.5, fWait, 0.5, fRate, 1.2e5, fTime, 8.3e-6),
			native(fQuota, 0.5, fCgroup, 0.5, fThrottled, 1.0, fThrottledTime, 0.5, fWork, 0.5, fWorkBusy, 0.5, fWait, 0.5, fRate, 3e6, fTime, 3.3e-7),
			Interception, func(f *facts) { f.calls, f.costs = &Calls{Each: 1, Cost: 4e-6}, true }},
		{"throttled far more than the baseline is", with(fQuota, 1.25, fCgroup, 1.25, fThrottled, 1.0, fThrottledTime, 3.75, fTime, 250e-6, fRate, 3e4),
			native(fQuota, 1.0, fCgroup, 1.0, fThrottled, 1.0, fThrottledTime, 0.8), Quota, func(f *facts) { f.costs = true }},
		{"the guest's one core", with(fGuestCPUs, 1.0, fGuest, 0.97, fGuestTask, 0.8), native(), Guest, nil},
		{"all four", with(fGuest, 3.8, fGuestTask, 3.0, fGuestReady, 9.0), native(fWork, 3.0, fWorkBusy, 0.4), Guest, nil},
		{"one thread on four", with(fGuest, 1.1, fGuestTask, 0.97, fGuestTop, 0.3), native(fWork, 1.1, fWorkBusy, 0.98), GuestOne, nil},
		{"one thread that moves about, and soft interrupts", with(fGuest, 1.1, fGuestTask, 0.97, fGuestTop, 0.13, fGuestReady, 1.01), native(fWork, 1.7, fWorkBusy, 0.98), GuestOne, nil},
		{"many threads on four", with(fGuest, 1.1, fGuestTask, 0.97, fGuestReady, 7.0), native(fWork, 1.1, fWorkBusy, 0.1), None, nil},
		{"one thread, soft interrupts beside it natively", with(fGuest, 1.1, fGuestTask, 0.97, fGuestTop, 0.9, fGuestReady, 1.0), native(fWork, 1.9, fWorkBusy, 0.98), GuestOne, nil},
		{"many threads, none seen beside another", with(fGuest, 1.1, fGuestTask, 0.97, fGuestReady, 1.0), native(fWork, 1.1, fWorkBusy, 0.1), None, nil},
		{"a native thread", native(fWork, 1.0, fWorkBusy, 0.99), blank(), GuestOne, func(f *facts) { f.baseline = true }},
		{"all of the host", with(fHostBusy, 1.0, fWait, 5.0), native(), Host, nil},
		{"calls of 110 times the time, and the baseline waits as much", native(fHostBusy, 1.0, fWork, 0.6, fWait, 0.4, fRate, 1e4, fTime, 1e-4), native(fHostBusy, 1.0, fWork, 0.6, fWait, 0.4, fRate, 1e6, fTime, 1e-6),
			Interception, func(f *facts) { f.calls, f.costs = &Calls{Each: 1, Cost: 9.9e-5}, true }},
		{"a full guest, and the baseline waits as much", with(fHostBusy, 1.0, fWait, 0.8, fGuestCPUs, 1.0, fGuest, 0.95, fGuestTask, 0.9, fTime, 800e-6, fRate, 2e4), native(fHostBusy, 1.0, fWait, 0.9),
			Guest, func(f *facts) { f.costs = true }},
		{"a full guest that waits far more than the baseline", with(fHostBusy, 1.0, fWait, 5.0, fGuestCPUs, 1.0, fGuest, 0.95, fGuestTask, 0.9, fTime, 110e-6), native(fHostBusy, 1.0),
			Host, func(f *facts) { f.costs = true }},
		{"a host that is 87 % busy, and threads wait for 40 % of the time", with(fHostBusy, 0.87, fWait, 5.0, fTime, 300e-6), native(fHostBusy, 0.6), Host, func(f *facts) { f.low = &point{load: 1, added: 1e-6} }},
		{"a host that is 82 % busy, and threads wait", with(fHostBusy, 0.82, fWait, 5.0, fTime, 300e-6), native(fHostBusy, 0.6), Untold, func(f *facts) { f.low = &point{load: 1, added: 1e-6} }},
		{"host busy, nobody waits", with(fHostBusy, 1.0, fWait, 0.1), native(), None, nil},
		{"others have the host, natively too, and calls take longer", native(fHostBusy, 1.0, fWork, 0.6, fWait, 0.4, fRate, 1e4, fTime, 1e-4), native(fHostBusy, 1.0, fWork, 0.6, fWait, 0.38, fRate, 1.2e4, fTime, 83e-6),
			Untold, func(f *facts) { f.calls, f.costs = &Calls{Each: 1, Cost: 15e-6}, true }},
		{"others have the host, natively too, and the sandbox's threads run twice as long", native(fHostBusy, 1.0, fWork, 0.6, fWait, 0.4, fRate, 1e4, fTime, 1e-4), native(fHostBusy, 1.0, fWork, 0.3, fWait, 0.19, fRate, 1.2e4, fTime, 83e-6),
			Untold, func(f *facts) { f.calls, f.costs = &Calls{Each: 1, Cost: 15e-6}, true }},
		{"others have the host, natively a quarter as much", native(fHostBusy, 1.0, fWork, 0.6, fWait, 0.4, fRate, 1e4, fTime, 1e-4), native(fHostBusy, 1.0, fWork, 0.6, fWait, 0.07, fRate, 1.4e4, fTime, 70e-6),
			Host, func(f *facts) { f.calls, f.costs = &Calls{Each: 1, Cost: 1e-9}, true }},
		{"95 % of the link, and others have the host", native(fLinkIn, 0.95e9, fHostBusy, 1.0, fWork, 0.014, fWorkBusy, nan, fWait, 0.33, fRate, nan, fTime, nan), native(), Link, nil},
		{"half of the link, and others have the host", native(fLinkIn, 0.5e9, fHostBusy, 1.0, fWork, 0.014, fWorkBusy, nan, fWait, 0.33, fRate, nan, fTime, nan), native(fWorkBusy, 0.5), Host, nil},
		{"95 % of the link", with(fLinkIn, 0.95e9), native(), Link, nil},
		{"a disk that is never idle", with(fDeviceBusy, 0.99, fDeviceQueue, 4.0, fDeviceBytes, 4e8, fDisk, 4e8), native(), Device, nil},
		{"most operations in it, and it does no more of twice as many", with(fDeviceBusy, 0.99, fDeviceQueue, 7.0, fDeviceBytes, 4e8, fDisk, 4e8), native(), Device, func(f *facts) { f.high = &point{load: 16, value: 1.05e5} }},
		{"so too, and it does more of twice as many", with(fDeviceBusy, 0.99, fDeviceQueue, 7.0, fDeviceBytes, 4e8, fDisk, 4e8), native(), Depth, func(f *facts) { f.high = &point{load: 16, value: 1.8e5} }},
		{"so too, and one takes as long alone", with(fDeviceBusy, 0.99, fDeviceQueue, 7.0, fDeviceBytes, 4e8, fDisk, 4e8), native(), Depth, func(f *facts) { f.low = &point{load: 1, value: 1.3e4} }},
		{"so too, and one takes a quarter of the time alone", with(fDeviceBusy, 0.99, fDeviceQueue, 7.0, fDeviceBytes, 4e8, fDisk, 4e8), native(), Device, func(f *facts) { f.low = &point{load: 1, value: 5e4} }},
		{"so too, and one takes two thirds of the time alone", with(fDeviceBusy, 0.99, fDeviceQueue, 7.0, fDeviceBytes, 4e8, fDisk, 4e8), native(), Untold, func(f *facts) { f.low = &point{load: 1, value: 1.9e4} }},
		{"one request at a time", native(fDeviceBusy, 0.99, fDeviceQueue, 0.9, fDeviceBytes, 4e7, fDisk, 4e7, fRate, 1e4, fTime, 1e-4), native(), Depth, nil},
		{"an operation of many requests", native(fDeviceBusy, 0.99, fDeviceQueue, 9.0, fDeviceBytes, 4e8, fDisk, 4e8, fRate, 1e4, fTime, 1e-4), native(), Device, nil},
		{"a cgroup's limit that is used, and a full guest", with(fIOLimit, 0.99, fGuest, 3.8, fGuestTask, 3.0, fGuestReady, 9.0), native(), IOLimit, nil},
		{"a cgroup's limit that is half used", with(fIOLimit, 0.5), native(), None, nil},
		{"fsync, and its writes in the disk", native(fSync, 0.93, fDeviceBusy, 0.99, fDeviceQueue, 0.95, fDeviceBytes, 4e7, fDisk, 4e7, fRate, 500.0, fTime, 2e-3), blank(), Fsync, func(f *facts) { f.baseline = true }},
		{"fsync that takes longer than natively", native(fSync, 0.93, fRate, 500.0, fTime, 2e-3), native(fSync, 0.9, fRate, 1e3, fTime, 1e-3), Fsync, func(f *facts) { f.costs = true }},
		{"fsync as long as natively, and 2 ms elsewhere", native(fSync, 0.65, fWork, 0.02, fRate, 250.0, fTime, 4e-3), native(fSync, 0.98, fWork, 0.03, fRate, 400.0, fTime, 2.5e-3), Path, func(f *facts) { f.costs, f.low, f.calls = true, &point{load: 1, added: 1.4e-3}, &Calls{} }},
		{"fsync behind a full I/O thread", with(fSync, 0.93, fHelperBusy, 0.9, fHelperCPU, 0.9), native(), Helper, nil},
		{"memory in place of a disk", native(fMissed, 1.0, fWorkBusy, 0.95, fWork, 0.95), native(fMissed, 0.02), PageCache, nil},
		{"a disk in place of memory", native(fMissed, 0.0, fTime, 1e-3, fRate, 1e3), native(fMissed, 1.0), PageCache, func(f *facts) { f.costs = true }},
		{"a disk in place of memory, and no slower", native(fMissed, 0.0), native(fMissed, 1.0), None, nil},
		{"memory on both sides", native(fMissed, 1.0), native(fMissed, 1.0), None, nil},
		{"a gofer for each operation", native(fGofer, 0.25, fWork, 0.06, fHelperCPU, 0.4, fHelperBusy, 0.25, fRate, 1e4, fTime, 1e-4), native(fRate, 1e5, fTime, 1e-5), Gofer, func(f *facts) { f.costs, f.calls = true, &Calls{Each: 1, Cost: 2e-6} }},
		{"a gofer that hardly works", native(fGofer, 0.01, fWork, 0.06, fHelperCPU, 0.05, fHelperBusy, 0.05, fRate, 1e4, fTime, 1e-4), native(fRate, 1e5, fTime, 1e-5), Path, func(f *facts) { f.costs, f.calls = true, &Calls{Each: 1, Cost: 2e-6} }},
		{"a disk that is nearly never idle", with(fDeviceBusy, 0.8, fDeviceQueue, 1.0, fDeviceBytes, 4e8, fDisk, 4e8), native(), Untold, nil},
		{"a disk of too few bytes", with(fDeviceBusy, 0.99, fDeviceQueue, 4.0, fDeviceBytes, 1e5, fDisk, 1e5), native(), None, nil},
		{"somebody else's disk", with(fDeviceBusy, 0.99, fDeviceQueue, 10.0, fDeviceBytes, 4e8, fDisk, 6e7), native(), None, nil},
		{"a gofer beside a sentry that opens files itself, and processors that are less busy", native(fWork, 0.2, fHelperCPU, 0.5, fHelperBusy, 0.2, fGofer, 0.29, fHostBusy, 0.55, fWait, 2.0, fRate, 1e4, fTime, 1e-4),
			native(fWork, 0.4, fHelperCPU, 0.6, fHelperBusy, 0.3, fHostBusy, 0.87, fWait, 3.0, fRate, 4e4, fTime, 2.5e-5), Gofer, func(f *facts) { f.costs = true }},
		{"a proxy in gVisor whose requests take 29 times the processor time", native(fWork, 0.5, fHelperCPU, 0.6, fHelperBusy, 0.3, fRate, 2.3e3, fTime, 7e-3), native(fWork, 0.9, fRate, 5.3e4, fTime, 3e-4), Untold,
			func(f *facts) { f.costs, f.load, f.baseLoad = true, 16, 16 }},
		{"fewer in flight than in the baseline, on a disk that does more with more", native(fWork, 0.1, fRate, 1.4e4, fTime, nan, fDisk, 5.7e7, fDeviceBytes, 5.7e7, fDeviceBusy, 0.86, fDeviceQueue, 0.85),
			native(fWork, 0.5, fRate, 1e5, fTime, nan), Depth, func(f *facts) {
				f.costs, f.load, f.baseLoad, f.high = true, 1, 16, &point{load: 4, value: 5e4}
			}},
		{"fewer in flight, and nothing else", native(fWork, 0.1, fRate, 1.4e4, fTime, nan), native(fWork, 0.5, fRate, 5e4, fTime, nan), None, func(f *facts) { f.costs, f.load, f.baseLoad = true, 1, 4 }},
		{"a disk that is shared", with(fDeviceBusy, 0.99, fDeviceQueue, 10.0, fDeviceBytes, 4e8, fDisk, 3e8), native(), Device, func(f *facts) { f.high = &point{load: 16, value: 1.1e5} }},
		{"a network beside somebody else's disk", delayed(fDeviceBusy, 0.99, fDeviceQueue, 4.0, fDeviceBytes, 1e7), native(fTime, 30e-6, fRate, 3e4), Path, nil},
		{"so too, and cgroups say whose it is", delayed(fDeviceBusy, 0.99, fDeviceQueue, 4.0, fDeviceBytes, 1e7, fDisk, 1e4), native(fTime, 30e-6, fRate, 3e4), Path, nil},
		{"a thread that hardly runs, on a busy host", delayed(fHostBusy, 1.0, fWait, 0.018), native(fTime, 30e-6, fRate, 3e4), Path, nil},
		{"a delay of 5 ms for 16 connections, and others have the host, natively too", native(fHostBusy, 1.0, fWork, 0.019, fWorkBusy, nan, fWait, 1.03, fRate, 1075.0, fTime, 14.9e-3), native(fHostBusy, 1.0, fWork, 0.89, fWorkBusy, 0.086, fWorkWait, 0.34, fWait, 5.9, fRate, 1.8e5, fTime, 89e-6),
			Path, func(f *facts) {
				f.costs, f.load, f.baseLoad, f.calls, f.low = true, 16, 16, &Calls{Each: 2, Cost: 1e-9}, &point{load: 1, added: 10.6e-3}
			}},
		{"a hypervisor that takes as much natively", with(fHostSteal, 0.4, fTime, 400e-6, fRate, 2e4, fGuest, 0.1, fGuestTask, 0.06, fVCPU, 0.12, fVCPUBusy, 0.08, fHelperCPU, 0.04, fHelperBusy, 0.04), native(fHostSteal, 0.4), Path, func(f *facts) { f.costs, f.low = true, &point{load: 1, added: 320e-6} }},
		{"interrupts on one core of four", with(fGuest, 1.6, fGuestSoft, 0.93), native(), Imbalance, nil},
		{"interrupts on the only core", with(fGuestCPUs, 1.0, fGuest, 0.5, fGuestSoft, 0.4), native(), None, nil},
		{"one connection, 60 us more", with(fRate, 7e3, fTime, 140e-6, fGuest, 0.15, fGuestTask, 0.1, fHelperCPU, 0.1), native(fRate, 1.25e4, fTime, 80e-6, fWork, 0.15), Path, nil},
		{"many, as long with one", with(fTime, 160e-6), native(), Path, func(f *facts) { f.low = &point{load: 1, added: 80e-6} }},
		{"many, nothing with one", with(fTime, 300e-6), native(), Saturation, func(f *facts) { f.low = &point{load: 1, added: 1e-6} }},
		{"many, and the calls of a container were not counted", native(fTime, 300e-6), native(), Untold, func(f *facts) { f.low = &point{load: 1, added: 1e-6} }},
		{"many, and no cell with one", with(fTime, 300e-6), native(), Untold, nil},
		{"40 calls of 2 us", with(fRate, 8e3, fTime, 120e-6), native(fRate, 2e4, fTime, 40e-6), Interception, func(f *facts) { f.calls = &Calls{Each: 40, Cost: 2e-6} }},
		{"calls that a thread beside it serves while the caller spins", native(fWork, 0.9, fWorkBusy, nan, fHelperCPU, 0.55, fHelperBusy, 0.5, fRate, 1.7e5, fTime, 5.8e-6), native(fWork, 1.0, fWorkBusy, nan, fRate, 3.7e6, fTime, 2.7e-7),
			Interception, func(f *facts) { f.calls, f.costs = &Calls{Each: 1, Cost: 3.8e-6}, true }},
		{"threads were not read", with(fHelperBusy, nan, fHelperCPU, 0.9), native(), Unknown, nil},
		{"nothing was read", blank(), blank(), Unknown, nil},
		{"slower, and nothing shows it", with(fRate, nan, fTime, nan), native(), Untold, func(f *facts) { f.costs = true }},
	} {
		f := facts{own: c.own, base: c.base, load: nan, helper: "vhost"}
		if c.more != nil {
			c.more(&f)
		}
		if got := decide(rules(), &f); got.cause != c.want {
			t.Errorf("%s: %s %v, want %s; weights %v", c.name, got.cause, got.among, c.want, got.weights)
		}
	}
}

// TestHalf: a verdict that would be wrong as often as right is left open, and says why.
func TestHalf(t *testing.T) {
	path := with(fTime, 160e-6, fMedian, 155e-6)
	calm := with(fTime, 76e-6, fMedian, 74e-6, fGuest, 4.0)
	for _, c := range []struct {
		name string
		each []sheet
		want Name
		says string
	}{
		{"all trials agree", []sheet{path, path, path}, Path, "has a fixed extra delay"},
		{"few do", []sheet{path, calm, calm, calm, calm}, Untold, "of 5 trials, those that say so when judged alone: 1"},
		{"no median latency", []sheet{with(fTime, 160e-6), with(fTime, 160e-6), with(fTime, 160e-6)}, Untold, "The cause may be fixed delay or something else: no median latency"},
	} {
		b := builder{rules: rules()}
		f := facts{own: c.each[0], base: native(fMedian, 73e-6), load: math.NaN(), low: &point{load: 1, added: 80e-6}}
		v := decide(b.rules, &f)
		sure := b.confident(&f, &v, c.each)
		if text := sentence(&Finding{Cause: v.cause, Among: v.among}, &f, &v); v.cause != c.want || !strings.Contains(text, c.says) || (sure >= half) != (v.cause != Untold) {
			t.Errorf("%s: %s %v, confidence %.2f: %s", c.name, v.cause, v.among, sure, text)
		}
	}
}

// TestWaits: what the quota holds back does not wait for the host, and a thread waits at
// most as long as all of them.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		name   string
		own    sheet
		lo, hi float64
	}{
		{"one thread throttled for half of the time", native(fWork, 0.5, fWorkBusy, 0.5, fWait, 0.5, fQuota, 0.5, fThrottled, 1.0, fThrottledTime, 0.5), 0, 0},
		{"four threads held up on one processor", native(fWork, 0.5, fWorkBusy, 0.13, fWait, 3.5, fQuota, 0.5, fThrottled, 1.0, fThrottledTime, 0.5), 0, 0},
		{"throttled in a tenth of periods, and others have the host", native(fWork, 1.0, fWorkBusy, 0.5, fWait, 1.1, fQuota, 1.25, fThrottled, 0.1, fThrottledTime, 0.1), 0.4, 0.5},
		{"no quota, others have the host", native(fWork, 0.5, fWorkBusy, 0.5, fWait, 0.5), 0.5, 0.5},
		{"seldom there", delayed(fWait, 0.018), 0, 0.02},
	} {
		f := facts{own: c.own, load: math.NaN()}
		if got := f.waits(); got < c.lo || got > c.hi {
			t.Errorf("%s: %.3g of the time, want %g to %g", c.name, got, c.lo, c.hi)
		}
	}
}

// TestNothingRead: where no collector read any thread, that nothing was busy is not known, however much slower operations are.
func TestNothingRead(t *testing.T) {
	own, base := blank(), blank()
	own[fRate], own[fTime], base[fRate], base[fTime] = 1e3, 1e-3, 1e4, 1e-4
	f := facts{own: own, base: base, load: math.NaN(), costs: true}
	if v := decide(rules(), &f); v.cause != Unknown {
		t.Errorf("%s", v.cause)
	}
	f.own[fWork], f.base[fWork] = 0.01, 0.1
	if v := decide(rules(), &f); v.cause == Unknown && v.weights[Path] != v.weights[Path] {
		t.Errorf("with readings, %s with the weight %g", v.cause, v.weights[Path])
	}
}
