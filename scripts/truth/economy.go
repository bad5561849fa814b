package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"tare/analyse/tune"
	"tare/store"
	"tare/study"
)

// What is wanted of the program, and what was published elsewhere.
const (
	wantedSaved = 0.75
	wantedSame  = 0.95
	wantedFar   = 0.02 // of tunes
	farBelow    = 0.03 // what a level may be below the wanted one
	published   = "PT4Cloud (ESEC/FSE 2019) published 62 % fewer runs at 95.4 % agreement"
)

// tally is what came of a policy on many data sets.
type tally struct {
	rows, same, contrary, right, wrong, open float64
	confirmed                                float64 // verdicts that all readings give, too
	seconds, whole                           float64 // whole: of fixed 16
}

func (t *tally) add(o *tally) {
	t.rows, t.same, t.contrary = t.rows+o.rows, t.same+o.same, t.contrary+o.contrary
	t.confirmed += o.confirmed
	t.right, t.wrong, t.open = t.right+o.right, t.wrong+o.wrong, t.open+o.open
	t.seconds, t.whole = t.seconds+o.seconds, t.whole+o.whole
}

// wilson is E. B. Wilson's 95 % interval of a share (J. Am. Stat. Assoc. 22 (1927) 209).
func wilson(hits, n float64) (lo, hi float64) {
	if n == 0 {
		return 0, 1
	}
	const z = best95
	p := hits / n
	mid := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return math.Max(mid-half, 0), math.Min(mid+half, 1)
}

func share(hits, n float64) string {
	if n == 0 {
		return "-"
	}
	lo, hi := wilson(hits, n)
	return fmt.Sprintf("%.1f (%.1f-%.1f)", 100*hits/n, 100*lo, 100*hi)
}

// reached compares a figure with what is wanted.
func reached(value float64, wanted string, is bool) string {
	if is {
		return fmt.Sprintf("%.1f (wanted %s)", value, wanted)
	}
	return fmt.Sprintf("%.1f (wanted %s: not reached)", value, wanted)
}

// compareAll plays all policies on readings, and compares them with the reference: all readings.
func compareAll(d *readings, ps []policy, seed uint64) ([]tally, error) {
	all := policy{name: "all readings", stop: study.Stop{Fixed: d.blocks, Confidence: 0.95, Margin: 0.03}}
	ref, err := d.play(all, seed)
	if err != nil {
		return nil, err
	}
	out := make([]tally, len(ps))
	for k, p := range ps {
		t := &out[k]
		if p.stop.Fixed > d.blocks {
			continue
		}
		o, err := d.play(p, seed)
		if err != nil {
			return nil, err
		}
		t.seconds, t.whole = o.seconds, 16*d.mean()
		for i := range o.verdicts {
			for j, v := range o.verdicts[i] {
				r := ref.verdicts[i][j]
				t.rows++
				switch {
				case v.verdict == r.verdict:
					t.same++
				case v.verdict.Decided() && r.verdict.Decided():
					t.contrary++
				}
				if !v.verdict.Decided() {
					t.open++
				} else if v.verdict == r.verdict {
					t.confirmed++
				}
				if d.truth != nil {
					right, wrong := v.is(d.truth[i][j], all.stop.Margin, d.rows[i].lower)
					t.right, t.wrong = t.right+one(right), t.wrong+one(wrong)
				}
			}
		}
	}
	return out, nil
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// hosts are the machines of generated data: two levels of scatter, three kinds of trouble.
func hosts() []machine {
	var out []machine
	for _, m := range []machine{{name: "AR 0.8", drift: driftSize, rho: 0.8}, {name: "t3", heavy: true}, {name: "steps", steps: stepSize}} {
		for _, t := range []bool{true, false} {
			h := m
			h.tuned = t
			out = append(out, h)
		}
	}
	return out
}

// scatter names a machine's typical scatter.
func (m machine) scatter() string { return fmt.Sprintf("%.1f %%", 100*m.typical()) }

// economy prints what policies save and what they miss.
func economy(ctx context.Context, o options, data, plot string, out, progress io.Writer) error {
	l, err := newLab(o, progress)
	if err != nil {
		return err
	}
	ps, err := policies()
	if err != nil {
		return err
	}
	if data != "" {
		d, err := readData(ctx, data)
		if err != nil {
			return err
		}
		return l.measuredEconomy(d, ps, out)
	}
	fmt.Fprintf(out, "seed %d; intervals are Wilson's of 95 %%; %s\n", o.seed, published)
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"measured", func() error { return l.shippedEconomy(ctx, ps, out) }},
		{"studies", func() error { return l.studiesEconomy(ctx, ps, plot, out) }},
		{"tunes", func() error { return l.tunesEconomy(ctx, "Tunes", levelGrounds(), out) }},
		{"cells", func() error { return l.cellsEconomy(ctx, "Tunes of neighbours", levelCells, out) }},
		{"cells2", func() error { return l.cellsEconomy(ctx, "Tunes of neighbours, two factors", pairCells, out) }},
		{"pairs", func() error { return l.tunesEconomy(ctx, "Tunes of two factors", pairGrounds(), out) }},
	} {
		if o.only.MatchString(part.name) {
			if err := part.run(); err != nil {
				return err
			}
		}
	}
	return nil
}

