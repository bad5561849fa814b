package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"tare/model"
	"tare/record"
	"tare/store"
)

// Size of the results that causes are measured on: the published network
// experiment's 1,200 cells.
const (
	causeBlocks = 5
	causeSeries = 200  // of a trial
	causePoints = 1200 // of a series: two minutes at 10 Hz
)

// e1Study is the published network experiment with one sandbox beside the
// baseline: the cells that the publication has.
//
//go:embed studies/e1.yaml
var e1Study string

// causes measures `tare report` and `tare report --html` of 1,200 cells x 5 trials
// x 240,000 readings, as a user calls them.
func (b *bench) causes(ctx context.Context) ([]row, error) {
	dir := filepath.Join(b.work, "causes")
	trials, err := b.causeResults(ctx, dir)
	if err != nil {
		return nil, err
	}
	// Results that do not fit their study would be shown quickly, and empty.
	if out, err := b.printed(ctx, "report", "--json", dir); err != nil || !bytes.Contains(out, []byte(`"finished": true`)) || !bytes.Contains(out, []byte(`"cause": "helper"`)) {
		return nil, fmt.Errorf("the synthetic results do not make a finished study with causes: %w; %.300s", err, out)
	}
	page := filepath.Join(b.work, "causes.html")
	var rows []row
	for _, form := range []struct {
		name string
		args []string
	}{{"`tare report`", nil}, {"`tare report --html`", []string{"--html", "-o", page}}} {
		var took, peak, cpu []float64
		for range b.wants(3) {
			u, err := b.used(ctx, nil, append(append([]string{"report"}, form.args...), dir)...)
			if err != nil {
				return nil, err
			}
			took, peak, cpu = append(took, u.seconds), append(peak, u.peak), append(cpu, u.cpu)
		}
		what := fmt.Sprintf("%s of %d trials in 1,200 cells, 240,000 readings each, with causes", form.name, trials)
		rows = append(rows,
			row{Figure: what + ": the whole call", Unit: "s", Tare: median(took), Rounds: len(took)}.below(60),
			row{Figure: "the same: CPU time", Unit: "s", Tare: median(cpu), Rounds: len(cpu)},
			row{Figure: "the same: peak memory of the process", Unit: "B", Tare: median(peak), Rounds: len(peak)}.below(1e9))
	}
	st, err := os.Stat(page)
	if err != nil {
		return nil, err
	}
	return append(rows, row{Figure: "the same: the HTML file", Unit: "B", Tare: float64(st.Size())},
		row{Figure: "`tare report` with causes", Note: "each cell as the model has it, its five trials apart by noise; the series of the last block are files of their own, and the earlier blocks' are links to those"}), nil
}

// e1Cells are the cells of e1Study, as the binary under test plans them.
func (b *bench) e1Cells(ctx context.Context) ([]record.Cell, error) {
	file := filepath.Join(b.work, "e1.yaml")
	if err := os.WriteFile(file, []byte(e1Study), 0o600); err != nil {
		return nil, err
	}
	out, err := b.printed(ctx, "plan", "--no-check", "--json", file)
	if err != nil {
		return nil, err
	}
	var plan struct {
		Study struct {
			Strata []struct{ Cells []record.Cell }
		} `json:"study"`
	}
	if err := json.Unmarshal(out, &plan); err != nil {
		return nil, fmt.Errorf("tare plan: %w", err)
	}
	var cells []record.Cell
	for _, s := range plan.Study.Strata {
		cells = append(cells, s.Cells...)
	}
	return cells, nil
}

