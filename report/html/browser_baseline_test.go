package html_test

import (
	"slices"
	"strings"
	"testing"

	"tare/analyse"
)

// TestBaselineAlone: where nothing is compared, the page shows the baseline's values, and no section of comparisons.
func TestBaselineAlone(t *testing.T) {
	d := small(t)
	d.Result.Compared = slices.DeleteFunc(slices.Clone(d.Result.Compared), func(c analyse.Comparison) bool { return !c.Baseline })
	b := browse(t)
	b.show(d, "")
	b.wait("the values", `document.querySelector("#costs table tbody tr, #heat table tbody tr, table.heatmap tbody tr")`)
	text := eval[string](b, `document.body.innerText`)
	if strings.Contains(text, "No comparison matches the filter") {
		t.Error("the page says that a filter hides comparisons, and has neither")
	}
	n := eval[int](b, `document.querySelectorAll("table.heatmap tbody tr").length`)
	if n == 0 {
		t.Error("the baseline's values are missing")
	}
	parts := eval[string](b, `[...document.querySelectorAll("nav.parts a")].map((a) => a.textContent).join("|")`)
	if strings.Contains(parts, "Costs with intervals") {
		t.Errorf("the contents have an empty part: %s", parts)
	}
	b.quiet("file://")
}
