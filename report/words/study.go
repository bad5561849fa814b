package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tare/plan"
	"tare/study"
)

// Stop says a stopping rule.
func Stop(s study.Stop) string {
	if s.Fixed > 0 {
		return fmt.Sprintf("%s of each workload variant, whatever the results; intervals of %s.", Count(s.Fixed, "block"), percent(s.Confidence))
	}
	looks := make([]string, len(s.Looks))
	for i, k := range s.Looks {
		looks[i] = strconv.Itoa(k)
	}
	if s.Adaptive {
		return fmt.Sprintf("Look after %s blocks; a comparison ends when it has a verdict, or when the last look would hardly give one. "+
			"Costs within %s are called free. Intervals of %s, whenever the study stopped.", List(looks), percent(s.Margin), percent(s.Confidence))
	}
	return fmt.Sprintf("Look after %s blocks; a workload variant ends when the interval of each first figure is within %s either way, or within a part of a large effect. "+
		"Costs within %s are called free. Intervals of %s, whenever the study stopped.", List(looks), percent(s.Width), percent(s.Margin), percent(s.Confidence))
}

// Budget says what bounds a study; "" for nothing.
func Budget(b study.Budget) string {
	var parts []string
	if b.Blocks > 0 {
		parts = append(parts, Count(b.Blocks, "block"))
	}
	if b.Time > 0 {
		parts = append(parts, Duration(b.Time)+" of measuring")
	}
	if len(parts) == 0 {
		return ""
	}
	return "At most " + strings.Join(parts, " and ") + "."
}

// Short says that a study's budget allows fewer blocks than a verdict takes, and what to give; "" of nil.
func Short(s *plan.Shortage, of study.Budget) string {
	if s == nil {
		return ""
	}
	budget, give := Duration(of.Time), "--budget "+AtLeast(s.Time+s.Time/10) // it is an estimate
	switch {
	case s.Time > 0 && s.Blocks > 0:
		give += fmt.Sprintf(" --set budget.blocks=%d", s.Blocks)
	case s.Blocks > 0:
		budget, give = Count(of.Blocks, "block"), fmt.Sprintf("--set budget.blocks=%d", s.Blocks)
	}
	return fmt.Sprintf("the budget of %s allows about %s, but a verdict needs %d; for verdicts, give at least %s", budget, Count(s.Fits, "block"), s.Needs, give)
}

// AtLeast writes a duration for a flag, rounded up: 45s, 7m.
func AtLeast(d time.Duration) string {
	if d > 2*time.Minute {
		return strconv.Itoa(int(math.Ceil(d.Minutes()))) + "m"
	}
	return strconv.Itoa(int(math.Ceil(d.Seconds()))) + "s"
}
