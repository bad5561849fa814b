package html_test

import (
	"fmt"
	"testing"
	"time"

	"tare/report/document"
)

// many is a study of 3,000 cells with three responses and ten trials each.
func many(t testing.TB) *document.Document {
	t.Helper()
	return shape{workloads: 50, sizes: 10, fixed: 10, responses: []string{"latency", "throughput", "memory"}, plain: true}.document(t)
}

// TestManyCells measures what people do with a large report. The bounds are wide:
// they find what hangs, the figures printed tell how it feels.
func TestManyCells(t *testing.T) {
	if testing.Short() {
		t.Skip("a large study: not in short mode")
	}
	d := many(t)
	b := browse(t)
	began := time.Now()
	b.show(d, "")
	t.Logf("%d cells, %d comparisons, %d trials; from opening the file to the report: %v", len(d.Cells), len(d.Result.Compared), len(d.Trials.Cell), time.Since(began).Round(time.Millisecond))
	// Time until the browser has painted what an action changed.
	measure := func(what, action string) {
		t.Helper()
		ms := eval[float64](b, `(async () => {
			const painted = () => new Promise((r) => requestAnimationFrame(() => setTimeout(r, 0)));
			await painted();
			const from = performance.now();
			`+action+`
			await painted();
			return performance.now() - from;
		})()`)
		t.Logf("%-34s %6.0f ms", what, ms)
		if ms > 20_000 {
			t.Errorf("%s took %.0f ms", what, ms)
		}
	}
	measure("filter by a level", `Tare.set("filter", (s) => s.pick.set("size", new Set(["8KiB"])));`)
	if n := eval[int](b, "Tare.view.items.length"); n != 50*5*3 {
		t.Errorf("%d comparisons pass, want 750", n)
	}
	measure("no filter", `Tare.set("filter", (s) => s.pick.clear());`)
	measure("filter by a text", `Tare.set("filter", (s) => { s.text = "w17 runsc"; });`)
	measure("the same again", `Tare.set("filter", (s) => { s.text = "w18 runsc"; });`)
	measure("no filter", `Tare.set("filter", (s) => { s.text = ""; });`)
	measure("sort by ratio", `Tare.set("sort", (s) => { s.sort = "ratio"; s.desc = true; });`)
	measure("sort by a factor", `Tare.set("sort", (s) => { s.sort = "f.size"; s.desc = false; });`)
	measure("next page of the heat map", `Tare.set("page:heat", (s) => { s.page.heat = 7; });`)
	measure("last page of the table", `Tare.set("page:table", (s) => { s.page.table = 74; });`)
	measure("open the details", `Tare.open(Tare.data.items.find((i) => i.kind === "worse").key);`)
	measure("close them", `document.querySelector("dialog").close();`)
	frames := eval[[]float64](b, `(async () => {
		const out = [];
		let last = performance.now();
		for (let y = 0; y < document.body.scrollHeight; y += 120) {
			scrollTo({top: y, behavior: "instant"});
			await new Promise((r) => requestAnimationFrame(r));
			const now = performance.now();
			out.push(now - last);
			last = now;
		}
		return out.sort((a, b) => a - b);
	})()`)
	t.Logf("scrolling: %d frames, median %.0f ms, worst %.0f ms", len(frames), frames[len(frames)/2], frames[len(frames)-1])
	// Only what is in view is in the page.
	if n := eval[int](b, `document.querySelectorAll("*").length`); n > 12_000 {
		t.Errorf("%d elements in the page", n)
	}
	if got, want := eval[string](b, `document.querySelector("#table .pager span").textContent`), fmt.Sprintf("7,401–7,500 of %s comparisons", "7,500"); got != want {
		t.Errorf("the pager says %q, want %q", got, want)
	}
	b.quiet("file://")
}
