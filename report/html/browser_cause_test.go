package html_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/report/document"
	"tare/report/words"
)

// TestCauseMap: every cell has the cause that was found, in words, with whether it costs;
// tables of several cells have what words.Tally says.
func TestCauseMap(t *testing.T) {
	var res *analyse.Result
	d := shape{workloads: 3, sizes: 4, responses: []string{"latency"}, window: true, also: func(r *analyse.Result) {
		findings(nil, true)(r)
		c := *r
		res = &c
	}}.document(t)
	b := browse(t)
	b.show(d, "")
	type cell struct{ Key, Cause, Costs, Word, State string }
	var want []cell
	for i := range res.Causes {
		f := &res.Causes[i]
		costs, word := "0", words.Tally([]*cause.Finding{f}).Word()
		if f.Costs {
			costs = "1"
		}
		if (f.Costs || f.Baseline) && f.Confidence > 0 && f.Confidence < words.Doubtful {
			word += " ?"
		}
		want = append(want, cell{"cause|" + f.Cell.Key(), string(f.Cause), costs, word, words.CauseState(f)})
	}
	if !slices.ContainsFunc(want, func(c cell) bool { return c.State == words.NotDecided }) || !slices.ContainsFunc(want, func(c cell) bool { return c.State == words.NoCost }) {
		t.Error("not all states are among the findings")
	}
	got := eval[[]cell](b, `[...document.querySelectorAll('#causes .causemap[aria-label="Causes of every cell"] td.heat')].map((td) => ({Key: td.dataset.open, Cause: td.dataset.cause, Costs: td.dataset.costs, Word: td.querySelector(".r").textContent, State: td.querySelector(".hidden").textContent.split(": ").pop()}))`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("every cell (-want +got):\n%s", diff)
	}
	m := words.TableCauses(res)
	if len(m) != 1 {
		t.Fatalf("%d maps", len(m))
	}
	var tally, shown [][]string
	for _, row := range m[0].Rows {
		line := []string{}
		for _, at := range row.Cells {
			if x := words.Tally(words.Findings(res, at)); len(at) > 0 && !row.Baseline {
				line = append(line, fmt.Sprint(x.Word(), " ", x.Costs, " of ", x.Cells))
			}
		}
		if len(line) > 0 {
			tally = append(tally, line)
		}
	}
	shown = eval[[][]string](b, `[...document.querySelectorAll("#causes [data-causes] tbody tr")].slice(1).map((tr) => [...tr.querySelectorAll("td.heat")].map((td) =>
		td.querySelector(".r").textContent.replace(/ \?$/, "") + " " + (/costs in (\d+ of \d+)/.exec(td.textContent)[1])))`)
	if diff := cmp.Diff(tally, shown); diff != "" || len(tally) == 0 {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	// The filter chooses rows of every cell, and leaves the tables of the whole study.
	all := len(got)
	b.do(`Tare.set("filter", (s) => s.pick.set("workload", new Set(["w1"])))`)
	if n := eval[int](b, `document.querySelectorAll('#causes .causemap[aria-label="Causes of every cell"] td.heat').length`); n*3 != all {
		t.Errorf("%d cells of %d pass a filter of one workload in three", n, all)
	}
	if n := eval[int](b, `document.querySelectorAll("#causes [data-causes] tbody tr").length`); n != len(m[0].Rows) {
		t.Errorf("%d rows in the table", n)
	}
	b.quiet("file://")
}

// key is what opens the first finding of a kind that costs, or any.
func key(t *testing.T, d *document.Document, k cause.Kind) string {
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
	for _, s := range []string{"helper vhost", "confidence 60 %: doubtful", "One vhost thread is busy 88 % of its time", "Supports it", "Near the limit", "Excludes other causes",
		"vhost thread, share of a core", "88.0 % (85.0 % to 90.0 %); limit 80.0 %", "2.40 GB/s", "2.50 x (2.40 to 2.60) the CPU time a request", "One trial in time"} {
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
	for kind, say := range map[cause.Kind]string{cause.Path: "Constant 30.0 us (28.0 us to 32.0 us)", cause.Saturation: "Constant 1.60 (0.90 to 2.30)"} {
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

// TestAdvice: the patch can be copied, and is there to select; its cells open.
func TestAdvice(t *testing.T) {
	d := withCauses(t, true)
	b := browse(t)
	b.show(d, "")
	text := eval[string](b, `document.getElementById("advice").innerText`)
	for _, s := range []string{"Boot two vCPUs", "0.61 × the latency (0.55 to 0.68)", "default_vcpus=2 beside default_vcpus=1", "12 pairs of blocks, 3 pairs of cells", "2.5 times the CPU", "with a low CPU limit",
		"pod manifest", "Rule more-queues", "Not proven here: no cell with another limit"} {
		if !strings.Contains(text, s) {
			t.Errorf("the advice lacks %q: %s", s, text)
		}
	}
	want := d.Advice[0].Patches[0].Text
	if got := eval[string](b, `document.querySelector("#advice pre").textContent`); got != want {
		t.Errorf("the patch is %q", got)
	}
	b.click(`#advice .patch button`)
	b.wait("what the button says", `/Copied|Selected/.test(document.querySelector("#advice .patch button").textContent)`)
	if eval[string](b, `document.querySelector("#advice .patch button").textContent`) != "Copied" {
		if got := eval[string](b, `getSelection().toString()`); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("selected is %q", got)
		}
	}
	// A cell of a table lists its cells; one of them opens.
	b.click(`#causes [data-causes] tr:nth-child(4) td.heat`)
	b.wait("the list", `document.querySelectorAll("dialog[open] .causelist li").length === 3`)
	b.click(`dialog .causelist li:first-child button`)
	b.wait("its readings", `document.querySelector("dialog[open] .readings")`)
	b.quiet("file://")
}

// A study without findings has neither part.
func TestNoCauses(t *testing.T) {
	b := browse(t)
	b.show(shape{workloads: 1, sizes: 1, also: func(r *analyse.Result) { r.Causes, r.Advice = nil, nil }}.document(t), "")
	for _, id := range []string{"causes", "advice"} {
		if !eval[bool](b, fmt.Sprintf(`document.getElementById(%q).hidden && !document.querySelector('[data-id="nav-%s"]')`, id, id)) {
			t.Errorf("there is a part %s", id)
		}
	}
	if eval[bool](b, `document.body.innerText.toLowerCase().includes("modelled")`) {
		t.Error("measured figures say that they are modelled")
	}
}

// TestCausesWithoutScripts: the causes, the advice and its patch are there.
func TestCausesWithoutScripts(t *testing.T) {
	d := withCauses(t, true)
	d.Modelled = words.ModelledAbout
	path := write(t, d)
	b := browse(t)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.must(chromedp.Do(b.ctx, chromedp.Navigate("file://"+path)))
	got := eval[string](b, `document.body.innerText`)
	for _, s := range []string{d.Causes.Summary, "helper vhost", "one vhost thread is busy 88 %", "Boot two vCPUs", "io.katacontainers.config.hypervisor.default_vcpus", "no machine", words.Modelled} {
		if s == "no machine" {
			s = words.ModelledAbout
		}
		if !strings.Contains(got, s) {
			t.Errorf("without scripts the page lacks %q", s)
		}
	}
}

// TestModelledIsMarked: at the top, below each table and each chart, in its description.
func TestModelledIsMarked(t *testing.T) {
	d := withCauses(t, true)
	d.Modelled = words.ModelledAbout
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	if got := eval[string](b, `document.querySelector("header .modelled").innerText + document.title`); !strings.Contains(got, words.ModelledAbout) || !strings.Contains(got, "modelled: ") {
		t.Errorf("the top says %q", got)
	}
	bare := eval[[]string](b, `[...document.querySelectorAll("main table, .chart")].filter((e) => e.checkVisibility()).filter((e) => !getComputedStyle(e.matches(".chart") ? e : e.closest(".scroll") ?? e, "::after").content.includes("modelled")).map((e) => e.outerHTML.slice(0, 100))`)
	if len(bare) > 0 {
		t.Errorf("these do not say it: %q", bare)
	}
	if n := eval[int](b, `[...document.querySelectorAll(".chart[data-drawn]")].filter((c) => !/^Modelled/.test(c.getAttribute("aria-label"))).length`); n > 0 {
		t.Errorf("%d charts' descriptions do not say it", n)
	}
	said := eval[[]string](b, `[...document.querySelectorAll("#advice :is(.gain, .price, .patch)")].map((e) => getComputedStyle(e, "::after").content)`)
	for _, s := range said {
		if !strings.Contains(s, words.Modelled) {
			t.Errorf("a gain, price or patch says %q", s)
		}
	}
	text := eval[string](b, `document.querySelector("#advice").textContent`)
	if len(said) < 3 || !strings.Contains(text, words.ModelledPatch+"\nmetadata:") || strings.Contains(text, "this study measured") {
		t.Errorf("%d gains, prices and patches of:\n%s", len(said), text)
	}
	b.quiet("file://")
}

// TestHostileCauses: texts of findings and advice do nothing.
func TestHostileCauses(t *testing.T) {
	d := shape{workloads: 2, sizes: 3, name: hostile, window: true, also: findings(hostile, true)}.document(t)
	d.Modelled = hostile("m")
	d.Causes.Kinds[0].Word, d.Causes.Findings[2].Role, d.Causes.Findings[1].Cause = hostile("word"), hostile("role"), cause.Kind(hostile("__proto__"))
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	b.do(`for (const x of document.querySelectorAll("details")) x.open = true;`)
	for _, k := range eval[[]string](b, `[...new Map([...document.querySelectorAll("#causes td[data-open]")].reverse().map((x) => [x.dataset.cause + x.dataset.open.startsWith("cause-map"), x.dataset.open])).values()].slice(0, 5)`) {
		b.do(`Tare.open(` + quote(k) + `); for (const x of document.querySelectorAll("dialog details")) x.open = true;`)
		if !eval[bool](b, `document.querySelector("dialog[open]").innerText.includes("<script>")`) {
			t.Errorf("%.60s: the details do not show the name as it is", k)
		}
	}
	if eval[bool](b, `"harmed" in window || Object.prototype.harmed !== undefined`) {
		t.Error("a text was run as a script")
	}
	if n := eval[int](b, `document.querySelectorAll("img, iframe, object, embed").length`); n > 0 {
		t.Errorf("a text became %d elements", n)
	}
	if eval[bool](b, `/[\u202a-\u202e]/.test(document.body.innerText + document.title)`) {
		t.Error("a text turns what follows it round")
	}
	b.do(`document.querySelector("dialog").close()`)
	b.size(360, 740)
	b.drawAll()
	if w := eval[int](b, "document.documentElement.scrollWidth"); w > 360 {
		t.Errorf("the page is %d px wide on a screen of 360", w)
	}
	b.quiet("file://")
}

// TestCauseLooks: contrast, width and rules of accessibility, in light and dark, on a
// desk and a phone, with the details open. TARE_LOOK=DIR keeps pictures.
func TestCauseLooks(t *testing.T) {
	axe, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	d := withCauses(t, true)
	d.Modelled = words.ModelledAbout
	b := browse(t)
	shot := func(name, selector string) {
		dir := os.Getenv("TARE_LOOK")
		if dir == "" {
			return
		}
		box := eval[[]float64](b, fmt.Sprintf(`(() => { const r = document.querySelector(%s).getBoundingClientRect(); return [r.x, r.y + scrollY, r.width, r.height]; })()`, quote(selector)))
		r := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true), Clip: &page.Viewport{X: box[0], Y: box[1], Width: box[2], Height: box[3], Scale: 1}})
		if err := os.WriteFile(dir+"/"+name+".png", r.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	look := func(what string) {
		t.Helper()
		if bad := eval[[]string](b, contrasts); len(bad) > 0 {
			t.Errorf("%s: too little contrast: %q", what, bad)
		}
		if out := eval[[]string](b, cut); len(out) > 0 {
			t.Errorf("%s: these stand out: %q", what, out)
		}
		for _, v := range eval[[]json.RawMessage](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) => ({ID: v.id, Help: v.help, Nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160))})))`) {
			t.Errorf("%s: %s", what, v)
		}
	}
	for _, x := range []struct {
		scheme string
		width  int64
	}{{"light", 1280}, {"dark", 1280}, {"light", 360}} {
		name := fmt.Sprintf("%s-%d", x.scheme, x.width)
		b.media("", x.scheme)
		b.size(x.width, 900)
		b.show(d, "")
		b.drawAll()
		b.do(string(axe))
		look(name)
		shot("causes-"+name, "#causes")
		shot("advice-"+name, "#advice")
		for _, k := range []cause.Kind{cause.Helper, cause.Path} {
			b.do(fmt.Sprintf(`Tare.open(%s)`, quote(key(t, d, k))))
			b.wait("the details", `document.querySelector("dialog[open] .readings")`)
			look(name + ", details")
			b.size(x.width, 2600)
			b.wait("charts", `[...document.querySelectorAll("dialog .chart")].every((c) => c.dataset.drawn)`)
			shot("cause-"+string(k)+"-"+name, "dialog")
			b.size(x.width, 900)
		}
		b.do(`document.querySelector("dialog").close()`)
	}
	b.quiet("file://")
}
