package export

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/analyse/stat"
	"tare/record"
)

// Agreement with benchstat on the same samples. It differs in method: medians of
// all trials and Mann-Whitney's U, nothing of blocks. What must be equal is
// compared to the last printed digit; where both apply (no drift), verdicts must
// not contradict each other; where they do not both apply, the test shows why.

// simulatedCells are comparisons of eight blocks each, every second one of A with
// A, the others 5 % slower. Trials repeat to 2 %; the machine drifts by so much
// with a correlation of 0.95 between successive trials, or not at all; they are
// made in blocks or as A A A B B B.
func simulatedCells(r *rand.Rand, cells int, drift float64, blocks bool) [][]stat.Pair {
	const n, rho = 8, 0.95
	out := make([][]stat.Pair, cells)
	for i := range out {
		x := drift * r.NormFloat64()
		var v [2 * n]float64
		for k := range v {
			x = rho*x + drift*math.Sqrt(1-rho*rho)*r.NormFloat64()
			v[k] = math.Exp(x + 0.02*r.NormFloat64())
		}
		for b := range n {
			base, other := b, n+b
			if blocks {
				first := r.IntN(2)
				base, other = 2*b+first, 2*b+1-first
			}
			p := stat.Pair{Base: v[base], Other: v[other]}
			if i%2 == 1 {
				p.Other *= 1.05
			}
			out[i] = append(out[i], p)
		}
	}
	return out
}

// benchOf exports cells as tare does: each is a workload. A trial's block is in
// its name when asked, which makes each block a benchmark of its own.
func benchOf(t *testing.T, cells [][]stat.Pair, byBlock bool) []byte {
	t.Helper()
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	b := Bench{Study: "agreement", Compare: "sandbox", Baseline: "process", Responses: map[string][]record.Response{}}
	var trials []record.Trial
	for i, pairs := range cells {
		w := fmt.Sprintf("w%d", i)
		b.Responses[w] = []record.Response{{Name: "time", Unit: record.Second, Better: record.Lower}}
		for k, p := range pairs {
			for sandbox, v := range map[string]float64{"process": p.Base, "runc": p.Other} {
				c := record.Cell{{Factor: "workload", Value: w}}
				if byBlock {
					c = append(c, record.Level{Factor: "repeat", Value: strconv.Itoa(k)})
				}
				trials = append(trials, record.Trial{Status: record.OK, Start: at, Cell: append(c, record.Level{Factor: "sandbox", Value: sandbox}),
					Samples: []record.Sample{{Name: "time", Unit: record.Second, Value: v}}})
			}
		}
	}
	var out bytes.Buffer
	if err := GoBench(&out, b, sequence(trials)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// benchRow is what benchstat says of one benchmark.
type benchRow struct {
	base, other float64 // its medians, or geometric means of them
	delta       string  // "~" for none, "+5.00%"
}

var rowWorkload = regexp.MustCompile(`workload=(w\d+)`)

// runBenchstat returns benchstat's rows by workload (and block), "geomean" among
// them.
func runBenchstat(t *testing.T, bin string, text []byte) map[string]benchRow {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.bench")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(bin, "-format", "csv", "-ignore", "host,os,kernel,arch,cpu,threads,virtualization,study", "-col", "/sandbox", file).Output()
	if err != nil {
		t.Fatalf("benchstat: %v", err)
	}
	r := csv.NewReader(bytes.NewReader(out))
	r.FieldsPerRecord = -1
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]benchRow{}
	for _, l := range lines {
		if len(l) < 6 || l[0] == "" {
			continue
		}
		var row benchRow
		if row.base, err = strconv.ParseFloat(l[1], 64); err != nil {
			continue
		}
		if row.other, err = strconv.ParseFloat(l[3], 64); err != nil {
			t.Fatalf("benchstat: %q", l)
		}
		row.delta = l[5]
		rows[l[0]] = row
	}
	return rows
}

func haveBenchstat(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "install", benchstat)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("benchstat cannot be had: %v: %.200s", err, msg)
	}
	return filepath.Join(dir, "benchstat")
}

// TestBenchstatSameRatio: with each block a benchmark of its own, benchstat's
// geometric mean over benchmarks is computed as tare's ratio is, and must be it.
func TestBenchstatSameRatio(t *testing.T) {
	bin := haveBenchstat(t)
	r := rand.New(rand.NewPCG(20261120, 1))
	for range 3 {
		cells := simulatedCells(r, 1, 0.05, true)
		got := runBenchstat(t, bin, benchOf(t, cells, true))["geomean"]
		want := stat.Compare(cells[0], 0.95)
		for what, v := range map[string][2]float64{"ratio": {got.other / got.base, want.Ratio}, "baseline": {got.base, want.Base}, "treatment": {got.other, want.Value}} {
			if math.Abs(v[0]/v[1]-1) > 1e-12 {
				t.Errorf("%s: benchstat says %.15g, tare %.15g", what, v[0], v[1])
			}
		}
	}
}

