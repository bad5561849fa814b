package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"tare/record"
	"tare/study"
)

// readings are an exhaustive data set: a value and a time of each cell in each block. Policies are played
// on it, each of which sees only what it asks for.
type readings struct {
	name   string
	rows   []readRow
	blocks int
	truth  [][]float64 // ln of the true ratio, by row and treatment; nil: not known
}

// readRow is a stratum: the baseline and its treatments.
type readRow struct {
	workload string // comparisons of one workload may scatter alike
	lower    bool   // less is better
	cells    []readCell
}

// readCell has what a cell gave, by block from 0; NaN where it gave nothing.
type readCell struct {
	name           string
	value, seconds []float64
}

// mean is the time of a block of everything.
func (d *readings) mean() float64 {
	sum := 0.0
	for i := range d.rows {
		for _, c := range d.rows[i].cells {
			for _, s := range c.seconds {
				if !math.IsNaN(s) {
					sum += s / float64(d.blocks)
				}
			}
		}
	}
	return sum
}

func (d *readings) cells() (n int) {
	for i := range d.rows {
		n += len(d.rows[i].cells)
	}
	return n
}

// study is the study that makes these readings, under a stopping rule.
func (d *readings) study(stop study.Stop, seed uint64) *study.Study {
	st := &study.Study{Name: d.name, Seed: seed, Baseline: "base", Compare: study.FactorSandbox, Retries: 1, Stop: stop}
	st.Budget.Blocks = d.blocks
	known := map[string]int{}
	for i := range d.rows {
		r := &d.rows[i]
		w, ok := known[r.workload]
		if !ok {
			w = len(st.Workloads)
			known[r.workload] = w
			st.Workloads = append(st.Workloads, study.Workload{Label: r.workload, Kind: r.kind(), Responses: []string{response}})
		}
		shared := record.Cell{{Factor: study.FactorWorkload, Value: r.workload}, {Factor: "row", Value: strconv.Itoa(i)}}
		s := study.Stratum{Key: shared.Key(), Shared: shared, Workload: w, Responses: []string{response}, Better: r.better()}
		for k, c := range r.cells {
			name := c.name
			if k == 0 {
				name = st.Baseline
			}
			s.Cells = append(s.Cells, append(slices.Clone(shared), record.Level{Factor: study.FactorSandbox, Value: name}))
		}
		st.Strata = append(st.Strata, s)
	}
	return st
}

// kind tells the direction of a workload's response.
func (r *readRow) kind() string { return string(r.better()) }

func (r *readRow) better() record.Better {
	if r.lower {
		return record.Lower
	}
	return record.Higher
}

func describe(w study.Workload) []record.Response {
	return []record.Response{{Name: response, Better: record.Better(w.Kind), Operation: "run"}}
}

// live lives a study of everything in a world, for so many blocks in random order.
func live(w *world, s shape, blocks int, seed uint64) *readings {
	d := &readings{name: "generated", blocks: blocks, truth: w.truth}
	for i := range s.strata() {
		r := readRow{workload: fmt.Sprintf("w%d", i/s.points+1), lower: true}
		for k := range s.treatments() + 1 {
			r.cells = append(r.cells, readCell{name: fmt.Sprintf("level%d", k), value: make([]float64, blocks), seconds: make([]float64, blocks)})
		}
		d.rows = append(d.rows, r)
	}
	order, place := fork(seed, 6), 0
	for b := range blocks {
		for _, i := range order.Perm(len(d.rows)) {
			for _, k := range order.Perm(len(d.rows[i].cells)) {
				place++
				c := &d.rows[i].cells[k]
				c.value[b], c.seconds[b] = w.value(i, k, b+1, place), 1
			}
		}
	}
	return d
}

// gather puts measured cells of first responses together. Cells without a baseline are left out.
func gather(name string, all []*measured) *readings {
	d := &readings{name: name}
	at := map[string]int{}
	for _, m := range all {
		for b := range m.at {
			d.blocks = max(d.blocks, b)
		}
	}
	for _, m := range all {
		key := m.workload + "\x00" + m.response
		i, ok := at[key]
		if !ok {
			i = len(d.rows)
			at[key] = i
			label, _, _ := strings.Cut(m.workload, " ")
			d.rows = append(d.rows, readRow{workload: label + " " + m.response, lower: m.slow > 0})
		}
		c := readCell{name: m.sandbox}
		for b := 1; b <= d.blocks; b++ {
			v, is := m.at[b]
			if !is {
				v = math.NaN()
			}
			c.value, c.seconds = append(c.value, math.Exp(v)), append(c.seconds, m.seconds[b])
		}
		if m.baseline {
			d.rows[i].cells = slices.Insert(d.rows[i].cells, 0, c)
		} else {
			d.rows[i].cells = append(d.rows[i].cells, c)
		}
	}
	based := map[string]bool{}
	for _, m := range all {
		if m.baseline {
			based[m.workload+"\x00"+m.response] = true
		}
	}
	kept := d.rows[:0]
	for _, m := range all {
		key := m.workload + "\x00" + m.response
		if i, ok := at[key]; ok && based[key] && len(d.rows[i].cells) > 1 {
			kept = append(kept, d.rows[i])
		}
		delete(at, key)
	}
	d.rows = kept
	return d
}

