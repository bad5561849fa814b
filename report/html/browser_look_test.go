package html_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// contrasts lists texts whose contrast with the ground behind them is too low
// (WCAG 2.2, 1.4.3: 4.5 to 1), grounds of heat cells included. It reads the style of each element once.
const contrasts = contrastsIn + `(document.body)`

// contrastsIn is a function that looks at the texts in one element.
const contrastsIn = `((root) => {
	const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return {r: m[0], g: m[1], b: m[2], a: m.length > 3 ? m[3] : 1}; };
	const over = (f, b) => ({r: f.r * f.a + b.r * (1 - f.a), g: f.g * f.a + b.g * (1 - f.a), b: f.b * f.a + b.b * (1 - f.a), a: 1});
	const lum = (c) => { const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(c.r) + 0.7152 * f(c.g) + 0.0722 * f(c.b); };
	const grounds = new Map([[null, {r: 255, g: 255, b: 255, a: 1}]]);
	const ground = (e) => {
		if (!grounds.has(e)) { const c = parse(getComputedStyle(e).backgroundColor); grounds.set(e, c.a === 1 ? c : over(c, ground(e.parentElement))); }
		return grounds.get(e);
	};
	const bad = [];
	const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
	for (let n = walk.nextNode(); n; n = walk.nextNode()) {
		const e = n.parentElement;
		if (!n.textContent.trim() || !e.checkVisibility({opacityProperty: true, visibilityProperty: true}) || e.closest(".hidden, .skip, .chart, .faded, :disabled, script, style")) continue;
		const ink = over(parse(getComputedStyle(e).color), ground(e));
		const [x, y] = [lum(ink), lum(ground(e))].sort((p, q) => q - p);
		const ratio = (x + 0.05) / (y + 0.05);
		if (ratio < 4.5) bad.push(ratio.toFixed(2) + " " + e.className + ": " + n.textContent.trim().slice(0, 40));
	}
	return [...new Set(bad)];
})`

func TestLightAndDark(t *testing.T) {
	d := small(t)
	b := browse(t)
	ground := func() string { return eval[string](b, "getComputedStyle(document.body).backgroundColor") }
	seen := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		b.media("", scheme)
		b.show(d, "")
		seen[scheme] = ground()
		if got := eval[string](b, "document.documentElement.dataset.theme"); got != scheme {
			t.Errorf("the system is %s, the page %s", scheme, got)
		}
		b.do(`for (const q of document.querySelectorAll(".ask")) q.click()`)
		if bad := eval[[]string](b, contrasts); len(bad) > 0 {
			t.Errorf("%s: too little contrast: %q", scheme, bad)
		}
		b.do(`Tare.open(Tare.data.items.find((i) => i.kind === "worse").key)`)
		if bad := eval[[]string](b, contrasts); len(bad) > 0 {
			t.Errorf("%s, with details: too little contrast: %q", scheme, bad)
		}
	}
	if seen["light"] == seen["dark"] {
		t.Errorf("light and dark both are %s", seen["light"])
	}
	// The button overrides the system, the charts follow.
	drawn := eval[int](b, `Number(document.querySelector('[data-chart="ratios"]').dataset.drawn || 0)`)
	b.do(`document.querySelector("dialog").close()`)
	b.click("#theme")
	if got := ground(); got != seen["light"] {
		t.Errorf("after the button the ground is %s, want %s", got, seen["light"])
	}
	b.drawAll()
	if n := eval[int](b, `Number(document.querySelector('[data-chart="ratios"]').dataset.drawn || 0)`); n <= drawn {
		t.Error("the charts were not drawn anew in other colours")
	}
	// While the system is dark, a click brings light, the next one dark again.
	b.click("#theme")
	if got := ground(); got != seen["dark"] {
		t.Errorf("after two clicks the ground is %s, want %s", got, seen["dark"])
	}
	b.quiet("file://")
}

// cut lists what stands out of the page's width, tables and charts among them.
const cut = `(() => {
	const w = document.documentElement.clientWidth, out = [], scrolls = new Map([[null, false]]);
	const inner = (e) => {
		if (!scrolls.has(e)) scrolls.set(e, ["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX) || inner(e.parentElement));
		return scrolls.get(e);
	};
	for (const e of document.querySelectorAll("main *, header *, #bar *")) {
		if (!e.checkVisibility() || e.closest(".hidden, .skip")) continue;
		const r = e.getBoundingClientRect();
		if (r.width > 0 && (r.right > w + 1 || r.left < -1) && !inner(e.parentElement)) out.push(e.tagName + "." + e.className + " to " + Math.round(r.right) + " of " + w);
	}
	return out;
})()`

