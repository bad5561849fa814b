package words

import (
	"fmt"
	"strconv"
	"strings"

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
