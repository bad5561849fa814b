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
	const head = "study: s\nfactors: {sandbox: [vm], vcpus: [1, 2, 4]}\nworkloads:\n  a: {kind: cpu, threads: [1, 2, 4]}\n"
	for _, c := range []struct {
		text    string
		sets    []string
		compare string
		factors string
		places  string // of the first stratum, after the cells that exclude removes
	}{
		{"stop: {tune: 90%, factors: [vcpus, threads]}\n", nil, "vcpus", "[vcpus threads]", "[[0 0] [0 1] [0 2] [1 0] [1 1] [1 2] [2 0] [2 1] [2 2]]"},
		{"stop: {tune: best, factors: [threads, vcpus]}\ncompare: threads\n", nil, "threads", "[threads vcpus]", "[[0 0] [1 0] [2 0] [0 1] [1 1] [2 1] [0 2] [1 2] [2 2]]"},
		{"exclude: [{vcpus: 1, threads: 1}]\n", []string{"stop.tune=best", "stop.factors=vcpus,threads"}, "vcpus", "[vcpus threads]", "[[0 1] [0 2] [1 0] [1 1] [1 2] [2 0] [2 1] [2 2]]"},
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
	const more = "study: s\nfactors: {sandbox: [vm], vcpus: [1, 2, 4], cpu-limit: [1, 2], memory-limit: [1GiB, 2GiB]}\nworkloads:\n  a: {kind: cpu, threads: [1, 2, 4]}\n"
	for text, want := range map[string]string{
		"stop: {tune: best, factors: [vcpus, threads, sandbox, cpu-limit, memory-limit]}\n": `t.yaml:5:66: more than 4 factors are tuned together; tune the others afterwards`,
		"apply: {cpu-limit: {vcpus: [2]}}\nstop: {tune: best, factors: [vcpus, threads]}\n": `t.yaml:6:29: vcpus=2,cpu-limit=1,threads=1 and vcpus=2,cpu-limit=2,threads=1 are the same levels of the tuned factors; give the other factors one level, or add the one in which they differ`,
	} {
		if _, err := Parse("t.yaml", []byte(more+text), testCatalogue(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestTunedInOrder: numbers among the levels of a tuned factor rise or fall; words are in the user's order. Levels that only compare
// need no order, and a study of results is read as it was.
func TestTunedInOrder(t *testing.T) {
	const head = "study: s\nfactors: {sandbox: [vm], vcpus: [4, 1, 2]}\nworkloads:\n  a: {kind: cpu, threads: %s}\n"
	for _, c := range []struct {
		threads, stop string
		sets          []string
		want          string
	}{
		{"1", "compare: vcpus\nstop: {tune: 90%}", nil, "t.yaml:2:26: the levels of vcpus are not in order, and the lowest of them is asked for: 4, 1, 2; write 1, 2, 4"},
		{"1", "compare: vcpus", []string{"stop.tune=best"}, "t.yaml:2:26: the levels of vcpus are not in order"},
		{"1", "compare: vcpus\nstop: {tune: 90%}", []string{"vcpus=2,4,1"}, "write 1, 2, 4"},
		{"1", "compare: vcpus\nstop: {tune: 90%}", []string{"vcpus=1,2,4"}, ""},
		{"1", "compare: vcpus\nstop: {tune: 90%}", []string{"vcpus=4,2,1"}, ""},
		{"1", "compare: vcpus", nil, ""},
		{"1", "compare: vcpus\nstop: {tune: 90%}\ninclude: [{vcpus: 3}]", []string{"vcpus=1,2,4"}, ""}, // --set decides which levels there are
		{"[1, 4]", "compare: threads\nstop: {tune: 90%}\ninclude: [{threads: 2}]", []string{"vcpus=1"}, "the levels of threads are not in order, and the lowest of them is asked for: 1, 4, 2; write 1, 2, 4"},
		{"[1, 4, 2]", "stop: {tune: 90%, factors: [vcpus, threads]}", []string{"vcpus=1,2"}, "the levels of threads are not in order"},
		{"1", "compare: cpu-limit\nstop: {tune: 90%}", []string{"vcpus=1", "cpu-limit=none,1,2"}, ""},
		{"1", "compare: cpu-limit\nstop: {tune: 90%}", []string{"vcpus=1", "cpu-limit=2,none,4,3"}, "write 2, none, 3, 4"},
		{"1", "compare: memory-limit\nstop: {tune: 90%}", []string{"vcpus=1", "memory-limit=512MiB,1GiB"}, ""},
		{"1", "compare: memory-limit\nstop: {tune: 90%}", []string{"vcpus=1", "memory-limit=1GiB,512MiB,2GiB"}, "write 512MiB, 1GiB, 2GiB"},
	} {
		cat := testCatalogue()
		text := []byte(fmt.Sprintf(head, c.threads) + c.stop + "\n")
		_, err := Parse("t.yaml", text, cat, c.sets)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("threads %s, %q %v: %v, want %q", c.threads, c.stop, c.sets, err, c.want)
		}
		cat.Stored = true
		if _, err := Parse("t.yaml", text, cat, c.sets); err != nil {
			t.Errorf("stored, %q %v: %v", c.stop, c.sets, err)
		}
	}
}