func TestPhone(t *testing.T) {
	b := browse(t)
	b.size(360, 740)
	for _, name := range []func(string) string{nil, func(s string) string { return s + " which has quite a long name for a level" }} {
		b.show(shape{workloads: 2, sizes: 2, name: name}.document(t), "")
		b.drawAll()
		if w := eval[int](b, "document.documentElement.scrollWidth"); w > 360 {
			t.Errorf("the page is %d px wide on a screen of 360", w)
		}
		if out := eval[[]string](b, cut); len(out) > 0 {
			t.Errorf("these stand out: %q", out)
		}
		b.click(".filters > summary")
		b.click(".pick > summary")
		if out := eval[[]string](b, cut); len(out) > 0 {
			t.Errorf("with the filters open these stand out: %q", out)
		}
		b.click("td.heat.k-worse")
		b.wait("the details", `document.querySelector("dialog[open]")`)
		if w := eval[[]int](b, `(() => { const d = document.querySelector("dialog .dialog-body"); return [d.scrollWidth, d.clientWidth]; })()`); w[0] > w[1] {
			t.Errorf("the details are %d px wide in %d", w[0], w[1])
		}
		// What is touched is big enough to be hit (WCAG 2.2, 2.5.8: 24 px).
		if out := eval[[]string](b, `[...document.querySelectorAll("button, select, td.heat, .pick > summary")].filter((e) => e.checkVisibility()).filter((e) => !e.matches(".sort, .ask")).filter((e) => { const r = e.getBoundingClientRect(); return r.height < 24 || r.width < 24; }).map((e) => e.outerHTML.slice(0, 80))`); len(out) > 0 {
			t.Errorf("too small for a finger: %q", out)
		}
	}
	b.quiet("file://")
}

// TestPhoneShowsTheAnswerFirst: the first screen of a phone has a short sentence for each sandbox, and
// below them the heat map with the sandbox that costs most.
func TestPhoneShowsTheAnswerFirst(t *testing.T) {
	b := browse(t)
	b.size(390, 700) // the bars of a browser take the rest of 844
	d := small(t)
	b.show(d, "")
	said := func() string { return eval[string](b, `document.querySelector("#answer .answer").innerText`) }
	whole, short := "", ""
	for _, s := range d.Answer {
		if s.Short != "" {
			whole, short = s.Text, s.Short
		}
	}
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if got := flat(said()); !strings.Contains(got, short) || strings.Contains(got, whole) || strings.Contains(got, "Of 20 comparisons") {
		t.Errorf("it says %q, want %q in it", got, short)
	}
	if lines := eval[[]float64](b, `[...document.querySelectorAll("#answer .answer li")].filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect().height)`); len(lines) == 0 || slices.Max(lines) > 45 {
		t.Errorf("sentences of more than two lines: %v px", lines)
	}
	worst := `Tare.data.items.filter((i) => i.kind === "worse").reduce((a, b) => (a.cost.x > b.cost.x ? a : b))`
	box := eval[[]float64](b, `(() => {
		const worst = `+worst+`, t = document.querySelector("#summary .heatmap");
		const cell = [...t.querySelectorAll("td.heat")].find((e) => e.dataset.key.split("|")[1] === worst.key.split("|")[1]).getBoundingClientRect();
		return [cell.left, cell.right, cell.bottom];
	})()`)
	if box[0] < 0 || box[1] > 390 || box[2] > 700 {
		t.Errorf("the first cell of the costliest sandbox goes from %.0f to %.0f px, down to %.0f", box[0], box[1], box[2])
	}
	b.click("#whole")
	if got := flat(said()); !strings.Contains(got, whole) || strings.Contains(got, short) || !strings.Contains(got, "Of 20 comparisons") {
		t.Errorf("on demand it says %q, want %q in it", got, whole)
	}
	b.size(1280, 900)
	b.show(d, "")
	if got := flat(said()); !strings.Contains(got, whole) || strings.Contains(got, short) {
		t.Errorf("on a desk it says %q, want %q in it", got, whole)
	}
	b.quiet("file://")
}

