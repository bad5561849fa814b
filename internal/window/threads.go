package window

import (
	"cmp"
	"maps"
	"slices"

	"tare/record"
)

// labelThread is a label of the series of single threads, not of roles.
const labelThread = "tid"

// Names of the collector proc's series of single threads.
const (
	threadCPU  = "thread_cpu_time"
	threadWait = "thread_run_wait"
)

// busiest finds the thread of each role that used the most CPU. One thread is saturated at
// one core, however many threads its role has.
type busiest struct {
	cpu, wait map[threadKey]float64
}

type threadKey struct{ endpoint, role, tid string }

func (b *busiest) take(s *Series, w Span) {
	to := &b.cpu
	if s.Name == threadWait {
		to = &b.wait
	} else if s.Name != threadCPU {
		return
	}
	got := s.Summarise(w)
	if len(got) != 1 {
		return
	}
	if *to == nil {
		*to = map[threadKey]float64{}
	}
	(*to)[threadKey{s.Labels.Get(record.LabelEndpoint), s.Labels.Get(record.LabelRole), s.Labels.Get(labelThread)}] = got[0].Value
}

// samples returns record.ThreadBusiest and record.ThreadBusiestWait, by endpoint and role.
func (b *busiest) samples() []record.Sample {
	top := map[threadKey]threadKey{} // by endpoint and role
	for _, k := range slices.SortedFunc(maps.Keys(b.cpu), compareThreads) {
		of := threadKey{endpoint: k.endpoint, role: k.role}
		if best, ok := top[of]; !ok || b.cpu[k] > b.cpu[best] {
			top[of] = k
		}
	}
	var out []record.Sample
	for _, of := range slices.SortedFunc(maps.Keys(top), compareThreads) {
		labels := record.MakeLabels(record.LabelEndpoint, of.endpoint, record.LabelRole, of.role)
		add := func(name string, v float64) {
			out = append(out, record.Sample{Name: name, Labels: labels, Unit: record.Cores, Kind: record.Value, Value: v})
		}
		add(record.ThreadBusiest, b.cpu[top[of]])
		if v, ok := b.wait[top[of]]; ok {
			add(record.ThreadBusiestWait, v)
		}
	}
	return out
}

func compareThreads(a, b threadKey) int {
	return cmp.Or(cmp.Compare(a.endpoint, b.endpoint), cmp.Compare(a.role, b.role), cmp.Compare(a.tid, b.tid))
}
