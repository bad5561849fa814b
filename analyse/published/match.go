package published

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/param"
	"tare/study"
)

// mapping says which workload of a study measures a figure, and how it differs from the
// published experiment.
type mapping struct {
	Kind     string            // of the workload
	Isolate  string            // the isolated endpoint; "": server, or the only end
	Params   map[string]string // values that the workload must have: alternatives separated by "|", an empty one for "not given"
	Theirs   map[string]string // values of the guide, in the same form, which the workload need not have
	Response string
	Other    []string // differences from the published experiment
}

// find returns the strata that match the mapping, in the study's order. A workload that does
// not compare the response does not match, because it has no ratio.
func find(st *study.Study, m mapping) []int {
	var out []int
	for i := range st.Strata {
		s := &st.Strata[i]
		if s.Workload < 0 || s.Workload >= len(st.Workloads) {
			continue
		}
		if w := &st.Workloads[s.Workload]; w.Kind == m.Kind && slices.Contains(w.Responses, m.Response) && m.suits(s, w) {
			out = append(out, i)
		}
	}
	return out
}

// suits reports whether a stratum has the mapping's parameters. A parameter is a level of the
// cells, or fixed by the workload, or has its default, which only the workload's package
// knows: the mapping lists it as not given.
func (m *mapping) suits(s *study.Stratum, w *study.Workload) bool {
	for name, want := range m.Params {
		if !oneOf(value(s, w, name), want) {
			return false
		}
	}
	isolate, _ := s.Shared.Get(study.FactorIsolate)
	return cmp.Or(isolate, "server") == cmp.Or(m.Isolate, "server")
}

// value returns a parameter as the study gives it; "" if it does not.
func value(s *study.Stratum, w *study.Workload, name string) string {
	if v, ok := s.Shared.Get(name); ok {
		return v
	}
	return w.Params[name]
}

func oneOf(got, alternatives string) bool {
	for alt := range strings.SplitSeq(alternatives, "|") {
		if same(got, alt) {
			return true
		}
	}
	return false
}

// expected lists the differences of a stratum from the published experiment, parameters
// first.
func (m *mapping) expected(s *study.Stratum, w *study.Workload) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m.Theirs)) {
		got, want := value(s, w, name), m.Theirs[name]
		if oneOf(got, want) {
			continue
		}
		want = strings.ReplaceAll(strings.TrimPrefix(want, "|"), "|", " or ")
		out = append(out, fmt.Sprintf("%s is %s here, and %s in the guide", name, cmp.Or(got, "not given"), want))
	}
	return append(out, m.Other...)
}

// same reports whether two values of a parameter are equal, in any spelling.
func same(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := param.ParseSize(a)
	if y, err := param.ParseSize(b); errX == nil && err == nil {
		return x == y
	}
	d, errD := param.ParseDuration(a)
	if e, err := param.ParseDuration(b); errD == nil && err == nil {
		return d == e
	}
	f, errF := strconv.ParseFloat(a, 64)
	g, err := strconv.ParseFloat(b, 64)
	return errF == nil && err == nil && f == g
}
