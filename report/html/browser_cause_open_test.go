package html_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"tare/analyse/cause"
	"tare/report/document"
)

// key is what opens the first finding of a kind that costs, or any.
func key(t *testing.T, d *document.Document, k cause.Name) string {
	t.Helper()
	out := ""
	for i := range d.Causes.Findings {
		if f := &d.Causes.Findings[i]; f.Cause == k && !d.Cells[f.Cell].Baseline && (f.Costs || out == "") {
			out = "cause|" + d.Cells[f.Cell].Key
			if f.Costs {
				break
			}
		}
	}
	if out == "" {
		t.Fatalf("no cell has the cause %s", k)
	}
	return out
}

// TestCauseOpens by key, by click and by address; what is in it is the finding's.
func TestCauseOpens(t *testing.T) {
	d := withCauses(t, false)
	b := browse(t)
	b.show(d, "")
	// By keys: Enter on a cell; Escape gives the focus back.
	id := eval[string](b, `(() => { const td = document.querySelector('#causes td.heat[data-costs="1"]'); td.focus(); return td.dataset.id; })()`)
	b.press(kb.Enter)
	b.wait("the details", `document.querySelector("dialog[open] .readings")`)
	b.press(kb.Escape)
	b.wait("them to close", `!document.querySelector("dialog[open]")`)
	if got := eval[string](b, `document.activeElement.dataset.id ?? ""`); got != id {
		t.Errorf("after Escape the focus is on %q, want %q", got, id)
	}
	// By click, the readings in their groups, as bars in proportion.
	k := key(t, d, cause.Helper)
	b.click(fmt.Sprintf(`#causes td[data-open=%s]`, quote(k)))
	b.wait("the details", `document.querySelector("dialog[open] .readings")`)
	text := eval[string](b, `document.querySelector("dialog").innerText`)
	for _, s := range []string{"helper vhost", "confidence 60 %: doubtful", "One vhost thread is busy 88 % of its time", "Supports it", "Neither: near the limit", "Excludes other causes",
		"vhost thread, share of a core", "88.0 % (85.0 % to 90.0 %); limit 80.0 %", "2.40 GB/s", "2.50 × (2.40 to 2.60) the CPU time per request", "One trial in time"} {
		if !strings.Contains(text, s) {
			t.Errorf("the details lack %q", s)
		}
	}
	type bar struct {
		About              string
		Value, Fill, Limit float64
	}
	for _, x := range eval[[]bar](b, `[...document.querySelectorAll("dialog .reading")].map((e) => { const w = e.querySelector(".track").getBoundingClientRect(), f = e.querySelector(".fill").getBoundingClientRect(), l = e.querySelector(".limit"); return {
		About: e.dataset.about, Value: Number(e.dataset.value), Fill: f.width / w.width, Limit: l ? (l.getBoundingClientRect().x + 1 - w.x) / w.width : 0}; })`) {
		limit := map[string]float64{"helper": 0.8, "quota": 0.9, "link": 2.5e9}[x.About]
		if limit > 0 && (x.Fill/x.Limit < 0.97*x.Value/limit || x.Fill/x.Limit > 1.03*x.Value/limit) {
			t.Errorf("%s: the bar is %.3f of the track and the limit at %.3f, the value %g of %g", x.About, x.Fill, x.Limit, x.Value, limit)
		}
	}
	// The series that its readings name are drawn, those of its role alone.
	b.wait("the series", `document.querySelector('dialog [data-chart="series cpu"]')`)
	b.do(`document.querySelector('dialog [data-chart="series cpu"]').scrollIntoView()`)
	b.wait("its picture", `document.querySelector('dialog [data-chart="series cpu"] canvas')`)
	if keys := eval[string](b, `document.querySelector('dialog figure.wide .keys').innerText`); !strings.Contains(keys, "sentry") {
		t.Errorf("the lines are %q", keys)
	}
	// To the comparison and back.
	b.click(`dialog [data-id="cause-comparison"]`)
	b.wait("the comparison", `document.querySelector("dialog .causeline")`)
	b.click(`dialog [data-id="details-cause"]`)
	b.wait("the cause again", `document.querySelector("dialog[open] .readings")`)
	hash := eval[string](b, "location.hash")
	b.show(d, hash)
	b.wait("the details by address", `document.querySelector("dialog[open] .readings")`)
	b.do(`document.querySelector("dialog").close()`)
	b.wait("them to close", `!Tare.state.open`)
	// Fits are drawn, with what the fit says in words and as a table.
	for kind, say := range map[cause.Name]string{cause.Path: "Constant 30.0 µs (28.0 µs to 32.0 µs)", cause.Saturation: "Constant 1.60 (0.90 to 2.30)"} {
		b.do(fmt.Sprintf(`Tare.open(%s)`, quote(key(t, d, kind))))
		b.do(`document.querySelector('dialog [data-chart^="fit"]').scrollIntoView()`)
		b.wait("the fit", `document.querySelector('dialog [data-chart^="fit"] canvas')`)
		if got := eval[string](b, `document.querySelector('dialog [data-chart^="fit"]').getAttribute("aria-label")`); !strings.Contains(got, say) {
			t.Errorf("%s: %s", kind, got)
		}
	}
	b.do(fmt.Sprintf(`Tare.open(%s)`, quote(key(t, d, cause.Unknown))))
	if got := eval[string](b, `document.querySelector("dialog").innerText`); !strings.Contains(got, "write collectors: [guest]") {
		t.Errorf("what was not read is not said: %s", got)
	}
	// Keys that are of nothing open nothing.
	for _, k := range []string{"cause|nothing", "cause-map|9|9|9", "cause-map|0|-1|0", "cause|__proto__"} {
		b.do(`document.querySelector("dialog").close()`)
		b.wait("them to close", `!Tare.state.open`)
		b.do(fmt.Sprintf(`Tare.open(%s)`, quote(k)))
		if eval[bool](b, `!!document.querySelector("dialog[open]")`) {
			t.Errorf("%q opened something", k)
		}
	}
	b.quiet("file://")
}
