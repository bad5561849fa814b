package html_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/record"
	"tare/report/document"
	"tare/report/section"
	"tare/report/words"
)

// keyOf is how the page names a comparison.
func keyOf(c *analyse.Comparison) string {
	return c.Stratum + "|" + c.Treatment + "|" + c.Response.Name
}

// compared are the comparisons that are no baseline's, by keyOf.
func compared(d *document.Document) map[string]*analyse.Comparison {
	out := map[string]*analyse.Comparison{}
	for i := range d.Result.Compared {
		if c := &d.Result.Compared[i]; !c.Baseline {
			out[keyOf(c)] = c
		}
	}
	return out
}

// hasRatio says whether a comparison has a ratio.
func hasRatio(c *analyse.Comparison) bool {
	return c.Skipped == "" && c.Level.N > 0 && c.Base.N > 0 && c.Estimate.N > 0 && c.Estimate.Undefined == ""
}

func TestPageIsQuietAndAsksForNothing(t *testing.T) {
	b := browse(t)
	b.show(small(t), "")
	b.drawAll()
	for _, id := range []string{"answer", "summary", "ratios", "table", "latency", "series", "order", "asked", "warnings", "failures", "host", "method"} {
		if !eval[bool](b, `(() => { const e = document.getElementById("`+id+`"); return !!e && e.offsetHeight > 40; })()`) {
			t.Errorf("the part %s is not shown", id)
		}
	}
	// Every chart has been drawn, and is not blank.
	blank := eval[[]string](b, `[...document.querySelectorAll(".chart")].filter((c) => c.offsetHeight > 0).filter((c) => {
		const canvas = c.querySelector("canvas");
		if (!canvas) return true;
		const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		const seen = new Set();
		for (let i = 0; i < data.length; i += 4) if (data[i + 3]) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
		return seen.size < 4;
	}).map((c) => c.dataset.chart)`)
	if n := eval[int](b, `document.querySelectorAll(".chart canvas").length`); n < 7 || len(blank) > 0 {
		t.Errorf("%d charts, of which blank: %q", n, blank)
	}
	b.quiet("file://")
	if n := len(b.requests); n != 1 {
		t.Errorf("%d requests, want the file alone: %q", n, b.requests)
	}
}

// TestFiguresEqualTheDocument reads the tables back from the page and compares each
// figure with the document's, written as the text report writes it.
func TestFiguresEqualTheDocument(t *testing.T) {
	d := small(t)
	b := browse(t)
	b.show(d, "")
	type cell struct {
		Text, Value string
	}
	type row struct {
		Key, Kind string
		Cells     []cell
	}
	rows := eval[[]row](b, `[...document.querySelectorAll(".figures tbody tr")].map((tr) => ({Key: tr.dataset.key, Kind: tr.dataset.kind,
		Cells: [...tr.children].map((td) => ({Text: td.textContent, Value: td.dataset.value || ""}))}))`)
	want := compared(d)
	if len(rows) != len(want) || len(rows) < 80 {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	ratios := 0
	for _, r := range rows {
		c := want[r.Key]
		if c == nil {
			t.Fatalf("a row %q of no comparison", r.Key)
		}
		size, _ := c.Cell.Get("size")
		box, _ := c.Cell.Get("sandbox")
		e, u := c.Estimate, c.Response.Unit
		levels := []float64{c.Base.Typical, c.Level.Typical}
		have := []bool{c.Base.N > 0, c.Level.N > 0}
		ratio, interval, num := "", "", ""
		if hasRatio(c) {
			ratios++
			levels, have = []float64{e.Base, e.Value}, []bool{true, true}
			x, lo, hi := e.Cost(c.Response.Better)
			ratio, num, interval = words.Times(x), number(x), "few blocks"
			if e.HasInterval() {
				interval = words.Ratio(lo) + "–" + words.Ratio(hi)
			}
		}
		var exp []cell
		for _, s := range []string{c.Workload, size, box, c.Response.Name} {
			exp = append(exp, cell{Text: s})
		}
		for i, v := range levels {
			x := cell{}
			if have[i] {
				x = cell{words.Value(v, u), number(v)}
			}
			exp = append(exp, x)
		}
		exp = append(exp, cell{ratio, num}, cell{interval, ""}, cell{strconv.Itoa(e.N), strconv.Itoa(e.N)}, cell{verdictWord(c), ""})
		if e.HasInterval() && hasRatio(c) {
			_, lo, _ := e.Cost(c.Response.Better)
			exp[7].Value = number(lo)
		}
		if diff := cmp.Diff(exp, r.Cells); diff != "" {
			t.Errorf("%s:\n%s", r.Key, diff)
		}
	}
	if ratios < 40 {
		t.Errorf("only %d rows have a ratio", ratios)
	}
	heat(t, b, d)
}

func number(v float64) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	// As JavaScript writes it: 1e-7 where Go writes 1e-07 too, and no e for 1e20.
	return strings.Replace(string(b), "e-0", "e-", 1)
}

func verdictWord(c *analyse.Comparison) string {
	switch {
	case c.Skipped != "":
		return "– skipped"
	case c.Level.N == 0 && c.GaveUp != "":
		return "✗ given up"
	case c.Level.N == 0 && c.Failed > 0:
		return "✗ failed"
	case c.Level.BelowNoise > 0:
		return "below noise"
	}
	g := section.SignOf(c.Estimate.Shown(c.Verdict, c.Response.Better))
	return g.Mark + " " + g.Text
}

