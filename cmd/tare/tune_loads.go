package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxLoad bounds a range: more a second than any load generator sends.
const maxLoad = 1e9

// loads writes the levels of low..high, each higher than the one before by the width or less, all by the same ratio; other levels
// are as they were.
func loads(factor, levels, width string) (string, error) {
	low, high, is := strings.Cut(levels, "..")
	if !is {
		return levels, nil
	}
	low, high = strings.TrimSpace(low), strings.TrimSpace(high)
	wrong := func(what string) error {
		return coded(exitUsage, "%s; write --factor %s=500..32000 --width 10%%", what, factor)
	}
	from, err := strconv.ParseFloat(low, 64)
	to, err2 := strconv.ParseFloat(high, 64)
	if inside := from > 0 && to > from && to <= maxLoad; err != nil || err2 != nil || !inside { // false for a NaN
		return "", wrong(fmt.Sprintf("%q is not a range of loads", levels))
	}
	percent, isPercent := strings.CutSuffix(strings.TrimSpace(width), "%")
	step, err := strconv.ParseFloat(percent, 64)
	if inside := step >= 1 && step <= 100; err != nil || !isPercent || !inside {
		return "", wrong(fmt.Sprintf("the width %q is not between 1%% and 100%%", width))
	}
	n := math.Ceil(math.Log(to/from) / math.Log1p(step/100))
	out := []string{low}
	for i := 1; i < int(n); i++ {
		const digits = 4 // more would claim a precision that loads do not have
		x, _ := strconv.ParseFloat(strconv.FormatFloat(from*math.Pow(to/from, float64(i)/n), 'e', digits-1, 64), 64)
		out = append(out, strconv.FormatFloat(x, 'f', -1, 64))
	}
	return strings.Join(slices.Compact(append(out, high)), ","), nil
}
