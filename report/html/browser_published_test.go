package html_test

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	gocmp "github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/analyse/published"
	"tare/analyse/stat"
	"tare/report/document"
	"tare/report/words"
)

// withPublished is the small document beside made-up published figures: each
// agreement, a row without an interval, a row that is not measured.
func withPublished(t testing.TB) *document.Document {
	d := small(t)
	p := &published.Table{Name: "gvisor-guide", Title: "the guide", Source: "https://example.org/", Date: "about 2019", Ratio: "runsc/runc", Factor: 1.25, Widest: 0.5, Margin: 0.03,
		Notes: []string{"Everything is other there."}, Summary: "2 of 5 agree.", Agree: 2, Same: 1, Disagree: 1, Unsure: 1, Missing: 2}
	add := func(bench string, ratio float64, a published.Agreement, ratios ...float64) {
		r := published.Row{Figure: published.Figure{Benchmark: bench, Case: "case", Unit: "1/s", Base: 1000, Other: 1000 * ratio, Ratio: ratio, Platform: "ptrace"},
			Agreement: a, Why: "why " + bench, Expected: []string{"the reason of " + bench}}
		for i, x := range ratios {
			level := []string{"runsc", "crun"}[i]
			e := stat.Estimate{N: 4, Ratio: x, Lo: x / 1.07, Hi: x * 1.08}
			if a == published.NotMeasured {
				e = stat.Estimate{N: 2, Ratio: x}
			}
			r.Measured = append(r.Measured, published.Measured{Level: level, Name: level, Estimate: e, Compared: i == 0, Agreement: a})
		}
		p.Rows = append(p.Rows, r)
	}
	add("sysbench.cpu", 0.99, published.Agrees, 0.985, 1.2)
	add("startup", 0.95, published.Disagrees, 2.6, 1.3)
	add("fio.tmpfs", 0.056, published.SameDirection, 0.21, 0.4)
	add("redis", 0.5, published.Undecided, 0.8, 0.7)
	add("density", 5.79, published.NotMeasured, 4)
	add("syscall", 19.7, published.Agrees, 21)
	add("tensorflow", 1.18, published.NotMeasured)
	d.Result.Published = p
	for i, c := range d.Result.Compared {
		if i == 0 || c.Stratum != d.Result.Compared[i-1].Stratum {
			d.Result.Placements = append(d.Result.Placements, analyse.Placement{Stratum: c.Stratum, Roles: []analyse.PlacedRole{{Role: "server", Sandboxed: true}, {Role: "client"}}, Text: "server in the sandbox, client native"})
		}
	}
	rebuild(d)
	d.Notes = append(d.Notes, document.Note{ID: "published", Title: "Beside published figures", Text: "How it is judged."})
	return d
}

func TestPublishedFigures(t *testing.T) {
	d := withPublished(t)
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	type row struct {
		Name   string
		Values []string
		Said   string
	}
	var want []row
	for _, r := range d.Result.Published.Rows {
		if len(r.Measured) == 0 {
			continue
		}
		said := map[published.Agreement]string{published.SameDirection: "same", published.NotMeasured: "-"}[r.Agreement]
		w := row{Name: r.Benchmark + " case", Values: []string{words.Ratio(r.Ratio), "", ""}, Said: cmp.Or(said, string(r.Agreement))}
		for i, m := range r.Measured {
			e := m.Estimate
			w.Values[1+i] = words.Ratio(e.Ratio) + " ?"
			if e.HasInterval() {
				w.Values[1+i] = words.Ratio(e.Ratio) + " " + words.Ratio(e.Lo) + "–" + words.Ratio(e.Hi)
			}
		}
		want = append(want, w)
	}
	got := eval[[]row](b, `[...document.querySelectorAll("#published tbody tr")].map((tr) => ({Name: tr.cells[0].textContent,
		Values: [1, 2, 3].map((i) => tr.cells[i].textContent), Said: tr.cells[5].textContent}))`)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	text := eval[string](b, `document.getElementById("published").textContent`)
	e := d.Result.Published.Rows[1].Measured[0].Estimate
	for _, s := range []string{"2 of 5 agree.", "Everything is other there.", "the reason of startup", "the reason of fio.tmpfs", "https://example.org/",
		words.Ratio(e.Ratio) + " " + words.Ratio(e.Lo) + "–" + words.Ratio(e.Hi), "Not measured", "tensorflow case: why tensorflow"} {
		if !strings.Contains(text, s) {
			t.Errorf("the section does not say %q", s)
		}
	}
	if strings.Contains(text, "the reason of sysbench.cpu") {
		t.Error("a row that agrees is excused")
	}
	if n := eval[int](b, `Number(document.querySelector('[data-chart="published ratios"]').dataset.drawn || 0)`); n == 0 {
		t.Error("the chart is not drawn")
	}
	// All rows are in the chart, each with its cross, and each measured ratio once.
	marks := eval[map[string]int](b, `(() => { const o = echarts.getInstanceByDom(document.querySelector('[data-chart="published ratios"] .chart-canvas')).getOption();
		return Object.fromEntries(o.series.filter((s) => s.type === "custom" && s.name).map((s) => [s.name, s.data.length])); })()`)
	if marks["published"] != 6 || marks["runsc"] != 6 || marks["crun"] != 4 {
		t.Errorf("the chart has %v", marks)
	}
	ends := eval[string](b, `document.querySelector("#asked .ends").textContent`)
	if want := "server in the sandbox, client native: w0 size=1KiB, w0 size=2KiB, w1 size=1KiB, w1 size=2KiB"; !strings.HasPrefix(ends, want) {
		t.Errorf("the ends: %q, want %q", ends, want)
	}
	b.quiet("file://")
}

// A study that asks for nothing has no such part, also not in the contents.
func TestNoPublishedFigures(t *testing.T) {
	b := browse(t)
	b.show(small(t), "")
	if eval[bool](b, `!!document.querySelector("#asked .ends")`) {
		t.Error("the page says where the ends ran, and no trial says it")
	}
	if !eval[bool](b, `document.getElementById("published").hidden && !document.querySelector('[data-id="nav-published"]')`) {
		t.Error("there is a part for published figures")
	}
}

// What light and dark, a phone, and hostile names do to it.
func TestPublishedLooks(t *testing.T) {
	d := withPublished(t)
	d.Result.Published.Rows[0].Benchmark = "<img src=x onerror=alert(1)> {a|b}"
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
				b.do(`document.getElementById("published").scrollIntoView({behavior: "instant"})`)
				b.drawAll()
				box := eval[[]float64](b, `(() => { const r = document.getElementById("published").getBoundingClientRect(); return [r.x, r.y + scrollY, r.width, r.height]; })()`)
				r := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true),
					Clip: &page.Viewport{X: box[0], Y: box[1], Width: box[2], Height: box[3], Scale: 1}})
				if err := os.WriteFile(fmt.Sprintf("%s/published-%s-%d.png", dir, scheme, width), r.Data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if n := eval[int](b, `document.querySelectorAll("#published img").length`); n > 0 {
		t.Error("a name became markup")
	}
	b.quiet("file://")
}