// readData reads a results folder, or what -reduce wrote.
func readData(ctx context.Context, path string) (*readings, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		d, err := readReduced(path)
		if err == nil {
			d.time()
		}
		return d, err
	}
	all, err := readResults(ctx, path)
	if err != nil {
		return nil, err
	}
	d := gather(path, firstOf(all))
	d.time()
	if len(d.rows) == 0 || d.blocks < 3 {
		return nil, fmt.Errorf("%s has no comparison with three blocks of a response that its study names; give the workloads responses, and stop: {fixed: 10}", path)
	}
	return d, nil
}

// time gives each trial without a value the mean time of its cell's others: it took time, too.
func (d *readings) time() {
	for i := range d.rows {
		for _, c := range d.rows[i].cells {
			sum, n := 0.0, 0.0
			for _, s := range c.seconds {
				if !math.IsNaN(s) && s > 0 {
					sum, n = sum+s, n+1
				}
			}
			for b, s := range c.seconds {
				if math.IsNaN(s) || s == 0 {
					c.seconds[b] = sum / max(1, n)
				}
			}
		}
	}
}

// firstOf are the cells of each workload's first response, which decides when to stop.
func firstOf(all []*measured) []*measured {
	return slices.DeleteFunc(slices.Clone(all), func(m *measured) bool { return !m.first })
}

func reducedColumns() []string {
	return []string{"row", "workload", "better", "cell", "block", "value", "seconds"}
}

// reduce writes readings as CSV, compressed with zstd. The first cell of each row is the baseline.
func (d *readings) reduce(out io.Writer) error {
	z, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	w := csv.NewWriter(z)
	_ = w.Write(reducedColumns()) // Flush and Error tell
	for i := range d.rows {
		for _, c := range d.rows[i].cells {
			for b, v := range c.value {
				if !math.IsNaN(v) {
					_ = w.Write([]string{strconv.Itoa(i), d.rows[i].workload, d.rows[i].kind(), c.name, strconv.Itoa(b + 1),
						strconv.FormatFloat(v, 'g', 6, 64), strconv.FormatFloat(c.seconds[b], 'f', 3, 64)})
				}
			}
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return z.Close()
}

// readReduced reads what reduce wrote.
func readReduced(path string) (*readings, error) {
	src, err := os.ReadFile(path) //nolint:gosec // the user's own
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(bytes.NewReader(src))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	all, err := csv.NewReader(z).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w; give a results folder, or a file that -reduce wrote", path, err)
	}
	if len(all) < 2 || !slices.Equal(all[0], reducedColumns()) {
		return nil, fmt.Errorf("%s has not the columns %s; give a results folder, or a file that -reduce wrote", path, strings.Join(reducedColumns(), ", "))
	}
	d := &readings{name: path}
	for n, rec := range all[1:] {
		row, err1 := strconv.Atoi(rec[0])
		block, err2 := strconv.Atoi(rec[4])
		value, err3 := strconv.ParseFloat(rec[5], 64)
		seconds, err4 := strconv.ParseFloat(rec[6], 64)
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil || row < 0 || row > len(d.rows) || block < 1 || block > maxBlocks {
			return nil, fmt.Errorf("%s:%d: %q is not a reading", path, n+2, rec)
		}
		if row == len(d.rows) {
			d.rows = append(d.rows, readRow{workload: rec[1], lower: rec[2] == string(record.Lower)})
		}
		d.rows[row].note(rec[3], block, value, seconds)
		d.blocks = max(d.blocks, block)
	}
	for i := range d.rows {
		for k := range d.rows[i].cells {
			d.rows[i].cells[k].reach(d.blocks)
		}
	}
	return d, nil
}

// maxBlocks bounds what a file may say.
const maxBlocks = 10_000

func (r *readRow) note(name string, block int, value, seconds float64) {
	k := slices.IndexFunc(r.cells, func(c readCell) bool { return c.name == name })
	if k < 0 {
		k = len(r.cells)
		r.cells = append(r.cells, readCell{name: name})
	}
	c := &r.cells[k]
	c.reach(block)
	c.value[block-1], c.seconds[block-1] = value, seconds
}

// reach makes room for so many blocks.
func (c *readCell) reach(blocks int) {
	for len(c.value) < blocks {
		c.value, c.seconds = append(c.value, math.NaN()), append(c.seconds, math.NaN())
	}
}
