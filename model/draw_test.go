package model_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tare/model"
)

// response runs c for a short time.
func response(t *testing.T, c model.Config) float64 {
	t.Helper()
	c.Load.Warmup, c.Load.Duration = 0.1, 0.3
	return run(t, c).Totals.Response(c)
}

// TestDrawnHaveOneBottleneck relieves each resource of random configurations in
// turn: the planted one must help most, and by far.
func TestDrawnHaveOneBottleneck(t *testing.T) {
	start := uint64(time.Now().UnixNano())
	t.Log("seed", start)
	each := 3
	if testing.Short() {
		each = 1
	}
	for i, what := range model.Causes() {
		for k := range each {
			seed := start + uint64(i*each+k)
			c, err := model.DrawWith(seed, what)
			if err != nil {
				t.Fatal(err)
			}
			base := response(t, c)
			best, by := 0.0, model.None
			gains := map[model.Cause]float64{}
			for _, w := range model.Causes()[1:] {
				relieved := model.Relieve(c, w)
				if relieved == c {
					continue
				}
				gains[w] = response(t, relieved) / base
				if gains[w] > best {
					best, by = gains[w], w
				}
			}
			switch {
			case what == model.None && best > 1.1:
				t.Errorf("seed %d: nothing was planted, and relieving %s helps: %v", seed, by, gains)
			case what != model.None && (by != what || best < 1.2):
				t.Errorf("seed %d: %s was planted, and relieving %s helps most: %v\n%+v", seed, what, by, gains, c)
			}
		}
	}
}

func TestDraw(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	seen := map[model.Cause]int{}
	for i := range uint64(60) {
		c, what, err := model.Draw(seed + i)
		if err != nil {
			t.Fatal(err)
		}
		again, same, _ := model.Draw(seed + i)
		if c != again || what != same {
			t.Fatalf("seed %d draws two things: %s %+v\n%s %+v", seed+i, what, c, same, again)
		}
		seen[what]++
	}
	if len(seen) < 8 {
		t.Errorf("60 draws have only %v", seen)
	}
}

func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*model.Config){
		"isolation":      func(c *model.Config) { c.Isolation = "jail" },
		"mode":           func(c *model.Config) { c.Load.Mode = "ring" },
		"has no rate":    func(c *model.Config) { c.Load.Mode, c.Load.Rate = model.Stream, 5 },
		"connections":    func(c *model.Config) { c.Load.Connections = 0 },
		"size":           func(c *model.Config) { c.Load.Size = 2 << 20 },
		"duration":       func(c *model.Config) { c.Load.Duration = 0 },
		"helper threads": func(c *model.Config) { c.Helper.Threads = 2 },
		"quota 0.001":    func(c *model.Config) { c.Quota.Cores = 0.001 },
		"quota slice":    func(c *model.Config) { c.Quota.Slice = 1 },
		"link rate":      func(c *model.Config) { c.Path.LinkRate = 0 },
		"noise":          func(c *model.Config) { c.Noise.Op = 2 },
	} {
		c := model.Default()
		change(&c)
		if _, err := model.Run(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := model.Default().Sized(1, -1); err == nil {
		t.Error("a negative limit")
	}
}
