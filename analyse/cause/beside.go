package cause

import "math"

// besideQuota says that the quota holds the cell back, and that this is not what it costs:
// its baseline is held back nearly as much by its own, or by the same. Where a thread is
// held back for h of the time that it would run, all takes 1/(1-h) as long; the quota
// is the cost's cause if that explains half of it, by logarithms.
func (f *facts) besideQuota() bool {
	slower := f.slower()
	if f.baseline || !f.costs || !(slower > 1.15) || !(f.base.or(fThrottled, 0) >= 0.3) {
		return false
	}
	return math.Log((1-f.base.held())/(1-f.own.held())) < math.Log(slower)/2 // false of NaN
}

// held is the part of the time that the end's threads would have run in which the quota
// held them back.
func (s *sheet) held() float64 {
	t, c := s.or(fThrottledTime, 0), s.or(fCgroup, 0)
	if !(t > 0) {
		return 0
	}
	return t / (t + c)
}

// running are the facts as they would be had no quota held threads back: all that is
// counted by the second is that of the time that they ran.
func (f *facts) running() facts {
	out := *f
	out.own, out.base = f.own.running(), f.base.running()
	return out
}

func (s *sheet) running() sheet {
	out := *s
	part := 1 - s.held()
	for _, at := range []figure{fCgroup, fHelperCPU, fHelperBusy, fVCPU, fVCPUBusy, fWork, fWorkBusy, fGuest, fGuestTask, fGuestBusiest, fGuestTop, fGuestSoft,
		fLinkIn, fLinkOut, fCalls, fRate, fDisk} {
		out[at] /= part
	}
	out[fTime] *= part
	// What waited, waited for the quota too: how much of it for that alone is not known.
	out[fWait] = unthrottled(s) / part
	out[fQuota], out[fThrottled], out[fThrottledTime] = math.NaN(), 0, 0
	return out
}

// named says that a verdict names a cause.
func (v *verdict) named() bool {
	switch v.cause {
	case None, Untold, Unknown:
		return false
	}
	return true
}
