package study

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/param"
)

// Mixed returns the strata for which Stop.Tune looks for one level, and their weights, which sum to 1. It
// returns none without Stop.Mix. A workload divides its weight evenly among its strata.
func (s *Study) Mixed() (strata []int, weights []float64) {
	of := func(i int) string {
		label, _ := s.Strata[i].Shared.Get(FactorWorkload)
		return label
	}
	count := map[string]float64{}
	for i := range s.Strata {
		if s.Stop.Mix[of(i)] > 0 {
			strata = append(strata, i)
			count[of(i)]++
		}
	}
	sum := 0.0
	for _, i := range strata {
		weights = append(weights, s.Stop.Mix[of(i)]/count[of(i)])
		sum += weights[len(weights)-1]
	}
	for k := range weights {
		weights[k] /= sum
	}
	return strata, weights
}

// mixOf reads the weights of workloads for which stop.tune looks for one level.
func (d *draft) mixOf(stop *yaml.Node) {
	n := find(stop, "mix")
	if empty(n) || d.study.Stop.Objective != nil {
		return
	}
	if d.study.Stop.Tune == 0 {
		d.bad(n, "add tune: 90%, or remove mix", "mix has no effect without tune")
		return
	}
	var all []string
	for _, w := range d.loads {
		all = append(all, w.label)
	}
	d.study.Stop.Mix = map[string]float64{}
	for _, p := range d.entries(d.mapping(n, "mix"), "mix") {
		label := p.key.Value
		if !slices.Contains(all, label) {
			if _, set := d.origin[p.key]; set || !d.relaxed {
				d.bad(p.key, param.Suggest(label, all), "there is no workload %q in this study", label)
			}
			continue
		}
		t, ok := d.text(p.val, "the weight of "+label)
		if !ok {
			continue
		}
		w, err := strconv.ParseFloat(t, 64)
		if err != nil || !(w > 0) || w > maxWeight {
			d.bad(p.val, "write a positive number, such as 2", "the weight %q of %s is not possible", t, label)
			continue
		}
		d.study.Stop.Mix[label] = w
	}
	d.sameLevels(n)
}

// maxWeight also refuses infinity.
const maxWeight = 1e9

// sameLevels refuses a mix without a common list of levels.
func (d *draft) sameLevels(n *yaml.Node) {
	strata, _ := d.study.Mixed()
	var first []string
	for k, i := range strata {
		var own []string
		for _, c := range d.study.Strata[i].Cells {
			own = append(own, d.study.Treatment(i, c).String())
		}
		if k == 0 {
			first = own
		}
		if !slices.Equal(own, first) {
			d.bad(n, "give them the same levels of "+d.study.Compare+", or take one out of the mix", "the mix has no common levels: %s has %s, and %s has %s",
				d.study.Strata[strata[0]].Shared, strings.Join(first, ", "), d.study.Strata[i].Shared, strings.Join(own, ", "))
			return
		}
	}
}
