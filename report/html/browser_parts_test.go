package html_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"tare/analyse"
	"tare/record"
	"tare/report/document"
)

// away is how far a part's heading is from where it belongs, in px: just below the
// bar, or at the screen's top where the bar does not stay there. Waits until
// nothing has moved for a while.
const away = `(async (id) => {
	const head = document.getElementById(id).querySelector("h2"), bar = document.getElementById("bar");
	const dist = () => head.getBoundingClientRect().top - (getComputedStyle(bar).position === "sticky" ? bar.getBoundingClientRect().bottom : 0);
	for (let n = 0, last = NaN, same = 0; n < 400 && same < 12; n++) {
		await new Promise((r) => setTimeout(r, 40));
		const now = dist();
		same = now === last ? same + 1 : 0;
		last = now;
	}
	return dist();
})`

// arrived tells whether a heading is in sight at the top: the part's padding is
// above it.
func arrived(px float64) bool { return px >= 10 && px <= 40 }

// TestContentsLinksArrive clicks links of the contents on a page that has just been
// opened, where no chart further down is drawn yet.
func TestContentsLinksArrive(t *testing.T) {
	b := browse(t)
	fresh := func(url string) {
		t.Helper()
		b.must(chromedp.Do(b.ctx, chromedp.Navigate("about:blank")))
		b.goTo(url)
	}
	large := shape{workloads: 20, sizes: 6}.document(t)
	for _, c := range []struct {
		width int64
		of    *document.Document
		ids   []string
	}{
		{1280, large, []string{"ratios", "series", "order", "method"}},
		{390, large, []string{"latency", "method"}},
		{390, small(t), []string{"order", "host"}},
	} {
		b.size(c.width, 800)
		url := "file://" + write(t, c.of)
		for _, id := range c.ids {
			fresh(url)
			b.do(fmt.Sprintf(`document.querySelector('[data-id="nav-%s"]').click()`, id))
			if px := eval[float64](b, away+`("`+id+`")`); !arrived(px) {
				t.Errorf("%d px wide: after a click on the link, the heading of %s is %.0f px below the bar", c.width, id, px)
			}
		}
		fresh(url + "#host")
		if px := eval[float64](b, away+`("host")`); !arrived(px) {
			t.Errorf("%d px wide: an address that ends in #host opens %.0f px above it", c.width, px)
		}
		b.do(`location.hash = "latency"`)
		if px := eval[float64](b, away+`("latency")`); !arrived(px) {
			t.Errorf("%d px wide: #latency in the address leaves its heading %.0f px below", c.width, px)
		}
	}
	b.quiet("file://")
}

// TestBarCoversNoHeading: with its controls on several lines, and unfolded on a phone.
func TestBarCoversNoHeading(t *testing.T) {
	b := browse(t)
	d := small(t)
	for _, width := range []int64{1280, 760, 390} {
		b.size(width, 700)
		b.show(d, "")
		if width < 700 {
			b.click(".filters > summary")
			b.wait("the bar to go with the page", `getComputedStyle(document.getElementById("bar")).position === "static"`)
		}
		b.do(`document.querySelector('[data-id="nav-order"]').click()`)
		px := eval[float64](b, away+`("order")`)
		if !arrived(px) {
			t.Errorf("%d px wide: the heading is %.0f px below the bar", width, px)
		}
		if free := eval[float64](b, `(() => { const r = document.getElementById("bar").getBoundingClientRect(); return innerHeight - Math.max(0, r.bottom); })()`); free < 500 {
			t.Errorf("%d px wide: the bar leaves %.0f px of 700", width, free)
		}
	}
	b.quiet("file://")
}

// watchedStudy is a small study with a sentinel whose trials have series and a
// distribution, and come first.
func watchedStudy(t testing.TB) *document.Document {
	t.Helper()
	d := small(t)
	cell := record.Cell{{Factor: "workload", Value: "sentinel"}, {Factor: "sandbox", Value: "process"}}
	at := len(d.Cells)
	d.Cells = append(d.Cells, document.Cell{Key: cell.Key(), Levels: cell, Responses: []string{}})
	d.Result.Sentinel = &analyse.Sentinel{Cell: cell, Kind: "syscall", Points: []analyse.SentinelPoint{}}
	d.Trials.Cell[0], d.Trials.Values[0], d.Trials.OK[0] = at, []*float64{}, 1
	if d.Series[0].Trial != 0 {
		d.Series = append([]document.TrialSeries{{Lines: d.Series[0].Lines}}, d.Series...)
	}
	c := d.Curves[0]
	c.Cell, c.Name = at, "batch_mean"
	d.Curves = append([]document.Curve{c}, d.Curves...)
	return d
}

func TestSentinelHasItsNameAndComesLast(t *testing.T) {
	b := browse(t)
	b.show(watchedStudy(t), "")
	b.drawAll()
	options := eval[[]string](b, `[...document.getElementById("series-cell").options].map((o) => o.text)`)
	if n := len(options); n < 2 || options[n-1] != "sentinel" {
		t.Errorf("the cells are %q, want the sentinel last", options)
	}
	if s := eval[string](b, `document.getElementById("series-cell").selectedOptions[0].text`); !strings.HasPrefix(s, "w0 ") && !strings.HasPrefix(s, "w1 ") {
		t.Errorf("the first cell shown is %q, want one of the study", s)
	}
	if s := eval[string](b, `document.querySelector("#series .paper").textContent`); !strings.HasPrefix(s, "w") {
		t.Errorf("in print the trial is named %q", s)
	}
	if s := eval[string](b, `document.getElementById("latency").textContent`); strings.Contains(s, "batch_mean") {
		t.Errorf("a distribution of what is compared with nothing: %q", s)
	}
	b.quiet("file://")
}

