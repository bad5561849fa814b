package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/record"
	"tare/store"
)

const extractHead = `# How much real trials scatter: variance components of measured values, which are not here themselves.
# Made by: go run ./scripts/truth -extract FOLDER... from results of a study with a fixed number of blocks (scripts/truth/components.yaml).
# All of it is in natural logarithms of the values, so that 0.05 is about 5 %.
#   result      number of the results folder
#   workload, response, sandbox  what was measured; baseline: whether the others are compared with this sandbox
#   blocks      that have a value
#   scatter     standard deviation over the blocks
#   together    correlation of the values of two sandboxes in a block: the mean over all pairs of sandboxes of the response
#   ratio       standard deviation of the ratio to the baseline of the same block, over the blocks
#   next_block  correlation of a value with that of the next block; with n blocks it is -1/n on average where there is none
#   next_ratio  the same of the ratio
#   kurtosis    excess kurtosis over the blocks; of eight normal values it is -0.67 on average, and never above 3.1
`

// extractAll prints the variance components of results folders.
func extractAll(ctx context.Context, out io.Writer, dirs []string) error {
	if len(dirs) == 0 {
		return fmt.Errorf("-extract needs a results folder")
	}
	var all []component
	var follow []string
	for i, dir := range dirs {
		cells, err := readResults(ctx, dir)
		if err != nil {
			return err
		}
		of := componentsOf(cells, i+1)
		all = append(all, of...)
		follow = append(follow, fmt.Sprintf("# result %d: %s\n", i+1, following(cells)))
	}
	if len(all) == 0 {
		return fmt.Errorf("there is no response with three blocks in %s; run a study with stop: {fixed: 8}", strings.Join(dirs, ", "))
	}
	if _, err := io.WriteString(out, extractHead+"#\n"+describeAll(all)+strings.Join(follow, "")); err != nil {
		return err
	}
	w := csv.NewWriter(out)
	_ = w.Write(componentColumns()) // Flush and Error tell
	for i := range all {
		_ = w.Write(all[i].record())
	}
	w.Flush()
	return w.Error()
}

// measured are the values of one response of one cell.
type measured struct {
	workload, response, sandbox string
	baseline                    bool
	slow                        float64         // 1 where more is slower, -1 where it is faster
	at                          map[int]float64 // ln value by block
	seq                         map[int]int     // place in the order of execution, by block
	seconds                     map[int]float64 // time of the trial, by block
	first                       bool            // the first response of its workload
}

// plainStudy is as much of a study file as is needed here.
type plainStudy struct {
	Baseline  string
	Compare   string
	Workloads map[string]struct{ Responses []string }
}

// readResults reads the values of the compared responses, in the order of their names.
func readResults(ctx context.Context, dir string) ([]*measured, error) {
	s, err := store.OpenReadOnly(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	meta, err := s.Meta()
	if err != nil {
		return nil, err
	}
	ps := plainStudy{Baseline: "process", Compare: "sandbox"}
	if err := yaml.Unmarshal(meta.StudySource, &ps); err != nil {
		return nil, fmt.Errorf("cannot read the study of %s: %w", dir, err)
	}
	var trials []record.Trial
	common := map[string]map[string]int{} // workload, factor: cells that have it
	cells := map[string]int{}
	known := map[string]bool{}
	for t, err := range s.All(ctx) {
		if err != nil {
			return nil, fmt.Errorf("cannot read the trials of %s: %w", dir, err)
		}
		label, _ := t.Cell.Get("workload")
		if t.Status != record.OK || ps.Workloads[label].Responses == nil {
			continue
		}
		trials = append(trials, t)
		if key := t.Cell.Key(); !known[key] {
			known[key] = true
			cells[label]++
			if common[label] == nil {
				common[label] = map[string]int{}
			}
			for _, l := range t.Cell {
				common[label][l.Factor]++
			}
		}
	}
	byName := map[string]*measured{}
	for i := range trials {
		t := &trials[i]
		label, _ := t.Cell.Get("workload")
		level, _ := t.Cell.Get(ps.Compare)
		workload, box := label, level
		for _, l := range t.Cell {
			switch {
			case l.Factor == "workload" || l.Factor == ps.Compare:
			case common[label][l.Factor] == cells[label]:
				workload += " " + l.Factor + "=" + l.Value
			default: // a level of this sandbox alone
				box += " " + l.Factor + "=" + l.Value
			}
		}
		for r, name := range ps.Workloads[label].Responses {
			v, ok := t.Sample(name)
			if !ok || !(v > 0) || math.IsInf(v, 0) || t.BelowNoise(name) {
				continue
			}
			key := workload + "\x00" + name + "\x00" + box
			m := byName[key]
			if m == nil {
				m = &measured{workload: workload, response: name, sandbox: box, baseline: level == ps.Baseline, slow: slower(t, name),
					at: map[int]float64{}, seq: map[int]int{}, seconds: map[int]float64{}, first: r == 0}
				byName[key] = m
			}
			if t.Seq > m.seq[t.Block] { // the last attempt
				m.at[t.Block], m.seq[t.Block], m.seconds[t.Block] = math.Log(v), t.Seq, t.Duration.Seconds()
			}
		}
	}
	var out []*measured
	for _, key := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[key])
	}
	return out, nil
}

func slower(t *record.Trial, name string) float64 {
	for i := range t.Samples {
		if s := &t.Samples[i]; s.Name == name && (s.Unit == record.PerSecond || s.Unit == record.BytesPerSecond) {
			return -1
		}
	}
	return 1
}

// componentsOf computes them, response by response.
func componentsOf(cells []*measured, result int) []component {
	var out []component
	for i := 0; i < len(cells); {
		j := i
		for j < len(cells) && cells[j].workload == cells[i].workload && cells[j].response == cells[i].response {
			j++
		}
		out = append(out, ofResponse(cells[i:j], result)...)
		i = j
	}
	return out
}