// controls counts what waits for a click, the heads of tables apart.
const controls = `[...document.querySelectorAll("button, select, input, nav")].filter((e) => e.checkVisibility() && !e.closest("thead")).length`

func TestPrint(t *testing.T) {
	d := small(t)
	b := browse(t)
	b.media("", "dark")
	b.show(d, "")
	b.size(703, 1000) // the width between the margins of A4
	b.media("print", "dark")
	b.wait("the charts to be drawn for paper", `[...document.querySelectorAll(".chart")].every((c) => c.hidden || c.offsetHeight === 0 || c.querySelector("canvas"))`)
	if out := eval[[]string](b, cut); len(out) > 0 {
		t.Errorf("these are cut off in print: %q", out)
	}
	// Paper is white whatever the screen is, and nothing there waits for a click.
	if got := eval[string](b, "getComputedStyle(document.body).backgroundColor"); got != "rgb(255, 255, 255)" {
		t.Errorf("paper is %s", got)
	}
	if out := eval[[]string](b, contrasts); len(out) > 0 {
		t.Errorf("too little contrast: %q", out)
	}
	if n := eval[int](b, controls); n > 0 {
		t.Errorf("%d controls are printed", n)
	}
	// Lists are whole in print: 96 rows, and the study file is unfolded.
	if n := len(shown(b)); n != len(compared(d)) {
		t.Errorf("%d rows are printed of %d", n, len(compared(d)))
	}
	if s := eval[string](b, `document.querySelector("#asked pre")?.innerText ?? ""`); !strings.Contains(s, "study: made up") {
		t.Errorf("the study file is printed as %q", s)
	}
	// 96 rows of figures, as many as two of the first study.
	if n := pages(b); n < 3 || n > 9 {
		t.Errorf("the PDF has %d pages", n)
	}
	b.media("", "dark")
	b.size(1280, 900)
	if got := eval[string](b, "document.documentElement.dataset.theme"); got != "dark" {
		t.Errorf("after printing the page is %s", got)
	}
	b.quiet("file://")
}

// pages are how many pages of A4 the report has on paper.
func pages(b *browser) int {
	b.t.Helper()
	r := call(b, page.PrintToPDF, page.PrintToPDFParams{PaperWidth: 8.27, PaperHeight: 11.69, PreferCSSPageSize: new(true)})
	if !bytes.HasPrefix(r.Data, []byte("%PDF-")) {
		b.t.Errorf("what is printed is not a PDF: %.20q", r.Data)
	}
	return bytes.Count(r.Data, []byte("/Type /Page\n"))
}

// TestPrintOfCauses: on paper no map of causes is cut off, and no patch has a button.
func TestPrintOfCauses(t *testing.T) {
	b := browse(t)
	b.size(703, 1000)
	b.show(withCauses(t, false), "")
	b.media("print", "light")
	b.wait("the charts to be drawn for paper", `[...document.querySelectorAll(".chart")].every((c) => c.hidden || c.offsetHeight === 0 || c.querySelector("canvas"))`)
	if out := eval[[]string](b, cut); len(out) > 0 {
		t.Errorf("these are cut off in print: %q", out)
	}
	if n := eval[int](b, controls); n > 0 {
		t.Errorf("%d controls are printed", n)
	}
	if n := pages(b); n < 3 || n > 9 {
		t.Errorf("the PDF has %d pages", n)
	}
	b.quiet("file://")
}

// TestAccessibility runs the rules of axe-core over the page and its details.
func TestAccessibility(t *testing.T) {
	axe, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	b := browse(t)
	b.show(small(t), "")
	b.drawAll()
	b.do(string(axe))
	check := func(what string) {
		t.Helper()
		type violation struct {
			ID, Help, Impact string
			Nodes            []string
		}
		for _, v := range eval[[]violation](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) => ({ID: v.id, Help: v.help, Impact: v.impact, Nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160))})))`) {
			out, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			t.Errorf("%s: %s", what, out)
		}
	}
	check("the page")
	b.do(`for (const q of document.querySelectorAll(".ask")) q.click(); for (const d of document.querySelectorAll("details")) d.open = true;`)
	check("the page with everything unfolded")
	b.do(`Tare.open(Tare.data.items.find((i) => i.kind === "worse").key)`)
	check("the details")
	b.size(360, 740)
	b.do(`document.querySelector("dialog").close()`)
	check("a phone")
}
