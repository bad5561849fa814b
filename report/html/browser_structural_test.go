package html_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/google/go-cmp/cmp"

	"tare/analyse/structural"
	"tare/record"
	"tare/report/document"
	"tare/report/words"
)

// withShares is the small document with made-up shares: a rest, none, a negative
// one, calls of a known kind, no extra time, and one that is missing.
func withShares(t testing.TB) *document.Document {
	d := small(t)
	seen := map[string]bool{}
	costs := []struct{ extra, explained, own float64 }{{30e-6, 25e-6, 0}, {30e-6, 10e-6, 12e-6}, {30e-6, 3e-6, 0}, {10e-6, 18e-6, 0}, {10e-6, 900e-6, 0}, {-5e-6, 2e-6, 0}}
	for _, c := range d.Result.Compared {
		if c.Baseline || seen[c.Stratum+c.Treatment] {
			continue
		}
		seen[c.Stratum+c.Treatment] = true
		s := structural.Share{CellKey: record.CellKey{Workload: c.Workload, Stratum: c.Stratum, Shared: c.Shared, Treatment: c.Treatment, Cell: c.Cell}, Response: c.Response, Operation: "request"}
		if n := len(d.Result.Structural); n < len(costs) {
			x := costs[n]
			s.Native, s.Calls, s.Parallelism = 20e-6, 5, 1
			s.Extra = structural.Figure{Value: x.extra, Lo: x.extra - 1e-6, Hi: x.extra + 1e-6}
			s.Cost, s.Explained = structural.Figure{Value: x.explained / 5}, structural.Figure{Value: x.explained}
			s.Rest, s.OfCalls = x.extra-x.explained, x.own
			if x.own > 0 {
				s.Priced = 4
			}
			s.Top = []structural.Call{{Name: "read", PerOperation: 4}, {Name: "write", PerOperation: 1}}
			s.Finding = []structural.Finding{structural.Structural, structural.Mixed, structural.Implementation, structural.Overlapped, structural.Overlapped, structural.NoExtra}[n]
		} else {
			s.Missing = "not counted: <b>no BPF</b>"
		}
		d.Result.Structural = append(d.Result.Structural, s)
	}
	if len(d.Result.Structural) <= len(costs) {
		t.Fatalf("the small document has room for %d shares", len(d.Result.Structural))
	}
	rebuild(d)
	d.Notes = append(d.Notes, document.Note{ID: "structural", Title: "Structural cost", Text: "How it is computed."})
	return d
}

// TestStructuralCost: the table has the figures, and the bars add up to them.
func TestStructuralCost(t *testing.T) {
	d := withShares(t)
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	type row struct{ Extra, Explained, Rest, Part string }
	var want []row
	for _, s := range d.Result.Structural {
		if s.Missing != "" {
			continue
		}
		v := func(x float64) string { return words.Value(x, record.Second) }
		r := row{Extra: v(s.Extra.Value) + ", " + v(s.Extra.Lo) + " to " + v(s.Extra.Hi), Explained: v(s.Explained.Value), Rest: v(s.Rest), Part: "-"}
		if p, ok := s.Part(); ok {
			r.Part = words.Value(float64(int(100*p+0.5)), record.Count) + " %"
		}
		want = append(want, r)
	}
	got := eval[[]row](b, `[...document.querySelectorAll("#structural tbody tr")].map((tr) => ({Extra: tr.cells[3].textContent + ", " + tr.cells[9].textContent,
		Explained: tr.cells[6].textContent, Rest: tr.cells[7].textContent, Part: tr.cells[8].textContent}))`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	if text := eval[string](b, `document.getElementById("structural").textContent`); !strings.Contains(text, "not counted: <b>no BPF</b>") || !strings.Contains(text, "read 4.00, write 1.00") {
		t.Errorf("the section says %.2000q", text)
	}
	// From left to the end of the measured time, every bar is that time.
	sums := eval[[]float64](b, `(() => { const o = echarts.getInstanceByDom(document.querySelector('[data-chart="structural cost"] .chart-canvas')).getOption();
		const bars = o.series.filter((s) => s.type === "bar"); return bars[0].data.map((_, i) => bars.slice(0, 4).reduce((sum, s) => sum + s.data[i].value, 0)); })()`)
	told := 0
	for _, s := range d.Result.Structural {
		if s.Missing == "" && s.Finding != structural.NoExtra {
			told++
		}
	}
	if len(sums) != told || told == len(want) {
		t.Fatalf("%d bars, want %d, which are not all of %d", len(sums), told, len(want))
	}
	for i, s := range sums {
		if s < 0.999999 || s > 1.000001 {
			t.Errorf("bar %d is %g of the measured time", i, s)
		}
	}
	if n := eval[int](b, `document.querySelectorAll("#structural img").length`); n > 0 {
		t.Error("a name became markup")
	}
	b.quiet("file://")
}

// A study that counts nothing has no such part.
func TestNoStructuralCost(t *testing.T) {
	b := browse(t)
	b.show(small(t), "")
	if !eval[bool](b, `document.getElementById("structural").hidden && !document.querySelector('[data-id="nav-structural"]')`) {
		t.Error("there is a part for the structural cost")
	}
}

// What light and dark, a phone, and hostile names do to it.
func TestStructuralLooks(t *testing.T) {
	d := withShares(t)
	d.Result.Structural[0].Top[0].Name = "<img src=x onerror=alert(1)> {a|b}"
	rebuild(d)
	b := browse(t)
	for _, scheme := range []string{"light", "dark"} {
		b.media("", scheme)
		for _, width := range []int64{1280, 360} {
			b.size(width, 900)
			b.show(d, "")
			b.drawAll()
			if bad := eval[[]string](b, contrasts); len(bad) > 0 {
				t.Errorf("%s: too little contrast: %q", scheme, bad)
			}
			if out := eval[[]string](b, cut); len(out) > 0 {
				t.Errorf("%d px: these stand out: %q", width, out)
			}
			if dir := os.Getenv("TARE_LOOK"); dir != "" {
				b.do(`document.getElementById("structural").scrollIntoView({behavior: "instant"})`)
				b.drawAll()
				box := eval[[]float64](b, `(() => { const r = document.getElementById("structural").getBoundingClientRect(); return [r.x, r.y + scrollY, r.width, r.height]; })()`)
				r := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true),
					Clip: &page.Viewport{X: box[0], Y: box[1], Width: box[2], Height: box[3], Scale: 1}})
				if err := os.WriteFile(fmt.Sprintf("%s/structural-%s-%d.png", dir, scheme, width), r.Data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if n := eval[int](b, `document.querySelectorAll("#structural img").length`); n > 0 {
		t.Error("a name became markup")
	}
	b.quiet("file://")
}
