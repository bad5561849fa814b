package model_test

import (
	"testing"
	"fmt"
	"time"

	"tare/model"
)

func TestLook(t *testing.T) {
	for _, mode := range []model.Mode{model.RR, model.Stream} {
		for _, conns := range []int{1, 4, 16} {
			for _, size := range []int{16, 256, 4096, 65536} {
				for _, lim := range []float64{0, 1, 8} {
					line := fmt.Sprintf("%s c%d s%d L%g:", mode, conns, size, lim)
					for _, d := range []int{0, 1, 2, 4, 9} {
						c := model.Default()
						c.Load.Mode, c.Load.Connections, c.Load.Size = mode, conns, size
						if d == 0 {
							c = c.Native(lim)
						} else {
							c, _ = c.Sized(d, lim)
						}
						t0 := time.Now()
						r, err := model.Run(c)
						if err != nil {
							t.Fatal(err)
						}
						el := time.Since(t0)
						if mode == model.RR {
							line += fmt.Sprintf("  %.1fus/%.2fc", r.Totals.Latency*1e6, r.Totals.CPU/r.Totals.Window)
						} else {
							line += fmt.Sprintf("  %.2fGb/%.2fc", r.Totals.Bytes/r.Totals.Window*8e-9, r.Totals.CPU/r.Totals.Window)
						}
						line += fmt.Sprintf("(%dms %dk)", el.Milliseconds(), r.Totals.Events/1000)
					}
					fmt.Println(line)
				}
			}
		}
	}
}