// heat compares the heat map with the document: costs, of which more is worse.
func heat(t *testing.T, b *browser, d *document.Document) {
	t.Helper()
	got := eval[map[string]string](b, `Object.fromEntries([...document.querySelectorAll("td.heat")].map((td) => [td.dataset.key, [...td.querySelectorAll('.r, .iv')].map((x) => x.textContent).join(" ")]))`)
	if len(got) != len(d.Result.Compared) {
		t.Errorf("the heat map has %d cells, want %d", len(got), len(d.Result.Compared))
	}
	for i := range d.Result.Compared {
		c := &d.Result.Compared[i]
		if !hasRatio(c) || c.Baseline || c.Level.BelowNoise > 0 {
			continue
		}
		x, lo, hi := c.Estimate.Cost(c.Response.Better)
		want := words.Times(x) + " " + section.SignOf(c.Estimate.Shown(c.Verdict, c.Response.Better)).Mark
		if c.Estimate.Bound > 0 {
			want = fmt.Sprintf("≤ %.0f %%", math.Ceil(100*c.Estimate.Bound-1e-9))
		}
		if c.Estimate.HasInterval() {
			want += " " + words.Ratio(lo) + "–" + words.Ratio(hi)
		}
		if got[keyOf(c)] != want {
			t.Errorf("%s reads %q, want %q", keyOf(c), got[keyOf(c)], want)
		}
	}
	// Verdicts are told apart by more than colour: each decided cell has its sign.
	for key, s := range got {
		c := compared(d)[key]
		if c == nil || !hasRatio(c) {
			continue
		}
		if sign := strings.Fields(verdictWord(c))[0]; !strings.Contains(s, sign) {
			t.Errorf("%s reads %q, without %s", key, s, sign)
		}
	}
}

// TestValuesReadAsInTheTextReport compares the page's way of writing figures with
// report/text on many values, among them those that lie between two roundings.
func TestValuesReadAsInTheTextReport(t *testing.T) {
	units := []record.Unit{record.Second, record.Byte, record.BytesPerSecond, record.BitsPerSecond, record.PerSecond, record.Cores, record.Count, record.Fraction, "events/s", ""}
	values := []float64{0, 1, 2.5, 0.5, 12.25, 12.35, 0.0625, 99.95, 9.995, 0.9995, 999.5, 1e7, 12250000, 12350000, 1e21, 5e-324, 1.25e-9, 0.000125, 0.0001235, 1024, 1023.5, 999.4999, -3.25, -0.0004}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		v := math.Exp(60*r.Float64() - 30)
		values = append(values, v, -v, math.Round(v*8)/8, math.Round(100*v)/100)
	}
	in, err := json.Marshal(map[string]any{"values": values, "units": units})
	if err != nil {
		t.Fatal(err)
	}
	b := browse(t)
	b.show(small(t), "")
	got := eval[[][]string](b, `(() => { const q = `+string(in)+`; return q.values.map((v) => [...q.units.map((u) => Tare.value(v, u)), Tare.ratio(v)]); })()`)
	bad := 0
	for i, v := range values {
		var want []string
		for _, u := range units {
			want = append(want, words.Value(v, u))
		}
		want = append(want, words.Ratio(v))
		if d := cmp.Diff(want, got[i]); d != "" {
			if bad++; bad < 5 {
				t.Errorf("%v:\n%s", v, d)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d values read otherwise", bad, len(values))
	}
}

// TestDetailsShowWhatTheRatioIsMadeOf opens a comparison and makes its ratio again
// from the blocks that are shown.
func TestDetailsShowWhatTheRatioIsMadeOf(t *testing.T) {
	d := small(t)
	b := browse(t)
	b.show(d, "")
	opened := 0
	for key, c := range compared(d) {
		if box, _ := c.Cell.Get("sandbox"); box != "runsc" && box != "vm" && box != "flaky" {
			continue
		}
		b.do("Tare.open(" + quote(key) + ")")
		said := eval[string](b, `document.querySelector("dialog.details").innerText`)
		switch {
		case c.Skipped != "":
			if !strings.Contains(said, c.Skipped) {
				t.Errorf("%s does not say why it is skipped: %s", key, said)
			}
		case c.Level.N == 0:
			if !strings.Contains(said, "it died") || !strings.Contains(strings.ToLower(said), "given up") {
				t.Errorf("%s does not say why it failed: %s", key, said)
			}
		default:
			opened++
			ratios := eval[[]float64](b, `[...document.querySelectorAll("dialog.details table")].find((t) => /quotient/.test(t.textContent)).querySelectorAll("tbody tr").values().map((tr) => Number(tr.lastElementChild.dataset.value)).filter(Number.isFinite).toArray()`) // a treatment that is narrow has no part in later blocks
			sum := 0.0
			for _, x := range ratios {
				sum += math.Log(x)
			}
			// The document's values of trials have six digits.
			if got := math.Exp(sum / float64(len(ratios))); len(ratios) != c.Estimate.N || math.Abs(got/c.Estimate.Ratio-1) > 1e-5 {
				t.Errorf("%s: blocks %v make %v, want %v of %d", key, ratios, got, c.Estimate.Ratio, c.Estimate.N)
			}
			for _, s := range []string{words.Ratio(c.Estimate.Ratio), fmt.Sprintf("n = %d blocks", c.Estimate.N), words.Ratio(c.Estimate.Lo) + " to " + words.Ratio(c.Estimate.Hi)} {
				if !strings.Contains(said, s) {
					t.Errorf("%s does not say %q: %s", key, s, said)
				}
			}
			if c.Why != "" && !strings.Contains(strings.ToLower(said), strings.ToLower(strings.TrimSuffix(c.Why, "."))) {
				t.Errorf("%s does not say why: %q", key, c.Why)
			}
		}
	}
	if opened == 0 {
		t.Fatal("nothing was opened")
	}
	b.quiet("file://")
}
