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
