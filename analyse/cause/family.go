package cause

import (
	"slices"
	"strings"

	"tare/param"
	"tare/record"
)

// family is what a stratum has beside it: strata that differ from it in one factor
// alone, itself among them, by their index. The order is that of the study. A line has one
// factor along x; how many operations are under way is the product of several.
type family struct {
	size, load []int
	loads      []int // of all that differ in load factors, in several of them too
}

// Sizes and loads are parameters of workloads by which families are made.
// The last ones are what Pbench calls them.
func sizeFactors() []string {
	return []string{"size", "bs", "length", "block-size", "message_size_bytes"}
}
func loadFactors() []string {
	return []string{"connections", "jobs", "iodepth", "clients", "streams", "threads", "instances", "numjobs"}
}

// LoadOf is the number of operations that a workload has under way, as its parameters
// say: connections, clients, or jobs with their depth; 0 where none says.
func LoadOf(params func(name string) string) float64 {
	out := 0.0
	for _, name := range []string{"connections", "clients", "streams", "jobs", "threads", "instances", "numjobs"} {
		if v, ok := number(params(name)); ok && v > 0 {
			out = v
			break
		}
	}
	for _, name := range []string{"iodepth", "pipeline"} {
		if v, ok := number(params(name)); ok && v > 1 && out > 0 {
			out *= v
		}
	}
	return out
}

func number(text string) (float64, bool) {
	if text == "" {
		return 0, false
	}
	n, err := param.ParseSize(text)
	return float64(n), err == nil
}

// families finds them for all strata. A family has one end for all: its strata share
// everything but the factor.
func families(strata []Stratum) []family {
	out := make([]family, len(strata))
	for _, over := range []struct {
		factors []string
		to      func(*family) *[]int
	}{{sizeFactors(), func(f *family) *[]int { return &f.size }}, {loadFactors(), func(f *family) *[]int { return &f.load }}} {
		for _, factor := range over.factors {
			groups := map[string][]int{}
			for i := range strata {
				v, ok := strata[i].Shared.Get(factor)
				if _, is := number(v); !ok || !is {
					continue
				}
				key := familyKey(strata[i].Shared, factor)
				groups[key] = append(groups[key], i)
			}
			for _, g := range groups {
				if len(g) < 2 {
					continue
				}
				for _, i := range g {
					if to := over.to(&out[i]); *to == nil {
						*to = g
					}
				}
			}
		}
	}
	groups := map[string][]int{}
	for i := range strata {
		rest := strata[i].Shared
		for _, factor := range loadFactors() {
			rest = rest.Without(factor)
		}
		if len(rest) < len(strata[i].Shared) {
			groups[rest.Key()] = append(groups[rest.Key()], i)
		}
	}
	for _, g := range groups {
		for _, i := range g {
			out[i].loads = g
		}
	}
	return out
}

// onlyLoad says that two cells differ in the load alone.
func onlyLoad(a, b record.Cell) bool {
	if len(a) != len(b) {
		return false
	}
	differs := false
	for _, l := range a {
		switch v, ok := b.Get(l.Factor); {
		case !ok || v != l.Value && !slices.Contains(loadFactors(), l.Factor):
			return false
		case v != l.Value:
			differs = true
		}
	}
	return differs
}

func familyKey(shared record.Cell, without string) string {
	var b strings.Builder
	b.WriteString(without)
	b.WriteByte(' ')
	b.WriteString(shared.Without(without).Key())
	return b.String()
}

// levelOf is a stratum's level of the first of some factors that it has.
func levelOf(shared record.Cell, factors []string) (name string, v float64) {
	for _, f := range factors {
		if text, ok := shared.Get(f); ok {
			if v, ok := number(text); ok {
				return f, v
			}
		}
	}
	return "", 0
}