// TestLostSeriesAreSaid: series that are on record and cannot be read are
// counted, all of them too.
func TestLostSeriesAreSaid(t *testing.T) {
	b := browse(t)
	d := shape{workloads: 1, sizes: 1, series: func(*record.Trial, func([]record.Series)) error { return errors.New("junk") }}.document(t)
	good := 0
	for _, ok := range d.Trials.OK {
		good += ok
	}
	b.show(d, "")
	want := fmt.Sprintf("The time series of %d trials are stored but cannot be read", good)
	if s := eval[string](b, `document.getElementById("series").hidden ? "" : document.getElementById("series").innerText`); !strings.Contains(s, want) {
		t.Errorf("the part says %q, want %q in it", s, want)
	}
	b.quiet("file://")
}

func TestHeadIsSeparatedAsText(t *testing.T) {
	b := browse(t)
	d := small(t)
	b.show(d, "")
	want := fmt.Sprintf("sandbox compared with process · %d trials, ", len(d.Trials.Cell))
	if s := eval[string](b, `document.getElementById("meta").innerText`); !strings.Contains(s, want) {
		t.Errorf("the head is %q, want %q in it", s, want)
	}
}

// TestManyFactorsAreReadable: no level is cut in the heat map, and what all rows in
// view have is said once.
func TestManyFactorsAreReadable(t *testing.T) {
	b := browse(t)
	b.show(shape{workloads: 2, sizes: 3, name: func(s string) string {
		if strings.HasSuffix(s, "KiB") {
			return s + " and a level's name that is as long as levels with a path in them are"
		}
		return s
	}}.document(t), "")
	for _, width := range []int64{1280, 390} {
		b.size(width, 900)
		if cut := eval[[]string](b, `[...document.querySelectorAll(".rowhead .stratum:not(.again) .level-name")].filter((e) => e.checkVisibility()).filter((e) => {
			const th = e.closest("th").getBoundingClientRect(), r = e.getBoundingClientRect();
			return r.right > th.right + 1 || r.bottom > th.bottom + 1 || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline";
		}).map((e) => e.textContent)`); len(cut) > 0 {
			t.Errorf("%d px wide: these are cut: %q", width, cut)
		}
	}
	b.do(`Tare.set("filter", (s) => s.pick.set("size", new Set([Tare.data.factors.find((f) => f.name === "size").levels[1]])))`)
	if heads := eval[[]string](b, `[...document.querySelectorAll("tbody .rowhead .stratum")].map((e) => e.textContent).filter((s) => s.includes("size="))`); len(heads) > 0 {
		t.Errorf("one size is in view, and rows still say it: %q", heads)
	}
	if s := eval[string](b, `document.querySelector("#summary .legend").innerText`); !strings.Contains(s, "size=2KiB") {
		t.Errorf("the legend %q does not say the size", s)
	}
	b.quiet("file://")
}

// TestWhatHoldsAmongManyRows: rows called different that are no discoveries carry a
// mark, and the summary counts them; results without say nothing.
func TestWhatHoldsAmongManyRows(t *testing.T) {
	b := browse(t)
	d := small(t)
	var doubtful *analyse.Comparison
	called := 0
	q := 0.21
	for i := range d.Result.Compared {
		if c := &d.Result.Compared[i]; c.Called() {
			called++
			if doubtful == nil {
				c.Q = &q
				doubtful = c
			}
		}
	}
	d.Result.Discoveries = &analyse.Discoveries{Rate: 0.05, Rows: called, Called: called, Hold: called - 1}
	b.show(d, "")
	if got := eval[[]string](b, `[...document.querySelectorAll("td.heat .r")].map((e) => e.textContent).filter((s) => s.includes("~"))`); len(got) != 1 {
		t.Errorf("%q are marked, want one", got)
	}
	if got := eval[int](b, `[...document.querySelectorAll("#table .badge")].filter((e) => e.textContent.includes("~")).length`); got != 1 {
		t.Errorf("%d rows of the table are marked, want one", got)
	}
	want := fmt.Sprintf("%d of the %d differences survive correction for multiple comparisons.", called-1, called)
	if s := eval[string](b, `document.querySelector("#summary .legend").innerText`); !strings.Contains(s, want) || !strings.Contains(s, "~\na difference that fails") {
		t.Errorf("the legend is %q, want %q in it", s, want)
	}
	b.do(`document.querySelector("td.heat:has(.r)") && [...document.querySelectorAll("td.heat")].find((e) => e.textContent.includes("~")).click()`)
	b.wait("the details", `document.querySelector("dialog[open]")`)
	if s := eval[string](b, `document.querySelector("dialog").innerText`); !strings.Contains(s, "0.210: the share of false differences") {
		t.Errorf("the details do not say q: %q", s)
	}
	for i := range d.Result.Compared {
		d.Result.Compared[i].P, d.Result.Compared[i].Q = nil, nil
	}
	d.Result.Discoveries = nil
	b.show(d, "")
	if s := eval[string](b, `document.body.innerText`); strings.Contains(s, "discovery") || strings.Contains(s, "~") {
		t.Error("results without discoveries speak of them")
	}
	b.quiet("file://")
}

// TestNoOtherScriptRuns: the page's policy names its script by hash.
func TestNoOtherScriptRuns(t *testing.T) {
	b := browse(t)
	b.show(small(t), "")
	b.do(`(() => { const s = document.createElement("script"); s.textContent = "window.intruder = 1"; document.body.append(s); const i = document.createElement("div"); i.setAttribute("onclick", "window.intruder = 2"); document.body.append(i); i.click(); })()`)
	if got := eval[int](b, "window.intruder ?? 0"); got != 0 {
		t.Errorf("a script that was put in has run: %d", got)
	}
}