// causeResults writes results as five blocks of the experiment leave them, with
// 240,000 readings a trial: 1.44 thousand million, 15 GB. Only the last block's are
// written, whose series a report shows; the files of the blocks before are links
// to them, so that the disk holds a fifth.
func (b *bench) causeResults(ctx context.Context, dir string) (trials int, err error) {
	cells, err := b.e1Cells(ctx)
	if err != nil {
		return 0, err
	}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s, err := store.Create(dir, store.Meta{StudySource: []byte(e1Study), StudyFile: "big-causes.yaml", Overrides: []string{}, Seed: 1,
		Host: record.Host{Hostname: "bench", Kernel: "6.18", CPUModel: "synthetic", Cores: 64, MemoryBytes: 192 << 30}, TareVersion: "bench", Started: start})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	type modelled struct {
		trial  *record.Trial
		series []record.Series
	}
	cell := make([]modelled, len(cells))
	if err := played(ctx, cells, func(at int, r *model.Result) error {
		t, ev := r.Trial(cells[at], 1, 1)
		cell[at] = modelled{t, ev.Series}
		return nil
	}); err != nil {
		return 0, err
	}
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // synthetic figures
	file := func(seq int) string {
		return filepath.Join(dir, "series", store.TrialName(&record.Trial{Seq: seq, Attempt: 1})+".parquet")
	}
	for block := 1; block <= causeBlocks; block++ {
		for i := range cells {
			trials++
			t := again(r, cell[i].trial, block, trials)
			t.Start = start.Add(time.Duration(trials) * 125 * time.Second)
			ev := record.Evidence{Series: []record.Series{{Name: "none", Unit: record.Count, Kind: record.Gauge, T: []time.Duration{0}, V: []float64{0}}}}
			if block == causeBlocks {
				ev.Series = long(r, cell[i].series)
			}
			if err := s.Append(ctx, &t, ev); err != nil {
				return trials, err
			}
			for before := 1; block == causeBlocks && before < block; before++ {
				link := file((before-1)*len(cells) + i + 1)
				if err := os.Remove(link); err != nil {
					return trials, err
				}
				if err := os.Link(file(trials), link); err != nil {
					return trials, err
				}
			}
		}
	}
	return trials, nil
}

// again is a trial like another one, apart from noise, of two minutes.
func again(r *rand.Rand, like *record.Trial, block, seq int) record.Trial {
	t := *like
	t.Block, t.Seq = block, seq
	t.Duration = causePoints * 100 * time.Millisecond
	t.Phases = []record.Phase{{Name: model.PhaseWarmup, Duration: 200 * time.Millisecond},
		{Name: model.PhaseRun, Offset: 200 * time.Millisecond, Duration: t.Duration - 200*time.Millisecond}}
	sandbox, _ := t.Cell.Get("sandbox")
	t.Facts = maps.Clone(like.Facts)
	t.Facts["server.where"], t.Facts["client.where"] = sandbox, "process"
	t.Samples = make([]record.Sample, len(like.Samples))
	for i, p := range like.Samples {
		p.Value *= math.Exp(0.01 * r.NormFloat64())
		if p.Unit == record.Fraction {
			p.Value = min(p.Value, 1)
		}
		t.Samples[i] = p
	}
	return t
}

// long is a trial's series at 10 Hz over two minutes: the model's second is
// repeated with noise, and threads that do little fill them up to what the
// collectors follow.
func long(r *rand.Rand, short []record.Series) []record.Series {
	at := make([]time.Duration, causePoints)
	for i := range at {
		at[i] = time.Duration(i)*100*time.Millisecond + time.Duration(r.Int64N(100_000))
	}
	out := make([]record.Series, 0, causeSeries)
	for i := range short {
		if len(out) == causeSeries {
			return out
		}
		if x := short[i]; len(x.V) > 3 {
			v := make([]float64, causePoints)
			sum := 0.0
			for j := range v {
				k := 2 + j%(len(x.V)-2) // after the warm-up
				if x.Kind == record.Gauge {
					v[j] = x.V[k]
					continue
				}
				v[j] = sum
				sum += math.Round(max(0, x.V[k]-x.V[k-1])*math.Exp(0.05*r.NormFloat64())*1e9) * 1e-9
			}
			x.T, x.V = at, v
			out = append(out, x)
		}
	}
	for tid := 5000; len(out) < causeSeries; tid++ {
		x := record.Series{Name: "thread_cpu_time", Unit: record.Second, Kind: record.Counter, T: at, V: make([]float64, causePoints),
			Labels: record.MakeLabels(record.LabelEndpoint, "server", record.LabelRole, "workload", "thread", "idle", "tid", strconv.Itoa(tid))}
		for j := 1; j < causePoints; j++ {
			x.V[j] = x.V[j-1] + float64(r.IntN(2_000_000))*1e-9
		}
		out = append(out, x)
	}
	return out
}
