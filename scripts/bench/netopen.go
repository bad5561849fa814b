package main

import (
	"context"
	"slices"
	"strconv"
)

// openLoop asks for half of the rate that the closed loop reaches and says what
// share of it was achieved, and how late requests began that had nothing to
// wait for: the scheduling error is the driver's own part of the latency.
func (w wire) openLoop(ctx context.Context, rounds int) ([]row, error) {
	asked := row{Figure: "open loop at half the saturation rate: achieved beside asked", Unit: "1/s"}
	var rows []row
	var rates []pair
	late := map[string][]float64{}
	spins := []string{"50us", "0"}
	for range rounds {
		saturated, err := w.trips(1, 1)(ctx)
		if err != nil {
			return nil, err
		}
		rate := saturated / 2
		for _, spin := range spins {
			r, err := w.driver(ctx, "--mode", "rr", "--size", "1", "--rate", strconv.FormatFloat(rate, 'f', 0, 64), "--spin", spin)
			if err != nil {
				return nil, err
			}
			late[spin] = append(late[spin], r.WakeP99)
			if spin == spins[0] {
				rates = append(rates, pair{r.Operations / r.Window, rate})
			}
		}
	}
	rows = append(rows, asked.beside("ratio", "the rate asked for", rates).atLeast(0.999))
	for _, spin := range spins {
		r := row{Figure: "open loop: scheduling error p99", Unit: "s", Tare: quantile(slices.Sorted(slices.Values(late[spin])), 0.5), Rounds: rounds}
		if spin == "0" {
			r.Figure += ", `spin: 0`"
			rows = append(rows, r)
			continue
		}
		rows = append(rows, r.below(50e-6))
	}
	return rows, nil
}
