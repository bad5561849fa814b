package model_test

import (
	"fmt"
	"testing"

	"tare/model"
)

func TestAblate(t *testing.T) {
	bad := 0
	for i, what := range model.Causes() {
		for k := range 6 {
			seed := uint64(1000*i + k)
			c, err := model.DrawWith(seed, what)
			if err != nil {
				t.Fatal(err)
			}
			c.Load.Warmup, c.Load.Duration = 0.1, 0.3
			run := func(c model.Config) float64 {
				r, err := model.Run(c)
				if err != nil {
					t.Fatal(err)
				}
				return r.Totals.Response(c)
			}
			base := run(c)
			line := fmt.Sprintf("%s %d %s c%d s%d:", what, seed, c.Load.Mode, c.Load.Connections, c.Load.Size)
			best, bw := 0.0, model.None
			for _, w := range model.Causes()[1:] {
				g := run(model.Relieve(c, w)) / base
				if g > best {
					best, bw = g, w
				}
				if g > 1.08 || w == what {
					line += fmt.Sprintf(" %s=%.2f", w, g)
				}
			}
			if what == model.None && best > 1.1 || what != model.None && (bw != what || best < 1.25) {
				line += " BAD"
				bad++
			}
			fmt.Println(line)
		}
	}
	fmt.Println("bad", bad)
}
