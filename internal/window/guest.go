package window

import (
	"maps"
	"slices"
	"strings"

	"tare/record"
)

// guest reduces the rates of single processors of guests to the samples record.GuestCores
// and record.GuestBusiest.
func guest(rates []record.Sample) []record.Sample {
	type key struct{ endpoint, of string }
	modes, all, idle := map[key]float64{}, map[key]float64{}, map[key]float64{}
	for i := range rates {
		s := &rates[i]
		if s.Name != record.GuestCPU+record.RateSuffix {
			continue
		}
		endpoint, cpu, mode := s.Labels.Get(record.LabelEndpoint), s.Labels.Get(record.LabelCPU), s.Labels.Get(record.LabelMode)
		modes[key{endpoint, mode}] += s.Value
		all[key{endpoint, cpu}] += s.Value
		if mode == "idle" || mode == "iowait" {
			idle[key{endpoint, cpu}] += s.Value
		}
	}
	// The guest's own time counts, which may pass at another speed than the host's.
	busiest := map[string]float64{}
	for k, whole := range all {
		if whole > 0 {
			busiest[k.endpoint] = max(busiest[k.endpoint], 1-idle[k]/whole)
		}
	}
	var out []record.Sample
	add := func(name string, u record.Unit, v float64, labels ...string) {
		out = append(out, record.Sample{Name: name, Labels: record.MakeLabels(labels...), Unit: u, Kind: record.Value, Value: v})
	}
	for _, k := range slices.SortedFunc(maps.Keys(modes), func(a, b key) int { return strings.Compare(a.endpoint+"\x00"+a.of, b.endpoint+"\x00"+b.of) }) {
		add(record.GuestCores, record.Cores, modes[k], record.LabelEndpoint, k.endpoint, record.LabelMode, k.of)
	}
	for _, endpoint := range slices.Sorted(maps.Keys(busiest)) {
		add(record.GuestBusiest, record.Fraction, busiest[endpoint], record.LabelEndpoint, endpoint)
	}
	return out
}
