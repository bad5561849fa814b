package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/record"
	"tare/store"
)

// Size of the results that the report is measured on: 5 x 20 x 30 cells.
const (
	reportBlocks      = 10
	reportConnections = 20
	reportSizes       = 30
)

// report measures `tare report --html` of 3,000 cells x 10 trials, as a user
// calls it: the whole process, from results on disk to the file.
func (b *bench) report(ctx context.Context) ([]row, error) {
	dir := filepath.Join(b.work, "big")
	n, err := bigResults(ctx, dir)
	if err != nil {
		return nil, err
	}
	// Results that do not fit their study would be shown quickly, and empty.
	if out, err := b.printed(ctx, "report", "--json", dir); err != nil || !bytes.Contains(out, []byte(`"finished": true`)) {
		return nil, fmt.Errorf("the synthetic results do not make a finished study: %w; %.300s", err, out)
	}
	page := filepath.Join(b.work, "big.html")
	var took, peak []float64
	for range b.wants(6) {
		u, err := b.used(ctx, nil, "report", "--html", "-o", page, dir)
		if err != nil {
			return nil, err
		}
		took, peak = append(took, u.seconds), append(peak, u.peak)
	}
	st, err := os.Stat(page)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("`tare report --html` of %d trials in 3,000 cells", n)
	note := row{Figure: what, Note: "synthetic results, each trial with the samples, histogram and phases of a real one; series of the last block"}
	return []row{
		row{Figure: what + ": the whole call", Unit: "s", Tare: median(took), Rounds: len(took)}.below(2),
		row{Figure: "the same: peak memory of the process", Unit: "B", Tare: median(peak), Rounds: len(peak)}.below(300e6),
		row{Figure: "the same: the HTML file", Unit: "B", Tare: float64(st.Size())}.below(5e6),
		note,
	}, nil
}

// bigResults writes results as a study of round trips leaves them: figures as
// the workload net and all collectors give them, of a machine that drifts.
func bigResults(ctx context.Context, dir string) (trials int, err error) {
	var connections, sizes []string
	for i := range reportConnections {
		connections = append(connections, strconv.Itoa(i+1))
	}
	for i := range reportSizes {
		sizes = append(sizes, strconv.Itoa(64*(i+1))+"B")
	}
	kinds := []string{"process", "runc", "crun", "runsc-systrap", "runsc-ptrace"}
	slow := []float64{1, 1.004, 1.02, 3, 9}
	study := fmt.Sprintf("study: big\nbaseline: process\nfactors:\n  sandbox: [%s]\nworkloads:\n  rr: {kind: net, mode: rr, connections: [%s], size: [%s]}\nstop: {fixed: %d}\n"+
		"tables:\n  time: {response: latency_p50, columns: connections}\n  rate: {response: rate, columns: size}\n",
		strings.Join(kinds, ", "), strings.Join(connections, ", "), strings.Join(sizes, ", "), reportBlocks)
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s, err := store.Create(dir, store.Meta{StudySource: []byte(study), StudyFile: "big.yaml", Overrides: []string{}, Seed: 1,
		Host: record.Host{Hostname: "bench", Kernel: "6.18", CPUModel: "synthetic", Cores: 2, MemoryBytes: 8 << 30}, TareVersion: "bench", Started: start})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // synthetic figures
	drift := 0.0
	for block := 1; block <= reportBlocks; block++ {
		for _, c := range connections {
			for _, size := range sizes {
				for k, kind := range kinds {
					trials++
					drift = 0.98*drift + 0.004*r.NormFloat64()
					level := 20e-6 * slow[k] * math.Exp(drift+0.02*r.NormFloat64())
					t := bigTrial(r, trials, block, level, record.Cell{{Factor: "workload", Value: "rr"}, {Factor: "sandbox", Value: kind},
						{Factor: "size", Value: size}, {Factor: "connections", Value: c}})
					t.Start = start.Add(time.Duration(trials) * 1300 * time.Millisecond)
					var ev record.Evidence
					if block == reportBlocks {
						ev.Series = bigSeries(r)
					}
					if err := s.Append(ctx, &t, ev); err != nil {
						return trials, err
					}
				}
			}
		}
	}
	return trials, nil
}

func bigTrial(r *rand.Rand, seq, block int, level float64, cell record.Cell) record.Trial {
	t := record.Trial{Seq: seq, Block: block, Attempt: 1, Cell: cell, Status: record.OK, Duration: time.Duration(1.2e9 + 1e7*r.NormFloat64()),
		Facts: map[string]string{"client.sandbox": "process", "server.sandbox": cell[1].Value, "server.runtime_version": "1.1.5"}}
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	for range 1500 {
		_ = h.RecordValue(int64(level * 1e9 * math.Exp(0.3*math.Abs(r.NormFloat64())))) // within a minute by far
	}
	if b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
		t.Histograms = []record.Histogram{{Name: "latency", Unit: record.Second, Scale: 1e-9, Encoded: b}}
	}
	at := time.Duration(0)
	for _, name := range []string{"prepare", "start", "ready", "warmup", "run", "finish", "stop", "cleanup"} {
		d := time.Duration(1e7 * (1 + r.Float64()))
		t.Phases = append(t.Phases, record.Phase{Name: name, Offset: at, Duration: d})
		at += d
	}
	add := func(name, labels string, unit record.Unit, v float64) {
		t.Samples = append(t.Samples, record.Sample{Name: name, Labels: record.Labels(labels), Unit: unit, Kind: record.Value, Value: v})
	}
	add("sandbox_start", "end=server,sandbox="+cell[1].Value, record.Second, 0.1*(1+r.Float64()))
	add("sandbox_start", "end=client,sandbox=process", record.Second, 0.01*(1+r.Float64()))
	for _, q := range []struct {
		name string
		at   float64
	}{{"latency_p50", 50}, {"latency_p99", 99}, {"latency_p999", 99.9}} {
		add(q.name, "", record.Second, float64(h.ValueAtPercentile(q.at))*1e-9*(1+1e-4*r.Float64()))
	}
	add("latency_mean", "", record.Second, h.Mean()*1e-9)
	add("rate", "", record.PerSecond, 1/h.Mean()*1e9)
	for _, end := range []string{"client", "server"} {
		for i := range 25 {
			add("cgroup_figure_"+strconv.Itoa(i), "end="+end, record.Cores, r.Float64())
		}
		add("cgroup_cpu_rate", "end="+end, record.Cores, r.Float64())
		for _, role := range []string{"harness", "sentry", "unattributed", "workload"} {
			add("cpu_time_rate", "end="+end+",role="+role, record.Cores, r.Float64())
		}
	}
	for _, c := range []string{"cgroup", "proc", "system"} {
		add("collector_cpu_rate", "collector="+c, record.Cores, 0.001*(1+r.Float64()))
	}
	for i := range 8 {
		add("system_cpu_rate", "mode="+strconv.Itoa(i), record.Cores, r.Float64())
	}
	return t
}

func bigSeries(r *rand.Rand) []record.Series {
	var out []record.Series
	for _, role := range []string{"sentry", "gofer", "shim", "workload", "unattributed"} {
		s := record.Series{Name: "cpu_time", Labels: record.MakeLabels("end", "server", "role", role), Unit: record.Second, Kind: record.Counter}
		v := 0.0
		for i := range 14 {
			v += 0.1 * r.Float64()
			s.T, s.V = append(s.T, time.Duration(i)*100*time.Millisecond), append(s.V, v)
		}
		out = append(out, s)
	}
	return out
}
