package plot

import (
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"tare/analyse"
	"tare/record"
	"tare/study"
)

// lab makes studies of known values.
type lab struct {
	factors []study.Factor // without workload
	blocks  int
	fail    func(record.Cell) bool
	skip    func(record.Cell) string
	compare string
}

func sizes() lab {
	return lab{blocks: 4, compare: "sandbox", factors: []study.Factor{
		{Name: "sandbox", Levels: []string{"runc", "process", "runsc"}},
		{Name: "size", Levels: []string{"64KiB", "1B", "4KiB"}},
		{Name: "connections", Levels: []string{"1", "16"}},
	}}
}

// truth is the value of a cell in a block: what its levels multiply to, times a
// little that depends on cell and block.
func truth(c record.Cell, block int) float64 {
	v := 1000.0
	for _, l := range c {
		switch l.Value {
		case "runc":
			v *= 1.3
		case "runsc":
			v *= 3
		case "64KiB":
			v *= 2
		case "16":
			v *= 1.6
		}
	}
	h := fnv.New32a()
	fmt.Fprint(h, c.Key(), block)
	return v * (1 + float64(h.Sum32()%1000)/20000)
}

func (l lab) source() Source {
	st := &study.Study{Name: "sizes", Compare: l.compare, Baseline: "process", Factors: append([]study.Factor{{Name: "workload", Levels: []string{"rr"}}}, l.factors...),
		Workloads: []study.Workload{{Label: "rr", Kind: "net", Responses: []string{"rate", "latency"}}},
		Stop:      study.Stop{Fixed: l.blocks, Confidence: 0.95, Width: 0.015, Margin: 0.03}}
	cells := []record.Cell{{{Factor: "workload", Value: "rr"}}}
	for _, f := range l.factors {
		var next []record.Cell
		for _, c := range cells {
			for _, v := range f.Levels {
				next = append(next, append(c.Without(), record.Level{Factor: f.Name, Value: v}))
			}
		}
		cells = next
	}
	at := map[string]int{}
	var src Source
	var skips []record.Skip
	for _, c := range cells {
		shared := c.Without(l.compare)
		i, ok := at[shared.Key()]
		if !ok {
			i = len(st.Strata)
			at[shared.Key()] = i
			st.Strata = append(st.Strata, study.Stratum{Key: shared.Key(), Shared: shared, Baseline: -1})
		}
		s := &st.Strata[i]
		if v, _ := c.Get(l.compare); v == st.Baseline {
			s.Baseline = len(s.Cells)
		}
		s.Cells = append(s.Cells, c)
		if l.skip != nil && l.skip(c) != "" {
			skips = append(skips, record.Skip{Cell: c, Reason: l.skip(c)})
			continue
		}
		for b := range l.blocks {
			v := truth(c, b+1)
			t := record.Trial{Seq: len(src.Trials) + 1, Block: b + 1, Attempt: 1, Cell: c, Status: record.OK, Start: time.Unix(int64(len(src.Trials)), 0),
				Samples: []record.Sample{{Name: "rate", Unit: record.PerSecond, Value: v}, {Name: "latency", Unit: record.Second, Value: 1 / v}}}
			if l.fail != nil && l.fail(c) {
				t.Status, t.Samples = record.Failed, nil
				t.Failure = &record.Failure{Phase: "measure", Kind: "died", Reason: "it died"}
			}
			src.Trials = append(src.Trials, t)
		}
	}
	src.Study = st
	src.Hosts = []record.Host{{Hostname: "lab", CPUModel: "Imagined 1 GHz", Threads: 2}}
	src.Tare = "v1"
	src.Result = analyse.Analyse(st, src.Trials, skips, analyse.Describe(func(study.Workload) []record.Response {
		return []record.Response{{Name: "rate", Unit: record.PerSecond, Better: record.Higher}, {Name: "latency", Unit: record.Second, Better: record.Lower}}
	}))
	return src
}

// mean is the geometric mean of a cell's values, and the ends of its 95 % interval
// for four blocks: Student's t with three degrees of freedom is 3.182446.
func mean(values []float64) (m, lo, hi float64) {
	var sum, squares float64
	for _, v := range values {
		sum += math.Log(v)
	}
	n := float64(len(values))
	for _, v := range values {
		squares += (math.Log(v) - sum/n) * (math.Log(v) - sum/n)
	}
	half := 3.182446305284263 * math.Sqrt(squares/(n-1)/n)
	return math.Exp(sum / n), math.Exp(sum/n - half), math.Exp(sum/n + half)
}

func near(a, b, relative float64) bool {
	return math.Abs(a-b) <= relative*math.Max(math.Abs(a), math.Abs(b))
}
