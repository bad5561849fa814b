package document

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/analyse/cause"
	"tare/record"
)

// manyFindings are of n cells, each with so many readings as a real one has.
func manyFindings(n int) (*Builder, *analyse.Result) {
	b := &Builder{index: make(map[string]int)}
	r := &analyse.Result{Compare: "sandbox", Baseline: "process"}
	rnd := rand.New(rand.NewPCG(7, 7))
	for i := range n {
		shared := record.Cell{{Factor: "workload", Value: "w"}, {Factor: "size", Value: fmt.Sprint(i)}}
		cell := append(shared[:2:2], record.Level{Factor: "sandbox", Value: "vm"})
		b.addCell(Cell{Key: cell.Key(), Levels: cell, Stratum: shared.Key(), Treatment: "sandbox=vm"})
		ratio := 0.3 + rnd.Float64()
		f := cause.Finding{CellKey: record.CellKey{Workload: "w", Stratum: shared.Key(), Shared: shared, Treatment: "sandbox=vm", Cell: cell}, Ratio: &ratio, Costs: i%3 > 0, Trials: 5,
			Cause: cause.Names()[i%12], Confidence: rnd.Float64(), Text: fmt.Sprintf("The helper: it is busy for %.1f %% of the time.", 100*rnd.Float64())}
		for k := range 14 {
			v := rnd.Float64()
			f.Readings = append(f.Readings, cause.Reading{About: cause.Names()[k%11], Says: []cause.Says{cause.Supports, cause.Excludes, cause.Silent}[k%3], Name: fmt.Sprintf("reading %d, share of a core", k),
				Value: v, Lo: v * 0.9, Hi: v * 1.1, Unit: record.Fraction, Limit: 0.7 + float64(k)/100, Series: []string{"cpu_time", "thread_cpu_time"}, Roles: []string{"vhost"}})
		}
		r.Causes = append(r.Causes, f)
	}
	r.Advice = []advice.Item{{Rule: "r", Cells: []record.Cell{r.Causes[n-1].Cell, {{Factor: "of", Value: "another study"}}, r.Causes[0].Cell}}}
	return b, r
}

// TestCausesRoundTrip: nothing but digits is lost of a finding.
func TestCausesRoundTrip(t *testing.T) {
	b, r := manyFindings(40)
	r.Causes[3].Cause, r.Causes[3].Among = cause.Untold, []cause.Name{cause.Quota, cause.Device}
	r.Causes[4].Cell = record.Cell{{Factor: "of", Value: "another study"}}
	c := b.causes(r)
	if len(c.Findings) != 39 || len(c.Readings) != 14 {
		t.Fatalf("%d findings with %d readings of different names, want 39 and 14", len(c.Findings), len(c.Readings))
	}
	for i := range c.Findings {
		k := i
		if i >= 4 {
			k++
		}
		f, got := &r.Causes[k], &c.Findings[i]
		if b.cells[got.Cell].Key != f.Cell.Key() || got.Cause != f.Cause || got.Text != f.Text || got.Costs != f.Costs || len(got.Readings) != len(f.Readings) {
			t.Fatalf("%d: %+v", k, got)
		}
		for j, x := range got.Readings {
			want, def := &f.Readings[j], &c.Readings[int(x[0])]
			says := map[cause.Says]float64{cause.Supports: 1, cause.Excludes: -1, cause.Silent: 0}[want.Says]
			if def.Name != want.Name || def.About != want.About || math.Abs(def.Limit-want.Limit) > 0.001 || def.Roles[0] != "vhost" || x[1] != says || x[2] < want.Value*0.994 || x[2] > want.Value*1.006 {
				t.Fatalf("%d, %d: %v of %+v, want %+v", k, j, x, def, want)
			}
		}
	}
	known := make(map[cause.Name]bool)
	for _, k := range c.Kinds {
		if known[k.ID] || k.Word == "" {
			t.Errorf("%+v twice, or without a word", k)
		}
		known[k.ID] = true
	}
	if !known[cause.Untold] || !known[cause.Device] {
		t.Errorf("kinds that occur are not among %v", c.Kinds)
	}
	a := b.advice(r)
	if out, err := json.Marshal(a); err != nil || len(a) != 1 || !strings.Contains(string(out), `"cells":[39,0]`) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestCausesAreSmall: 3,000 cells with 14 readings each leave room for the rest of a
// file of 5 MB.
func TestCausesAreSmall(t *testing.T) {
	b, r := manyFindings(3000)
	c := b.causes(r)
	var s sizer
	if n := s.of(c); n > 1_000_000 {
		t.Errorf("%d bytes compressed", n)
	} else {
		t.Logf("%d bytes compressed", n)
	}
}

func BenchmarkCauses(b *testing.B) {
	builder, r := manyFindings(3000)
	for b.Loop() {
		builder.causes(r)
	}
}