// TestBenchstatSameVerdicts: on a machine that does not drift both call the same
// things different, tare some more since it has more power; when both call, never
// in opposite directions; and benchstat's medians are of the very same values.
// On one that drifts, benchstat misses in blocks what it cannot pair, and is
// misled by A A A B B B, as every method is.
func TestBenchstatSameVerdicts(t *testing.T) {
	const cells = 600
	type count struct{ both, bench, tare, neither, against, wrongBench, wrongTare int }
	bin := haveBenchstat(t)
	results := map[string]count{}
	for _, sc := range []struct {
		name   string
		drift  float64
		blocks bool
	}{{"steady", 0, true}, {"drift, in blocks", 0.05, true}, {"drift, A A A B B B", 0.05, false}} {
		r := rand.New(rand.NewPCG(20261120, 2))
		pairs := simulatedCells(r, cells, sc.drift, sc.blocks)
		rows := runBenchstat(t, bin, benchOf(t, pairs, false))
		var c count
		var ratios, medians float64
		for name, row := range rows {
			m := rowWorkload.FindStringSubmatch(name)
			if m == nil {
				continue
			}
			i, _ := strconv.Atoi(strings.TrimPrefix(m[1], "w"))
			var base, other []float64
			for _, p := range pairs[i] {
				base, other = append(base, p.Base), append(other, p.Other)
			}
			if b, o := stat.Median(base), stat.Median(other); math.Abs(b/row.base-1) > 1e-12 || math.Abs(o/row.other-1) > 1e-12 {
				t.Fatalf("%s: benchstat's medians are %v and %v, the exported values have %v and %v", name, row.base, row.other, b, o)
			}
			e := stat.Compare(pairs[i], 0.95)
			ratios += math.Abs(math.Log(e.Ratio / (row.other / row.base)))
			medians++
			bench, tare := row.delta != "~", e.Lo > 1 || e.Hi < 1
			switch {
			case bench && tare:
				c.both++
				if strings.HasPrefix(row.delta, "+") != (e.Ratio > 1) {
					c.against++
				}
			case bench:
				c.bench++
			case tare:
				c.tare++
			default:
				c.neither++
			}
			if i%2 == 0 && bench {
				c.wrongBench++
			}
			if i%2 == 0 && tare {
				c.wrongTare++
			}
		}
		results[sc.name] = c
		n := c.both + c.bench + c.tare + c.neither
		if n != cells {
			t.Fatalf("%s: benchstat has %d of %d comparisons", sc.name, n, cells)
		}
		t.Logf("%s: of %d comparisons both call %d different, benchstat alone %d, tare alone %d, neither %d, %d in opposite directions; of %d equal ones benchstat calls %d, tare %d, of as many slower ones %d and %d; the ratios differ by %.2f %% in the mean",
			sc.name, n, c.both, c.bench, c.tare, c.neither, c.against, cells/2, c.wrongBench, c.wrongTare, c.both+c.bench-c.wrongBench, c.both+c.tare-c.wrongTare, 100*ratios/medians)
		if c.against > 0 {
			t.Errorf("%s: %d calls in opposite directions", sc.name, c.against)
		}
	}
	steady, drift, loop := results["steady"], results["drift, in blocks"], results["drift, A A A B B B"]
	if agree := steady.both + steady.neither; agree < cells*93/100 {
		t.Errorf("on a steady machine they agree on %d of %d, want 93 %%", agree, cells)
	}
	// 5 % of 300, and four standard errors of that.
	for name, c := range map[string]int{"benchstat, steady": steady.wrongBench, "tare, steady": steady.wrongTare, "benchstat, drift in blocks": drift.wrongBench, "tare, drift in blocks": drift.wrongTare} {
		if c > 30 {
			t.Errorf("%s: %d of %d equal things are called different", name, c, cells/2)
		}
	}
	if bench, tare := drift.both+drift.bench-drift.wrongBench, drift.both+drift.tare-drift.wrongTare; tare < bench+cells/2/20 {
		t.Errorf("with drift, in blocks, tare finds %d of %d and benchstat %d: pairs should find more", tare, cells/2, bench)
	}
	if loop.wrongBench < cells/2*3/10 {
		t.Errorf("A A A B B B on a drifting machine misleads benchstat in only %d of %d: it proves nothing", loop.wrongBench, cells/2)
	}
}
