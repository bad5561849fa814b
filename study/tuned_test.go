package study

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTunedFactors: factors that are tuned together make one stratum, and each cell has its place in each; the first is the
// compared factor, and one alone is what compare says.
func TestTunedFactors(t *testing.T) {
	const head = "study: s\nfactors: {sandbox: [vm], vcpus: [1, 2, 4]}\nworkloads:\n  a: {kind: cpu, threads: [4, 1, 2]}\n"
	for _, c := range []struct {
		text    string
		sets    []string
		compare string
		factors string
		places  string // of the first stratum, after the cells that exclude removes
	}{
		{"stop: {tune: 90%, factors: [vcpus, threads]}\n", nil, "vcpus", "[vcpus threads]", "[[0 0] [0 1] [0 2] [1 0] [1 1] [1 2] [2 0] [2 1] [2 2]]"},
		{"stop: {tune: best, factors: [threads, vcpus]}\ncompare: threads\n", nil, "threads", "[threads vcpus]", "[[0 0] [1 0] [2 0] [0 1] [1 1] [2 1] [0 2] [1 2] [2 2]]"},
		{"exclude: [{vcpus: 1, threads: 4}]\n", []string{"stop.tune=best", "stop.factors=vcpus,threads"}, "vcpus", "[vcpus threads]", "[[0 1] [0 2] [1 0] [1 1] [1 2] [2 0] [2 1] [2 2]]"},
		{"stop: {tune: best, factors: [vcpus]}\n", nil, "vcpus", "[]", "[]"},
		{"stop: {tune: best, factors: [vcpus, threads]}\n", []string{"stop.fixed=3", "compare=vcpus"}, "vcpus", "[]", "[]"},
	} {
		s, err := Parse("t.yaml", []byte(head+c.text), testCatalogue(), c.sets)
		if err != nil {
			t.Errorf("%q %v: %v", c.text, c.sets, err)
			continue
		}
		if got := fmt.Sprint(s.Strata[0].Places); s.Compare != c.compare || fmt.Sprint(s.Stop.Factors) != c.factors || got != c.places {
			t.Errorf("%q %v: compares %s, tunes %v, places %s", c.text, c.sets, s.Compare, s.Stop.Factors, got)
		}
		if want := slices.Max([]int{1, len(s.Stop.Factors)}); len(s.Tuned()) != want {
			t.Errorf("%q: tuned are %v", c.text, s.Tuned())
		}
		if want := 3 / len(s.Tuned()); len(s.Strata) != max(want, 1) {
			t.Errorf("%q: %d strata", c.text, len(s.Strata))
		}
	}
	for text, want := range map[string]string{
		"stop: {factors: [vcpus, threads]}\n":                                `t.yaml:5:17: factors has no effect without tune; add tune: 90%, or remove factors`,
		"stop: {tune: best, factors: [vcpus, thread]}\n":                     `t.yaml:5:37: "thread" is not a factor of this study`,
		"stop: {tune: best, factors: [vcpu, threads]}\n":                     `t.yaml:5:30: "vcpu" is not a factor of this study`,
		"stop: {tune: best, factors: [vcpus, workload]}\n":                   `t.yaml:5:37: workloads are not levels to choose`,
		"stop: {tune: best, factors: [vcpus, threads]}\ncompare: threads\n":  `t.yaml:5:30: the first tuned factor is vcpus, and the compared factor is threads; write threads first, or compare: vcpus`,
		"  b: {kind: noop}\nstop: {tune: best, factors: [vcpus, threads]}\n": `t.yaml:5:3: workload "b" has cells without a level of the tuned factor threads; remove the workload`,
	} {
		if _, err := Parse("t.yaml", []byte(head+text), testCatalogue(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	const more = "study: s\nfactors: {sandbox: [vm], vcpus: [1, 2, 4], cpu-limit: [1, 2], memory-limit: [1GiB, 2GiB]}\nworkloads:\n  a: {kind: cpu, threads: [4, 1, 2]}\n"
	for text, want := range map[string]string{
		"stop: {tune: best, factors: [vcpus, threads, sandbox, cpu-limit, memory-limit]}\n": `t.yaml:5:66: more than 4 factors are tuned together; tune the others afterwards`,
		"apply: {cpu-limit: {vcpus: [2]}}\nstop: {tune: best, factors: [vcpus, threads]}\n": `t.yaml:6:29: vcpus=2,cpu-limit=1,threads=4 and vcpus=2,cpu-limit=2,threads=4 are the same levels of the tuned factors; give the other factors one level, or add the one in which they differ`,
	} {
		if _, err := Parse("t.yaml", []byte(more+text), testCatalogue(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
