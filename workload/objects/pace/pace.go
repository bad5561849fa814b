// Package pace says when requests are due: the ways that the tuning sets of clusterloader2 know, and bursts.
//
// The data path: 1. Parse reads the words of a study; readers of other tools' files make a Pace themselves; 2. Pace.Due tells when
// each of a number of requests is due. Random ones are drawn once, from a seed, so that a load can be repeated.
//
// Reference: clusterloader2/api/types.go of kubernetes/perf-tests, TuningSet.
package pace

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/param"
)

// How is the way in which requests are spread.
type How string

// Ways.
const (
	Closed  How = ""        // none is due before a worker is free: a closed loop
	Even    How = "even"    // PerSecond; the first Burst at once
	Random  How = "random"  // at a mean of PerSecond, the times between them even between 0 and twice the mean
	Poisson How = "poisson" // at a mean of PerSecond, independent of each other
	Bursts  How = "burst"   // Burst at once, and again after Every
	Within  How = "within"  // evenly within Every
	Anytime How = "anytime" // at any moment within Every
)

// Pace is when requests are due. The zero value is a closed loop.
type Pace struct {
	How       How
	PerSecond float64
	Burst     int
	Every     time.Duration
}

// Bounds.
const (
	maxRate  = 10_000
	maxBurst = 100_000
	maxEvery = time.Hour
)

// Words is how a study writes a pace.
const Words = "a number a second, such as 100 or 100 burst 20; random 100; poisson 100; burst 20 every 1s; within 30s; anytime within 30s; or 0 for a closed loop"

// Parse reads a pace in a study's words.
func Parse(text string) (Pace, error) {
	w := strings.Fields(text)
	var p Pace
	var err error
	switch {
	case len(w) == 1:
		p.How = Even
		p.PerSecond, err = perSecond(w[0])
	case len(w) == 3 && w[1] == "burst":
		p.How = Even
		p.PerSecond, err = perSecond(w[0])
		if err == nil {
			p.Burst, err = burst(w[2])
		}
	case len(w) == 2 && (w[0] == string(Random) || w[0] == string(Poisson)):
		p.How = How(w[0])
		p.PerSecond, err = perSecond(w[1])
	case len(w) == 4 && w[0] == "burst" && w[2] == "every":
		p.How = Bursts
		if p.Burst, err = burst(w[1]); err == nil {
			p.Every, err = every(w[3])
		}
	case len(w) == 2 && w[0] == string(Within):
		p.How = Within
		p.Every, err = every(w[1])
	case len(w) == 3 && w[0] == string(Anytime) && w[1] == string(Within):
		p.How = Anytime
		p.Every, err = every(w[2])
	default:
		err = fmt.Errorf("%q is not a rate", text)
	}
	if err != nil {
		return Pace{}, fmt.Errorf("%w; write %s", err, Words)
	}
	if slices.Contains([]How{Even, Random, Poisson}, p.How) && p.PerSecond == 0 {
		if p.How != Even || p.Burst > 0 {
			return Pace{}, errors.New("a rate of 0 is a closed loop; write only 0")
		}
		return Pace{}, nil
	}
	return p, nil
}

func perSecond(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || x < 0 || x > maxRate || x > 0 && x < 1e-3 {
		return 0, fmt.Errorf("%q is not a rate from 0.001 to %d a second", text, maxRate)
	}
	return x, nil
}

func burst(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxBurst {
		return 0, fmt.Errorf("%q is not a number of requests from 1 to %d", text, maxBurst)
	}
	return n, nil
}

func every(text string) (time.Duration, error) {
	d, err := param.ParseDuration(text)
	if err != nil || d <= 0 || d > maxEvery {
		return 0, fmt.Errorf("%q is not a time of at most an hour", text)
	}
	return d, nil
}

// Rate is how many of n requests are due in a second; 0: none is, or all are at once.
func (p Pace) Rate(n int) float64 {
	switch p.How {
	case Closed:
		return 0
	case Bursts:
		return float64(p.Burst) / p.Every.Seconds()
	case Within, Anytime:
		return float64(n) / p.Every.Seconds()
	}
	return p.PerSecond
}

// Takes is about how long it takes until the last of n requests is due.
func (p Pace) Takes(n int) time.Duration {
	if r := p.Rate(n); r > 0 {
		return time.Duration(float64(max(0, n-p.Burst)) / r * float64(time.Second))
	}
	return 0
}

// Due returns when each of n requests is due, from the first one's moment on. Later requests are not due earlier. It is nil for a
// closed loop.
func (p Pace) Due(n int, seed int) func(i int) time.Duration {
	second := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	switch p.How {
	case Even:
		return func(i int) time.Duration { return second(float64(max(0, i-max(0, p.Burst-1))) / p.PerSecond) }
	case Bursts:
		return func(i int) time.Duration { return time.Duration(i/p.Burst) * p.Every }
	case Within:
		return func(i int) time.Duration { return second(p.Every.Seconds() * float64(i) / float64(n)) }
	case Random, Poisson, Anytime:
		return p.drawn(n, rand.New(rand.NewPCG(uint64(max(0, seed)), 1))) //nolint:gosec // a load, no secret
	}
	return nil
}

// drawn draws the moments of n requests.
func (p Pace) drawn(n int, r *rand.Rand) func(i int) time.Duration {
	moments := make([]time.Duration, n)
	now := 0.0
	for i := range moments {
		if p.How == Anytime {
			now = p.Every.Seconds() * r.Float64()
		}
		moments[i] = time.Duration(now * float64(time.Second))
		switch p.How {
		case Random:
			now += 2 * r.Float64() / p.PerSecond
		case Poisson:
			now += r.ExpFloat64() / p.PerSecond
		}
	}
	slices.Sort(moments)
	return func(i int) time.Duration { return moments[i] }
}
