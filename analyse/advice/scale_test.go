package advice

import (
	"strconv"
	"testing"

	"tare/analyse/cause"
	"tare/analyse/cpucost"
	"tare/record"
)

// BenchmarkBuild advises on as many cells as the published matrix has, all of them dear.
func BenchmarkBuild(b *testing.B) {
	l := newLab("net", map[string]string{"connections": "16"})
	kinds := cause.Names()
	for i := range 1200 {
		c := at("vm", "default_vcpus", l.in.Factors[2].Levels[i%4], "cpu-limit", l.in.Factors[3].Levels[i/4%4], "size", strconv.Itoa(i/16))
		l.finds(kinds[i%len(kinds)], "vhost", c).Treatment = l.in.Factors[2].Levels[i%4]
		l.measures(c, float64(i+1))
		l.in.Costs = append(l.in.Costs, cpucost.Cost{CellKey: record.CellKey{Cell: c}, Cores: 2, Value: 1})
		l.in.Quotas = append(l.in.Quotas, cpucost.Quota{CellKey: record.CellKey{Cell: c}, Cores: 2})
	}
	for b.Loop() {
		if len(Build(l.in)) == 0 {
			b.Fatal("no advice")
		}
	}
}
