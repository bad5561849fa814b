package pace_test

import (
	"math"
	"testing"
	"time"

	"tare/workload/objects/pace"
)

// TestDue: each way, by when some of 1,000 requests are due.
func TestDue(t *testing.T) {
	for text, want := range map[string]map[int]time.Duration{
		"100":               {0: 0, 1: 10 * time.Millisecond, 999: 9990 * time.Millisecond},
		"100 burst 20":      {0: 0, 19: 0, 20: 10 * time.Millisecond, 999: 9800 * time.Millisecond},
		"burst 20 every 1s": {0: 0, 19: 0, 20: time.Second, 999: 49 * time.Second},
		"within 30s":        {0: 0, 500: 15 * time.Second, 999: 29970 * time.Millisecond},
		"0.5":               {0: 0, 10: 20 * time.Second},
	} {
		p, err := pace.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		due := p.Due(1000, 1)
		for i, at := range want {
			if got := due(i).Round(time.Microsecond); got != at {
				t.Errorf("%s: request %d is due after %s, want %s", text, i, got, at)
			}
		}
	}
}

// TestDrawn: random ways have the mean and the spread of their distribution, and are the same with the same seed.
func TestDrawn(t *testing.T) {
	const n = 20_000
	for text, want := range map[string]struct{ mean, deviation float64 }{ // of the times between two requests, in seconds
		"random 100":          {0.01, 0.01 / math.Sqrt(3)},
		"poisson 100":         {0.01, 0.01},
		"anytime within 200s": {0.01, 0.01},
	} {
		p, err := pace.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		due, again := p.Due(n, 7), p.Due(n, 7)
		sum, squares := 0.0, 0.0
		for i := 1; i < n; i++ {
			d := (due(i) - due(i-1)).Seconds()
			if d < 0 || due(i) != again(i) {
				t.Fatalf("%s: request %d is due after %s, the one before after %s, and in another run after %s", text, i, due(i), due(i-1), again(i))
			}
			sum, squares = sum+d, squares+d*d
		}
		mean := sum / (n - 1)
		deviation := math.Sqrt(squares/(n-1) - mean*mean)
		if math.Abs(mean/want.mean-1) > 0.05 || math.Abs(deviation/want.deviation-1) > 0.05 {
			t.Errorf("%s: mean %g, deviation %g; want %g and %g", text, mean, deviation, want.mean, want.deviation)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, text := range []string{"", "-1", "x", "1e9", "NaN", "random", "random 0", "poisson -1", "burst 0 every 1s", "burst 5 every 0s", "within 0s", "within 2h", "0 burst 5", "100 burst x", "burst 5", "1e-9"} {
		if p, err := pace.Parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, p)
		}
	}
	if p, err := pace.Parse("0"); err != nil || p.Due(5, 1) != nil {
		t.Errorf("0 is no closed loop: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"100", "100 burst 20", "random 5", "burst 20 every 1s", "anytime within 3s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := pace.Parse(text)
		if err != nil {
			return
		}
		if due := p.Due(10, 1); due != nil && (due(0) < 0 || due(9) < due(0)) {
			t.Errorf("%q: due after %s and %s", text, due(0), due(9))
		}
		if p.Rate(10) < 0 || p.Takes(10) < 0 {
			t.Errorf("%q: rate %g, takes %s", text, p.Rate(10), p.Takes(10))
		}
	})
}