// shippedReadings has the readings of studies/economy.yaml that are in the repository, as -reduce wrote them.
const shippedReadings = "scripts/truth/economy.csv.zst"

// shippedEconomy is about the shipped readings, if there are any.
func (l *lab) shippedEconomy(ctx context.Context, ps []policy, out io.Writer) error {
	d, err := readData(ctx, filepath.Join(l.root, shippedReadings))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	d.name = shippedReadings
	return l.measuredEconomy(d, ps, out)
}

// measuredEconomy is about one data set that was measured.
func (l *lab) measuredEconomy(d *readings, ps []policy, out io.Writer) error {
	ts, err := compareAll(d, ps, l.seed)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("%s: %d cells in %d comparisons, %d blocks, %.0f trial-seconds; the truth is the verdict of all blocks", d.name, d.cells(), d.cells()-len(d.rows), d.blocks, d.mean()*float64(d.blocks))
	rows := [][]string{studyHead(false)}
	for k, p := range ps {
		if ts[k].rows > 0 {
			rows = append(rows, ts[k].line(p.name, false))
		}
	}
	return l.write(out, title, rows)
}

func studyHead(truth bool) []string {
	h := []string{"policy", "trial-seconds fewer than fixed 16, %", "verdict as of all readings, %", "verdicts that they confirm, %", "contrary to them, %"}
	if truth {
		h = append(h, "true, %", "untrue, %")
	}
	return append(h, "undecided, %")
}

func (t *tally) line(name string, truth bool) []string {
	saved, same := 1-t.seconds/t.whole, t.same/t.rows
	out := []string{name, fmt.Sprintf("%.1f", 100*saved), share(t.same, t.rows), share(t.confirmed, t.rows-t.open), share(t.contrary, t.rows)}
	if name == "adaptive" {
		out[1] = reached(100*saved, ">= 75", saved >= wantedSaved)
		out[2] += map[bool]string{true: ", wanted >= 95", false: ", wanted >= 95: not reached"}[same >= wantedSame]
	}
	if truth {
		out = append(out, share(t.right, t.rows), share(t.wrong, t.rows))
	}
	return append(out, fmt.Sprintf("%.1f", 100*t.open/t.rows))
}

// studiesEach is how many studies of each form on each machine are played.
const studiesEach = 1

