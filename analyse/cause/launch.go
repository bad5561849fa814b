package cause

import (
	"fmt"
	"math"
	"slices"

	"tare/record"
)

// elsewhere is what is missing where collectors were there, and read nothing of the end.
const elsewhere = "readings of sandboxes that the workload makes itself: no collector looks into them"

// unread says that nothing was read of an endpoint: what is there is the workload's own word.
func (s *sheet) unread() bool {
	for f, v := range s {
		switch figure(f) {
		case fOther, fRate, fTime, fMedian, fValue, fRuntime, fProgram:
		default:
			if !math.IsNaN(v) {
				return false
			}
		}
	}
	return true
}

// collected says that collectors ran beside a cell's trials.
func (b *builder) collected(c *Cell) bool {
	for _, t := range c.Trials {
		if slices.ContainsFunc(t.Samples, func(s record.Sample) bool { return s.Name == collectorCPU }) {
			return true
		}
	}
	return false
}

// step is what a sandbox adds to the steps of a launch, in seconds. The baseline need not
// have them: a process is not created before it is started.
func (f *facts) step(of figure) float64 {
	if f.baseline {
		return math.NaN()
	}
	return f.own[of] - f.base.or(of, 0)
}

// launch decides a cell whose operation is a sandbox's start. One is under way at a time,
// so what the runtime's calls add is a longer way by definition. What the program takes
// longer, in a sandbox that no collector looks into, is its processor time or its calls.
func (v verdict) launch(f *facts) verdict {
	runtime, program := max(0, f.step(fRuntime)), max(0, f.step(fProgram))
	if math.IsNaN(program) {
		program = 0
	}
	if f.baseline || !f.costs || !(runtime+program > 0) {
		v.cause, v.missing = Unknown, elsewhere
		return v
	}
	part := runtime / (runtime + program)
	if part < 0.5 {
		v.part = 1 - part
		return v.untold("", GuestOne, Interception)
	}
	return v.clear(Path, part, part-0.5)
}

// launched is the sentence on such a cell.
func launched(out *Finding, f *facts, part float64) string {
	ms := func(at figure) string {
		if s := f.step(at); s >= 1 {
			return fmt.Sprintf("%.3g s", s)
		}
		return fmt.Sprintf("%.3g ms", 1e3*max(0, f.step(at)))
	}
	switch out.Cause {
	case Path:
		return fmt.Sprintf("The runtime's calls: they take %s longer than natively, %.0f %% of what is added to the launch's steps.", ms(fRuntime), 100*part)
	case Untold:
		return fmt.Sprintf("The program's own start: it takes %s longer than natively, %.0f %% of what is added to the launch's steps; the readings do not say how much of this is processor time and how much is system calls.", ms(fProgram), 100*part)
	}
	return "What bounds it is not known; what is missing: " + out.Missing + "."
}
