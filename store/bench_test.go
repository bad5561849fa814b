package store

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkAppend stores trials as a real study does, flushed to the disk, and
// reports quantiles over the single appends. The folder is in TMPDIR: give one
// on the disk that is to be measured, not a tmpfs, which flushes for nothing.
func BenchmarkAppend(b *testing.B) {
	s := newStore(b)
	took := make([]time.Duration, 0, 1024)
	for i := 1; b.Loop(); i++ {
		b.StopTimer()
		tr, ev := testTrial(i)
		ev.Raw[0].Data = ev.Raw[0].Data[:min(len(ev.Raw[0].Data), 8<<10)]
		b.StartTimer()
		start := time.Now()
		if err := s.Append(b.Context(), tr, ev); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	at := func(q float64) float64 { return took[int(q*float64(len(took)-1))].Seconds() * 1e3 }
	b.ReportMetric(at(0.5), "ms-p50")
	b.ReportMetric(at(0.99), "ms-p99")
	b.ReportMetric(at(1), "ms-max")
}

// BenchmarkTrials reads results of a thousand trials.
func BenchmarkTrials(b *testing.B) {
	s := newStore(b)
	appendN(b, s, 1, 1000)
	for b.Loop() {
		if _, err := s.Trials(); err != nil {
			b.Fatal(err)
		}
	}
}
