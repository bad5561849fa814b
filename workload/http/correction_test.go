package httpload

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// correct is stats_correct of wrk, src/stats.c.
func correct(data map[int64]int64, expected, largest int64) {
	for n := expected * 2; n <= largest; n++ {
		count := data[n]
		for m := n - expected; count > 0 && m > expected; m -= expected {
			data[m] += count
		}
	}
}

func pairsOf(data map[int64]int64) [][2]int64 {
	var out [][2]int64
	for _, v := range slices.Sorted(maps.Keys(data)) {
		if data[v] > 0 {
			out = append(out, [2]int64{v, data[v]})
		}
	}
	return out
}

// TestUncorrect: what wrk adds is taken out again, whatever was measured.
func TestUncorrect(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		data := map[int64]int64{}
		largest := 1 + rng.Int64N(3000)
		for range 1 + rng.IntN(400) {
			data[rng.Int64N(largest+1)] += 1 + rng.Int64N(3)
		}
		data[largest]++
		interval := 1 + rng.Int64N(largest+5)
		want := pairsOf(data)
		correct(data, interval, largest)
		got, err := uncorrect(pairsOf(data), interval)
		if err != nil {
			t.Fatalf("interval %d: %v", interval, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("interval %d: -want +got\n%s", interval, d)
		}
	}
}

func TestUncorrectRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		pairs    [][2]int64
		interval int64
	}{
		"nothing added":   {[][2]int64{{10, 1}, {100, 1}}, 10},
		"too few added":   {[][2]int64{{10, 1}, {20, 1}, {30, 2}}, 10},
		"falling values":  {[][2]int64{{10, 1}, {9, 1}}, 100},
		"negative value":  {[][2]int64{{-1, 1}}, 100},
		"counted not":     {[][2]int64{{1, 0}}, 100},
		"no interval":     {[][2]int64{{1, 1}}, 0},
		"beyond all time": {[][2]int64{{maxLatency, 1}}, 100},
	} {
		if got, err := uncorrect(c.pairs, c.interval); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