// studiesEconomy is about generated studies.
func (l *lab) studiesEconomy(ctx context.Context, ps []policy, plot string, out io.Writer) error {
	s := shape{workloads: 11, points: 1, treats: 5}
	fs := append(forms(), form{name: "mixed"})
	ms := hosts()
	n := max(1, int(studiesEach*l.scale))
	type job struct{ f, m, i int }
	var jobs []job
	for f := range fs {
		for m := range ms {
			for i := range n {
				jobs = append(jobs, job{f, m, i})
			}
		}
	}
	results := make([][]tally, len(jobs))
	err := l.each(ctx, len(jobs), func(j int) error {
		e := effects{form: &fs[jobs[j].f]}
		if e.form.at == nil {
			e.form = nil
		}
		u := unit{section: fs[jobs[j].f].name, shape: s, machine: machine{name: ms[jobs[j].m].name + ms[jobs[j].m].scatter()}}
		seed := u.seed(l.seed+uint64(jobs[j].f), jobs[j].i) //nolint:gosec // an index
		w := newWorld(l.pop, ms[jobs[j].m], s, seed, e)
		var err error
		results[j], err = compareAll(live(w, s, 16, seed), ps, seed)
		return err
	})
	if err != nil {
		return err
	}
	sum := func(of func(job) bool) []tally {
		t := make([]tally, len(ps))
		for j, x := range jobs {
			for k := range ps {
				if of(x) {
					t[k].add(&results[j][k])
				}
			}
		}
		return t
	}
	for _, h := range []machine{{tuned: true}, {}} {
		ts := sum(func(j job) bool { return ms[j.m].tuned == h.tuned })
		rows := [][]string{studyHead(true)}
		for k, p := range ps {
			rows = append(rows, ts[k].line(p.name, true))
		}
		if err := l.write(out, fmt.Sprintf("Studies: %d of %s cells, typical scatter %s", n*len(fs)*len(ms)/2, s, h.scatter()), rows); err != nil {
			return err
		}
	}
	rows := [][]string{{"form", "machine", "scatter", "default: fewer, %", "same, %", "adaptive: fewer, %", "same, %", "untrue, %"}}
	for f := range fs {
		for m := range ms {
			ts := sum(func(j job) bool { return j.f == f && j.m == m })
			d, a := &ts[3], &ts[4]
			rows = append(rows, []string{fs[f].name, ms[m].name, ms[m].scatter(), fmt.Sprintf("%.1f", 100-100*d.seconds/d.whole), share(d.same, d.rows),
				fmt.Sprintf("%.1f", 100-100*a.seconds/a.whole), share(a.same, a.rows), share(a.wrong, a.rows)})
		}
	}
	if err := l.write(out, "The same by form and machine", rows); err != nil {
		return err
	}
	if plot == "" {
		return nil
	}
	return plotEconomy(plot, ps, func(tuned bool) []tally { return sum(func(j job) bool { return ms[j.m].tuned == tuned }) })
}

