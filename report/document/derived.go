package document

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"tare/record"
)

// Names of lines that are made of several series.
const (
	// Throttled is the share of the CPU limit's periods in which it was reached, by endpoint.
	Throttled = "cpu_throttled"
	// GuestCore is the share of its time that a guest's processor was at work, by endpoint,
	// processor and mode: busy (user and system), softirq, and steal, in which the host
	// did not run it.
	GuestCore = "guest_core"
)

// Bounds of a guest's processors: many have fewer points each.
const (
	maxCores   = 256
	corePoints = 3200 // of all processors
	leastCore  = 40
)

// throttled divides the periods in which a limit was reached by all that there were.
func throttled(all []record.Series) []Line {
	var out []Line
	for i := range all {
		reached := &all[i]
		if reached.Name != record.CgroupThrottledPeriods {
			continue
		}
		k := slices.IndexFunc(all, func(s record.Series) bool {
			return s.Name == record.CgroupPeriods && s.Labels == reached.Labels && slices.Equal(s.T, reached.T)
		})
		n := len(reached.V)
		if k < 0 || len(all[k].V) != n || len(reached.T) != n || n < 2 || !(all[k].V[n-1] > all[k].V[0]) {
			continue
		}
		at := stretches(reached.T, maxPoints)
		l := Line{Name: Throttled, Labels: string(reached.Labels), Unit: record.Fraction}
		for j := 1; j < len(at); j++ {
			share := 0.0 // without a period nothing ran
			if periods := risen(all[k].V, at, j); periods > 0 {
				share = min(1, risen(reached.V, at, j)/periods)
			}
			l.T, l.V = append(l.T, reached.T[at[j]].Seconds()), append(l.V, share)
		}
		l.mean(n, at)
		out = append(out, l)
	}
	return out
}

// core is one processor of one endpoint's guest.
type core struct {
	endpoint string
	cpu      int
}

// cores makes shares of each processor's time.
func cores(all []record.Series) []Line {
	modes := make(map[core][]*record.Series)
	for i := range all {
		s := &all[i]
		cpu, err := strconv.Atoi(s.Labels.Get(record.LabelCPU))
		if s.Name != record.GuestCPU || err != nil || len(s.T) < 2 || len(s.T) != len(s.V) {
			continue
		}
		c := core{s.Labels.Get(record.LabelEndpoint), cpu}
		modes[c] = append(modes[c], s)
	}
	list := slices.SortedFunc(maps.Keys(modes), func(x, y core) int { return cmp.Or(cmp.Compare(x.endpoint, y.endpoint), x.cpu-y.cpu) })
	list = list[:min(len(list), maxCores)]
	points := 0
	if len(list) > 0 {
		points = max(leastCore, min(maxPoints, corePoints/len(list)))
	}
	var out []Line
	for _, c := range list {
		out = append(out, c.shares(modes[c], points)...)
	}
	return out
}

func (c core) shares(modes []*record.Series, points int) []Line {
	// A processor that came later has fewer readings; its modes were read together.
	modes = slices.DeleteFunc(modes, func(s *record.Series) bool { return !slices.Equal(s.T, modes[0].T) })
	times := modes[0].T
	at := stretches(times, points)
	lines := map[string]*Line{}
	for _, mode := range []string{"busy", "softirq", "steal"} {
		labels := []string{record.LabelCPU, strconv.Itoa(c.cpu), record.LabelMode, mode}
		if c.endpoint != "" {
			labels = append(labels, record.LabelEndpoint, c.endpoint)
		}
		lines[mode] = &Line{Name: GuestCore, Labels: string(record.MakeLabels(labels...)), Unit: record.Fraction}
	}
	for j := 1; j < len(at); j++ {
		whole, part := 0.0, map[string]float64{}
		for _, s := range modes {
			d := risen(s.V, at, j)
			whole += d
			switch mode := s.Labels.Get(record.LabelMode); mode {
			case "idle", "iowait":
			case "softirq", "steal":
				part[mode] += d
			default:
				part["busy"] += d
			}
		}
		if whole <= 0 {
			continue
		}
		for mode, l := range lines {
			l.T, l.V = append(l.T, times[at[j]].Seconds()), append(l.V, part[mode]/whole)
		}
	}
	var out []Line
	for _, mode := range []string{"busy", "softirq", "steal"} {
		l := lines[mode]
		if len(l.V) == 0 || mode != "busy" && slices.Max(l.V) == 0 {
			continue // an idle processor is shown, what it never did is not
		}
		l.mean(len(times), at)
		out = append(out, *l)
	}
	return out
}

// risen is by how much a counter rose in a stretch. The kernel's idle and iowait
// may fall a little; that is nothing.
func risen(v []float64, at []int, j int) float64 {
	d := v[at[j]] - v[at[j-1]]
	if !(d > 0) || math.IsInf(d, 0) {
		return 0
	}
	return d
}

// mean notes that the points are means of more readings.
func (l *Line) mean(readings int, at []int) {
	if len(at) < readings {
		l.Of, l.By = readings-1, ByMean
	}
}
