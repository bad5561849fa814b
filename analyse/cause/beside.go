package cause

import "math"

// besideQuota says that the quota bounds the cell, and that calls are what it costs: they
// take most of the time that its threads ran, and its baseline is held back nearly as
// much by a quota of its own, so that this does not explain the difference. Where
// threads are held back for h of the time that they would run, all takes 1/(1-h) as long; the
// quota is the cost's cause if that explains half of it, by logarithms.
//
// Of other resources it is not said: what more they take is why the quota is used up,
// and a higher one is the cure.
func (f *facts) besideQuota(interception float64) bool {
	slower := f.slower()
	if f.baseline || !f.costs || !(slower > 1.15) || !(f.base.or(fThrottled, 0) >= 0.3) || !(interception >= most*(1-f.own.held())) {
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