// plotEconomy writes what scripts/figures draws.
func plotEconomy(path string, ps []policy, of func(tuned bool) []tally) error {
	file, err := os.Create(path) //nolint:gosec // the user's own
	if err != nil {
		return err
	}
	w := csv.NewWriter(file)
	_ = w.Write([]string{"panel", "series", "x", "y", "lo", "hi"}) // Flush and Error tell
	for _, h := range []machine{{tuned: true}, {}} {
		for k, t := range of(h.tuned) {
			if ps[k].stop.Fixed == 16 {
				continue // what the others are compared with
			}
			lo, hi := wilson(t.same, t.rows)
			f := func(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) }
			_ = w.Write([]string{"scatter " + h.scatter(), ps[k].name, f(1 - t.seconds/t.whole), f(t.same / t.rows), f(lo), f(hi)})
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// found is what came of a search on many surfaces.
type found struct{ n, far, sure, sureFar, readings, whole float64 }

// tunesEach is how many surfaces of each form on each machine are searched.
const tunesEach = 4

// tunesEconomy is about generated surfaces.
func (l *lab) tunesEconomy(ctx context.Context, title string, grounds []ground, out io.Writer) error {
	n := max(1, int(tunesEach*l.scale))
	goals := []tune.Goal{{Reach: 0.9, Margin: 0.03, Confidence: 0.95}, {Reach: 1, Margin: 0.03, Confidence: 0.95}}
	ms, ways := hosts(), searches()
	total := map[[3]int]*found{} // by goal, scatter, search
	byForm := map[[3]int]*found{}
	var mu sync.Mutex
	err := l.each(ctx, len(grounds)*len(ms)*n, func(j int) error {
		f, m := j%len(grounds), j/len(grounds)%len(ms)
		u := unit{section: grounds[f].name, machine: machine{name: ms[m].name + ms[m].scatter()}}
		s := newSurface(l.pop, grounds[f], ms[m], grounds[f].blocks(), u.seed(l.seed+uint64(f), j)) //nolint:gosec // an index
		for g, goal := range goals {
			for k, way := range ways {
				level, readings, sure := way.find(s, goal)
				far := s.share[level] < goal.Reach-farBelow
				mu.Lock()
				for _, to := range []struct {
					in  map[[3]int]*found
					key [3]int
				}{{total, [3]int{g, int(one(ms[m].tuned)), k}}, {byForm, [3]int{g, f + 100*int(one(ms[m].tuned)), k}}} {
					t := to.in[to.key]
					if t == nil {
						t = &found{}
						to.in[to.key] = t
					}
					t.n, t.far, t.readings, t.whole = t.n+1, t.far+one(far), t.readings+float64(readings), t.whole+float64(16*len(s.share))
					t.sure, t.sureFar = t.sure+one(sure), t.sureFar+one(sure && far)
				}
				mu.Unlock()
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for g, goal := range goals {
		for _, h := range []machine{{tuned: true}, {}} {
			rows := [][]string{{"search", "trial-seconds fewer than all levels, 16 blocks, %", "more than 3 % below, %", "clear answers, %", "of these more than 3 % below, %"}}
			for k, way := range ways {
				t := total[[3]int{g, int(one(h.tuned)), k}]
				saved := 1 - t.readings/t.whole
				line := []string{way.name, fmt.Sprintf("%.1f", 100*saved), share(t.far, t.n), fmt.Sprintf("%.1f", 100*t.sure/t.n), share(t.sureFar, t.sure)}
				if way.name == "tune" {
					line[1] = reached(100*saved, ">= 75", saved >= wantedSaved)
					line[2] += map[bool]string{true: ", wanted < 2", false: ", wanted < 2: not reached"}[t.far/t.n < wantedFar]
				}
				rows = append(rows, line)
			}
			if err := l.write(out, fmt.Sprintf("%s: --reach %s, typical scatter %s, %.0f surfaces", title, reachName(goal), h.scatter(), total[[3]int{g, int(one(h.tuned)), 0}].n), rows); err != nil {
				return err
			}
		}
	}
	rows := [][]string{{"reach", "form", "levels", "scatter", "fewer, %", "more than 3 % below, %", "clear, %", "all levels, 16 blocks: below, %"}}
	for g, goal := range goals {
		for f := range grounds {
			for _, h := range []machine{{tuned: true}, {}} {
				key := [3]int{g, f + 100*int(one(h.tuned)), 2}
				t, all := byForm[key], byForm[[3]int{key[0], key[1], 1}]
				rows = append(rows, []string{reachName(goal), grounds[f].name, fmt.Sprint(grounds[f].size), h.scatter(), fmt.Sprintf("%.1f", 100-100*t.readings/t.whole), share(t.far, t.n), fmt.Sprintf("%.1f", 100*t.sure/t.n), share(all.far, all.n)})
			}
		}
	}
	return l.write(out, title+" by form", rows)
}

func reachName(g tune.Goal) string {
	if g.Reach < 1 {
		return fmt.Sprintf("%.0f%%", 100*g.Reach)
	}
	return study.TuneBest
}

// each does n things, some at a time.
func (l *lab) each(ctx context.Context, n int, do func(i int) error) error {
	errs := make([]error, l.workers)
	var wg sync.WaitGroup
	for k := range l.workers {
		wg.Go(func() {
			for i := k; i < n && ctx.Err() == nil && errs[k] == nil; i += l.workers {
				errs[k] = do(i)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// reduceTo writes the readings of a results folder to a file. It refuses those of the model: nobody could tell them
// from measured ones there.
func reduceTo(ctx context.Context, dir, file string) error {
	if dir == "" {
		return errors.New("-reduce needs the results folder; write -data FOLDER")
	}
	if modelled, err := isModelled(dir); err != nil || modelled {
		return cmp.Or(err, fmt.Errorf("%s is modelled, not measured; give a folder of real trials", dir))
	}
	d, err := readData(ctx, dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := d.reduce(&b); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644) //nolint:gosec // the user's own
}

// isModelled reports whether the trials of a results folder are from the model.
func isModelled(dir string) (bool, error) {
	s, err := store.OpenReadOnly(dir)
	if err != nil {
		return false, err
	}
	defer func() { _ = s.Close() }()
	meta, err := s.Meta()
	return meta.Modelled, err
}
