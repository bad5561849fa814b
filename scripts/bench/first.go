package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	"tare/analyse/stat"
)

// wide is the half-width above which an interval is of little use.
const wide = 0.25

// firstStudy is what the study that `make run` runs tells in its time: how many of its rows are decided,
// and how wide their intervals are.
func (b *bench) firstStudy(ctx context.Context) ([]row, error) {
	var rounds []sharpness
	for i := range b.wants(1) {
		dir := filepath.Join(b.work, "first"+strconv.Itoa(i))
		if _, err := b.used(ctx, nil, "run", b.study, "--wait", "--results", dir); err != nil {
			return nil, err
		}
		out, err := exec.CommandContext(ctx, b.tare, "report", dir, "--json").Output() //nolint:gosec // the binary under test
		if err != nil {
			return nil, fmt.Errorf("tare report --json: %w", err)
		}
		var s sharpness
		if err := s.add(out); err != nil {
			return nil, err
		}
		rounds = append(rounds, s)
	}
	m := middle(rounds)
	return []row{
		{Figure: fmt.Sprintf("rows of %s that are decided, of %d", filepath.Base(b.study), m.rows), Tare: float64(m.decided), Rounds: len(rounds)},
		row{
			Figure: "the same: median half-width of an interval", Unit: "%", Tare: 100 * m.width, Rounds: len(rounds),
			Note: fmt.Sprintf("%d rows are wider than 25 %% either way", m.wide),
		}.below(5),
	}, nil
}

// sharpness counts the rows of reports: ratios to the baseline.
type sharpness struct {
	rows, decided, wide int
	widths              []float64 // half-widths, relative to the ratio
	width               float64   // their median
}

// middle has the median of each figure over rounds: counts of rounds are not added up.
func middle(rounds []sharpness) (m sharpness) {
	of := func(get func(s *sharpness) float64) float64 {
		var v []float64
		for i := range rounds {
			v = append(v, get(&rounds[i]))
		}
		return median(v)
	}
	m.rows = int(of(func(s *sharpness) float64 { return float64(s.rows) }))
	m.decided = int(of(func(s *sharpness) float64 { return float64(s.decided) }))
	m.wide = int(of(func(s *sharpness) float64 { return float64(s.wide) }))
	m.width = of(func(s *sharpness) float64 { return median(s.widths) })
	return m
}

// add takes in what `report --json` printed.
func (s *sharpness) add(report []byte) error {
	var r struct {
		Comparisons []struct {
			Baseline bool
			Verdict  stat.Verdict
			Estimate *struct{ Ratio, Lo, Hi float64 }
		}
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return fmt.Errorf("tare report --json: %w", err)
	}
	for _, c := range r.Comparisons {
		if c.Baseline {
			continue
		}
		s.rows++
		if c.Verdict.Decided() {
			s.decided++
		}
		if e := c.Estimate; e == nil || !(e.Ratio > 0) || (e.Hi-e.Lo)/2/e.Ratio > wide {
			s.wide++
		}
		if e := c.Estimate; e != nil && e.Ratio > 0 {
			s.widths = append(s.widths, (e.Hi-e.Lo)/2/e.Ratio)
		}
	}
	return nil
}
