package html_test

import (
	"strings"
	"testing"

	"tare/analyse"
	"tare/report/words"
)

// TestModelledIsMarked: at the top, below each table and each chart, in its description.
func TestModelledIsMarked(t *testing.T) {
	d := shape{workloads: 3, sizes: 4, responses: []string{"latency", "throughput"}, window: true, also: func(r *analyse.Result) {
		findings(nil, true)(r)
		r.Modelled = true
	}}.document(t)
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
	// One mark a card, and one in each patch, which may be copied.
	for _, card := range eval[[]string](b, `[...document.querySelectorAll("#advice article.advice")].map((e) => { const c = e.cloneNode(true); c.querySelectorAll("pre").forEach((p) => p.remove()); return c.textContent; })`) {
		if n := strings.Count(strings.ToLower(card), "modelled"); n != 1 {
			t.Errorf("a card says %d times that it is modelled: %s", n, card)
		}
	}
	text := eval[string](b, `document.querySelector("#advice").textContent`)
	if !strings.Contains(text, words.ModelledPatch+"\nmetadata:") || strings.Contains(text, "this study measured") {
		t.Errorf("the advice says:\n%s", text)
	}
	b.quiet("file://")
}
