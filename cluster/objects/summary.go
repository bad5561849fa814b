package objects

import (
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/workload/objects"
)

// span is the time of one half of a step: from the first create request until all claims are usable or the load gives up, or from
// the first delete request until all are gone or the load gives up.
type span struct{ from, to time.Time }

// summary sums up the claims of a step.
func summary(out *objects.Claims, all []*claim, way, removal span) error {
	var made, vanished span
	for _, c := range all {
		if c.clock() {
			out.Skewed++
		}
		if t := c.at[objects.BoundTo]; !t.IsZero() {
			out.Bound++
			out.Bind = max(out.Bind, t.Sub(way.from).Seconds())
		}
		if t := c.at[objects.Provisioned]; !t.IsZero() {
			out.Volumes++
			made.widen(t)
		}
		if t := c.at[objects.VolumeGone]; !t.IsZero() {
			out.Vanished++
			vanished.widen(t)
		}
		if c.removal.IsZero() {
			c.removal = removal.from
		}
	}
	out.Appear, out.Vanish = made.seconds(), vanished.seconds()
	var err error
	done := func(c *claim) bool { return c.missing == "" }
	for _, c := range all {
		c.missing = c.first(objects.Way(), c.awaits)
	}
	out.Settled, out.Stuck = most(all)
	if out.Way, err = stages(all, objects.Way(), []string{objects.BoundTo, objects.Mounted, objects.Written}, done, func(c *claim) time.Time { return c.due }, way.to); err != nil {
		return err
	}
	for _, c := range all {
		c.missing = c.first(objects.Removal(), c.holds)
	}
	out.Gone, out.Held = most(all)
	out.Remove = removal.seconds()
	if out.Gone == len(all) {
		out.Remove = 0
		for _, c := range all {
			for _, stage := range objects.Removal() {
				out.Remove = max(out.Remove, c.at[stage].Sub(removal.from).Seconds())
			}
		}
	}
	out.Removal, err = stages(all, objects.Removal(), []string{objects.ClaimGone, objects.VolumeGone}, done, func(c *claim) time.Time { return c.removal }, removal.to)
	return err
}

func (s *span) widen(t time.Time) {
	if s.from.IsZero() || t.Before(s.from) {
		s.from = t
	}
	s.to = later(s.to, t)
}

func (s *span) seconds() float64 { return s.to.Sub(s.from).Seconds() }

// clock marks the stages that the program in the claim's pod has timed. The clock of its node may differ from the client's. If
// a time is before the claim was due or after the program's end, clock returns true, and takes the time at which the watch reported
// the mount. On a busy node, a correct time may be after the watch reported that the pod runs.
func (c *claim) clock() (skewed bool) {
	seen := c.ran
	if seen.IsZero() {
		seen = c.ended
	}
	if c.wrote.Started <= 0 || c.wrote.Written < c.wrote.Started || seen.IsZero() {
		if !c.ran.IsZero() {
			c.mark(objects.Mounted, c.ran)
		}
		return false
	}
	started, took := time.Unix(0, c.wrote.Started), time.Duration(c.wrote.Written-c.wrote.Started)
	if skewed = started.Before(c.due) || started.Add(took).After(c.ended); skewed {
		started = seen
	}
	c.mark(objects.Mounted, started)
	c.mark(objects.Written, started.Add(took))
	return skewed
}

// awaits reports whether a claim must reach a stage before it is usable.
func (c *claim) awaits(stage string) bool {
	switch stage {
	case objects.Chosen:
		return c.late
	case objects.Scheduled, objects.Mounted:
		return c.consumer
	case objects.Written: // the program of a pod that has not ended yet has not told when
		return c.consumer && (c.ran.IsZero() || !c.ended.IsZero())
	case objects.Attached:
		return false // only few drivers attach volumes
	}
	return true
}

// holds reports whether a claim must reach a stage before it is removed.
func (c *claim) holds(stage string) bool {
	switch stage {
	case objects.PodGone:
		return c.consumer
	case objects.Detached:
		return !c.at[objects.Attached].IsZero()
	case objects.VolumeGone:
		return !c.at[objects.Provisioned].IsZero()
	}
	return true
}

// first returns the first of the stages that a claim must reach and has not reached; "": it has reached all.
func (c *claim) first(stages []string, must func(string) bool) string {
	for _, s := range stages {
		if must(s) && c.at[s].IsZero() {
			return s
		}
	}
	return ""
}

// most returns how many claims miss no stage, and the stage that most of the other claims miss.
func most(all []*claim) (none int, stage string) {
	n := map[string]int{}
	for _, c := range all {
		if n[c.missing]++; c.missing != "" && (stage == "" || n[c.missing] > n[stage]) {
			stage = c.missing
		}
	}
	return n[""], stage
}

// stages returns the figures of the stages, from a moment of each claim. A claim that is not done counts in the shown stages that it
// misses with the time until the end.
func stages(all []*claim, order, shown []string, done func(*claim) bool, from func(*claim) time.Time, end time.Time) (out []objects.Stage, err error) {
	times, parts, n := map[string]*hdrhistogram.Histogram{}, map[string]float64{}, 0.0
	late := map[string]int{}
	note := func(stage string, d time.Duration) {
		if times[stage] == nil {
			times[stage] = objects.NewHistogram()
		}
		objects.Note(times[stage], d)
	}
	for _, c := range all {
		last := from(c)
		if done(c) {
			n++
		}
		for _, s := range order {
			t := c.at[s]
			switch {
			case !t.IsZero():
				note(s, t.Sub(from(c)))
				if done(c) {
					parts[s] += max(0, t.Sub(last).Seconds())
				}
				last = later(t, last)
			case !done(c) && slices.Contains(shown, s) && c.awaits(s) && c.holds(s):
				late[s]++
				note(s, end.Sub(from(c)))
			}
		}
	}
	for _, s := range order {
		if times[s] == nil {
			continue
		}
		x := objects.Stage{Name: s, Late: late[s]}
		if n > 0 {
			x.Part = parts[s] / n
		}
		if x.Times, err = objects.Encode(times[s]); err != nil {
			return nil, fmt.Errorf("encoding the times of claims: %w", err)
		}
		out = append(out, x)
	}
	return out, nil
}
