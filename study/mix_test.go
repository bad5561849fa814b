package study

import (
	"math"
	"strings"
	"testing"
)

// TestMix: the weights of a mix are divided among the strata of their workloads and sum to 1, from the file
// and from an argument.
func TestMix(t *testing.T) {
	const head = "study: s\ncompare: vcpus\nbaseline: 1\nfactors: {sandbox: [vm], vcpus: [1, 2, 4]}\nworkloads:\n  a: {kind: cpu, threads: [1, 2]}\n  b: {kind: noop}\n  c: {kind: noop}\n"
	for _, c := range []struct {
		stop string
		sets []string
		want []float64 // by stratum
	}{
		{"stop: {tune: 90%, mix: {a: 3, b: 1}}\n", nil, []float64{0.375, 0.375, 0.25, 0}},
		{"stop: {tune: best}\n", []string{"stop.mix=a=3,b=1"}, []float64{0.375, 0.375, 0.25, 0}},
		{"stop: {tune: best, mix: {a: 3, b: 1}}\n", []string{"workload=b,c"}, []float64{1, 0}},
		{"stop: {tune: best, mix: {a: 3}}\n", []string{"stop.fixed=3"}, []float64{0, 0, 0, 0}},
	} {
		s, err := Parse("t.yaml", []byte(head+c.stop), testCatalogue(), c.sets)
		if err != nil {
			t.Errorf("%q %v: %v", c.stop, c.sets, err)
			continue
		}
		got := make([]float64, len(s.Strata))
		strata, weights := s.Mixed()
		for k, i := range strata {
			got[i] = weights[k]
		}
		for i, w := range c.want {
			if len(got) != len(c.want) || math.Abs(got[i]-w) > 1e-12 {
				t.Errorf("%q %v: weights %v, want %v", c.stop, c.sets, got, c.want)
				break
			}
		}
	}
	for stop, want := range map[string]string{
		"stop: {mix: {a: 1}}\n":                                                       `t.yaml:9:13: mix has no effect without tune; add tune: 90%, or remove mix`,
		"stop: {tune: best, mix: {x: 1}}\n":                                           `t.yaml:9:26: there is no workload "x" in this study`,
		"stop: {tune: best, mix: {a: 0}}\n":                                           `t.yaml:9:29: the weight "0" of a is not possible; write a positive number`,
		"stop: {tune: best, mix: {a: much}}\n":                                        `t.yaml:9:29: the weight "much" of a is not possible`,
		"exclude: [{workload: b, vcpus: 4}]\nstop: {tune: best, mix: {a: 1, b: 1}}\n": `t.yaml:10:25: the mix has no common levels: workload=a,sandbox=vm,threads=1 has vcpus=1, vcpus=2, vcpus=4, and workload=b,sandbox=vm has vcpus=1, vcpus=2; give them the same levels of vcpus`,
	} {
		if _, err := Parse("t.yaml", []byte(head+stop), testCatalogue(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", stop, err, want)
		}
	}
}
