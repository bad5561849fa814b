package document

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/record"
)

// Bounds of what is shown of a trial.
const (
	maxPoints = 200 // of a line: a screen has not many more columns for it
	maxLines  = 64  // beside those of a guest's processors
)

// essential chooses the lines that are in the file: CPU and run-queue wait by
// role, memory, quota and throttling, the machine's and a guest's processors and
// the workload's own figures. `tare serve` has all lines of Lines.
func essential(name string) bool {
	switch name {
	case "cpu", "run_wait", "cgroup_memory", "cgroup_throttled", "system_cpu", "system_running", Throttled, GuestCore, record.CPUQuota:
		return true
	}
	collectors := []string{"cgroup_", "system_", "collector_", "threads", record.GuestSoftIRQs, record.AgentCPU}
	return !slices.ContainsFunc(collectors, func(c string) bool { return strings.HasPrefix(name, c) })
}

// Wanted reports whether Lines uses a series. It leaves out single threads: there are
// hundreds, and their role has their sum.
func Wanted(name string, labels record.Labels) bool {
	return !strings.HasPrefix(name, "thread_") && labels.Get("tid") == ""
}

// Lines makes the lines of a trial: CPU and run-queue wait by role
// and end, what the kernel charges to the cgroups, the processors of guests, the
// workload's own figures and the whole machine. Counters become rates. It takes
// the series that are Wanted. It does not set Trial and Window.
func Lines(t *record.Trial, read ReadSeries) (out TrialSeries, err error) {
	err = read(t, func(all []record.Series) { out = linesOf(all) })
	return out, err
}

func linesOf(all []record.Series) TrialSeries {
	out := TrialSeries{Lines: append(throttled(all), cores(all)...)}
	derived := len(out.Lines)
	for i := range all {
		s := &all[i]
		if len(out.Lines)-derived == maxLines {
			break
		}
		if !Wanted(s.Name, s.Labels) || s.Name == record.GuestCPU || len(s.T) != len(s.V) {
			continue
		}
		if l := line(s); len(l.V) >= 2 && !(flat(l.V) && l.V[0] == 0) { // a line at zero says nothing that its absence does not
			out.Lines = append(out.Lines, l)
		}
	}
	for i := range out.Lines {
		l := &out.Lines[i]
		for j := range l.V {
			l.T[j], l.V[j] = math.Round(l.T[j]*1000)/1000, round(l.V[j], 3)
		}
	}
	return out
}

// line is one series, at most maxPoints of it.
func line(s *record.Series) Line {
	l := Line{Name: s.Name, Labels: string(s.Labels), Unit: s.Unit}
	switch {
	case s.Name == record.CPUTime && len(s.T) > maxPoints+1:
		// Areas on each other need the same stretches, and means of them add up.
		l.Name, l.Unit = rateName(s)
		l.T, l.V = rates(picked(s.T, s.V, stretches(s.T, maxPoints)))
		l.Of, l.By = len(s.T)-1, ByMean
		return l
	case s.Kind == record.Counter:
		l.Name, l.Unit = rateName(s)
		l.T, l.V = rates(s.T, s.V)
	default:
		for j, v := range s.V {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				l.T, l.V = append(l.T, s.T[j].Seconds()), append(l.V, v)
			}
		}
	}
	if n := len(l.V); s.Name == record.CPUQuota && n > 2 && flat(l.V) {
		l.T, l.V = []float64{l.T[0], l.T[n-1]}, []float64{l.V[0], l.V[n-1]}
	} else if n > maxPoints {
		l.T, l.V = downsample(l.T, l.V, maxPoints)
		l.Of, l.By = n, ByExtremes
	}
	return l
}

// stretches chooses readings that cut the time from 0 to the last reading into n
// stretches of one length: the last one of each. Of series that were read together
// it chooses the same.
func stretches(t []time.Duration, n int) []int {
	if len(t) <= n+1 {
		out := make([]int, len(t))
		for i := range out {
			out[i] = i
		}
		return out
	}
	end := t[len(t)-1]
	out := []int{0}
	of := func(i int) int64 { return (int64(t[i]) - 1) * int64(n) / max(1, int64(end)) }
	for i := 1; i < len(t); i++ {
		if i == len(t)-1 || of(i+1) > of(i) {
			out = append(out, i)
		}
	}
	return out
}

func picked(t []time.Duration, v []float64, at []int) ([]time.Duration, []float64) {
	pt, pv := make([]time.Duration, len(at)), make([]float64, len(at))
	for i, k := range at {
		pt[i], pv[i] = t[k], v[k]
	}
	return pt, pv
}

// rateName names the rate of a counter: seconds of CPU a second are cores.
func rateName(s *record.Series) (string, record.Unit) {
	switch s.Unit {
	case record.Second:
		return strings.TrimSuffix(s.Name, "_time"), record.Cores
	case record.Byte:
		return s.Name, record.BytesPerSecond
	}
	return s.Name, record.PerSecond
}

// rates takes differences, each at the end of its stretch of time. A counter that
// falls began anew.
func rates(t []time.Duration, v []float64) (at, rate []float64) {
	for i := 1; i < len(v); i++ {
		dt := (t[i] - t[i-1]).Seconds()
		dv := v[i] - v[i-1]
		if dt <= 0 || dv < 0 || math.IsNaN(dv) || math.IsInf(dv, 0) {
			continue
		}
		at, rate = append(at, t[i].Seconds()), append(rate, dv/dt)
	}
	return at, rate
}

func flat(v []float64) bool { return slices.Min(v) == slices.Max(v) }

// downsample keeps at most n points: of each stretch of readings the least and the
// greatest, in order, and the two ends. A mean would take the peaks away, which
// are what one looks for.
func downsample(t, v []float64, n int) ([]float64, []float64) {
	if len(v) <= n {
		return t, v
	}
	buckets := (n - 2) / 2
	keep := []int{0}
	inner := len(v) - 2
	for b := range buckets {
		from, to := 1+b*inner/buckets, 1+(b+1)*inner/buckets
		lo, hi := from, from
		for i := from; i < to; i++ {
			if v[i] < v[lo] {
				lo = i
			}
			if v[i] > v[hi] {
				hi = i
			}
		}
		keep = append(keep, min(lo, hi))
		if lo != hi {
			keep = append(keep, max(lo, hi))
		}
	}
	keep = append(keep, len(v)-1)
	nt, nv := make([]float64, len(keep)), make([]float64, len(keep))
	for i, k := range keep {
		nt[i], nv[i] = t[k], v[k]
	}
	return nt, nv
}

// round rounds to so many significant digits, so that the shortest decimal form
// has no more.
func round(v float64, digits int) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	var buf [32]byte
	out, err := strconv.ParseFloat(string(strconv.AppendFloat(buf[:0], v, 'e', digits-1, 64)), 64)
	if err != nil { // the largest float rounds up to infinity
		return v
	}
	return out
}