// ofResponse computes the components of one response.
func ofResponse(cells []*measured, result int) []component {
	var base *measured
	var sum, pairs float64
	for i, a := range cells {
		if a.baseline {
			base = a
		}
		for _, b := range cells[:i] {
			if x, y := beside(a, b); len(x) >= 3 && cross(x, x) > 0 && cross(y, y) > 0 {
				sum, pairs = sum+cross(x, y)/math.Sqrt(cross(x, x)*cross(y, y)), pairs+1
			}
		}
	}
	together := 0.0
	if pairs > 0 {
		together = sum / pairs
	}
	var out []component
	for _, m := range cells {
		v := inOrder(m)
		if len(v) < 3 {
			continue
		}
		_, variance := moments(v)
		c := component{result: result, workload: m.workload, response: m.response, sandbox: m.sandbox, baseline: m.baseline,
			blocks: len(v), scatter: math.Sqrt(variance), together: together, ratio: math.NaN(), nextOf: math.NaN(), kurtosis: kurtosis(v), next: lagged(v)}
		if base != nil && m != base {
			if x, y := beside(m, base); len(x) >= 3 {
				for i := range x {
					x[i] -= y[i]
				}
				_, variance := moments(x)
				c.ratio, c.nextOf = math.Sqrt(variance), lagged(x)
			}
		}
		out = append(out, c)
	}
	return out
}

func inOrder(m *measured) []float64 {
	out := make([]float64, 0, len(m.at))
	for _, b := range slices.Sorted(maps.Keys(m.at)) {
		out = append(out, m.at[b])
	}
	return out
}

// beside returns the values of the blocks that both have.
func beside(a, b *measured) (x, y []float64) {
	for _, k := range slices.Sorted(maps.Keys(a.at)) {
		if v, ok := b.at[k]; ok {
			x, y = append(x, a.at[k]), append(y, v)
		}
	}
	return x, y
}

// cross is the sample covariance.
func cross(x, y []float64) float64 {
	mx, _ := moments(x)
	my, _ := moments(y)
	s := 0.0
	for i := range x {
		s += (x[i] - mx) * (y[i] - my)
	}
	return s / float64(len(x)-1)
}

func lagged(v []float64) float64 {
	m, _ := moments(v)
	var up, down float64
	for i, x := range v {
		down += (x - m) * (x - m)
		if i > 0 {
			up += (x - m) * (v[i-1] - m)
		}
	}
	if down == 0 {
		return math.NaN()
	}
	return up / down
}

func kurtosis(v []float64) float64 {
	m, _ := moments(v)
	var s2, s4 float64
	for _, x := range v {
		d := (x - m) * (x - m)
		s2, s4 = s2+d, s4+d*d
	}
	if s2 == 0 {
		return math.NaN()
	}
	return s4*float64(len(v))/(s2*s2) - 3
}

// describeAll sums up all components for who reads the file.
func describeAll(all []component) string {
	var scatter, ratio, logs, kurt, next, nextOf []float64
	chance := 0.0
	for _, c := range all {
		scatter, kurt, next = append(scatter, c.scatter), append(kurt, c.kurtosis), append(next, c.next)
		logs = append(logs, 2*math.Log(c.scatter))
		chance += 2 / float64(c.blocks-1) / float64(len(all))
		if !math.IsNaN(c.ratio) {
			ratio, nextOf = append(ratio, c.ratio), append(nextOf, c.nextOf)
		}
	}
	_, spread := moments(logs)
	mk, _ := moments(kurt)
	mn, _ := moments(next)
	mr, _ := moments(nextOf)
	return fmt.Sprintf("# %d cells: the middle 80 %% of them scatter by %.1f to %.1f %%, the median by %.1f %%; ratios to the baseline by %.1f to %.1f %%, the median by %.1f %%;\n"+
		"# the logarithms of their variances have the variance %.2f, of which %.2f is chance of so few blocks; mean kurtosis %.2f, mean correlation with the next block %.2f, of ratios %.2f.\n",
		len(all), 100*quantile(scatter, 0.1), 100*quantile(scatter, 0.9), 100*quantile(scatter, 0.5),
		100*quantile(ratio, 0.1), 100*quantile(ratio, 0.9), 100*quantile(ratio, 0.5), spread, chance, mk, mn, mr)
}

// following tells how a trial's residual, in standard deviations of its cell and positive
// where it is slow, goes with that of later trials, whatever they measure.
func following(cells []*measured) string {
	last := 0
	z := map[int]float64{}
	first := map[string]string{} // of several responses of a trial only the first
	for _, m := range cells {
		if f, ok := first[m.workload]; ok && f != m.response {
			continue
		}
		first[m.workload] = m.response
		mean, variance := moments(inOrder(m))
		for b, v := range m.at {
			if variance > 0 {
				z[m.seq[b]] = m.slow * (v - mean) / math.Sqrt(variance)
				last = max(last, m.seq[b])
			}
		}
	}
	var words []string
	for _, lag := range []int{1, 2, 5, 10, 20, 50} {
		var sum, n float64
		for i := 1; i+lag <= last; i++ {
			x, ok := z[i]
			y, both := z[i+lag]
			if ok && both {
				sum, n = sum+x*y, n+1
			}
		}
		if n > 0 {
			words = append(words, fmt.Sprintf("%d: %.2f", lag, sum/n))
		}
	}
	return fmt.Sprintf("%d trials; correlation of a trial's residual with that of the trial so many later, %s (chance: %.2f)", len(z), strings.Join(words, ", "), 1/math.Sqrt(float64(max(len(z), 1))))
}
