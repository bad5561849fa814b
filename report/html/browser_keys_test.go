package html_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"tare/analyse"
	"tare/plan"
	"tare/record"
)

// focus tells what has the focus.
func focus(b *browser) string {
	b.t.Helper()
	return eval[string](b, `(() => { const e = document.activeElement; return e ? [e.tagName.toLowerCase(), e.id && "#" + e.id, e.className && "." + String(e.className).split(" ")[0]].filter(Boolean).join("") : ""; })()`)
}

// closed holds when the details are closed and have given the focus back.
const closed = `!document.querySelector("dialog[open]") && Tare.state.open === null`

func TestKeyboard(t *testing.T) {
	b := browse(t)
	b.show(small(t), "")
	b.press(kb.Tab)
	if got := focus(b); got != "a.skip" {
		t.Fatalf("the first Tab goes to %s, want the skip link", got)
	}
	if !eval[bool](b, `(() => { const r = document.activeElement.getBoundingClientRect(); return r.left >= 0 && r.top >= 0; })()`) {
		t.Error("the skip link is not to be seen when it has the focus")
	}
	b.press(kb.Enter)
	if got := focus(b); got != "main#main" {
		t.Errorf("the skip link leads to %s", got)
	}
	// On with Tab: each stop can be seen to have the focus, and the order is that
	// of the page.
	var order []string
	last := -1
	for range 120 {
		b.press(kb.Tab)
		at := eval[struct {
			What string
			Seen bool
			Bare bool // not under the bar of filters
			Top  int
		}](b, `(() => {
			const e = document.activeElement, s = getComputedStyle(e);
			return {What: [e.tagName.toLowerCase(), e.id && "#" + e.id, e.className && "." + String(e.className).split(" ")[0]].filter(Boolean).join(""),
				Seen: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2,
				Bare: !!e.closest("#bar, header") || e.getBoundingClientRect().bottom > document.getElementById("bar").getBoundingClientRect().bottom, Top: Math.round(e.closest("section, #bar, header")?.getBoundingClientRect().top + scrollY)};
		})()`)
		if at.What == "body" || at.What == "a.skip" {
			break
		}
		order = append(order, at.What)
		if !at.Seen {
			t.Errorf("the focus on %s cannot be seen", at.What)
		}
		if !at.Bare {
			t.Errorf("%s has the focus under the bar", at.What)
		}
		if at.Top < last {
			t.Errorf("%s comes after what is below it", at.What)
		}
		last = at.Top
	}
	all := strings.Join(order, " ")
	for _, want := range []string{"td.heat", "tr", "button.sort", "select#series-cell", "button.ask"} {
		if !strings.Contains(all, want) {
			t.Errorf("Tab never comes to %s: %s", want, all)
		}
	}
	if n := strings.Count(all, "td.heat"); n != 1 {
		t.Errorf("the heat map has %d stops, want one and arrows", n)
	}
	// Arrows in the heat map, Enter, Escape, and the focus back where it was.
	b.do(`document.querySelector('td.heat[tabindex="0"]').focus()`)
	from := eval[string](b, "document.activeElement.dataset.key")
	b.press(kb.ArrowRight)
	b.press(kb.ArrowDown)
	key := eval[string](b, "document.activeElement.dataset.key")
	p, q := strings.Split(from, "|"), strings.Split(key, "|")
	if len(q) != 3 || p[1] == q[1] || p[2] == q[2] || p[0] != q[0] {
		t.Fatalf("right and down of %q is %q", from, key)
	}
	b.press(kb.Enter)
	b.wait("the details", `document.querySelector("dialog[open]")`)
	if !strings.Contains(eval[string](b, "decodeURIComponent(location.hash)"), "open=") {
		t.Error("the address does not say what is open")
	}
	for i := range 30 { // Tab stays in the dialogue (or goes to the browser's own bar)
		b.press(kb.Tab)
		if !eval[bool](b, `!!document.activeElement.closest("dialog") || document.activeElement === document.body`) {
			t.Fatalf("after %d Tabs the focus is outside the dialogue, on %s", i+1, focus(b))
		}
	}
	b.press(kb.Escape)
	b.wait("the details to close", closed)
	if got := eval[string](b, "document.activeElement.dataset.key ?? ''"); got != key {
		t.Errorf("after Escape the focus is on %q, want %q", got, key)
	}
	if strings.Contains(eval[string](b, "location.hash"), "open=") {
		t.Error("the address still says that something is open")
	}
	// A row of the table opens too.
	b.do(`document.querySelector(".figures tbody tr").focus()`)
	b.press(kb.ArrowDown)
	b.press(kb.Enter)
	b.wait("the details", `document.querySelector("dialog[open]")`)
	b.press(kb.Escape)
	b.wait("the details to close", closed)
	// A control of the filter: Space opens it, Escape closes it and stays there.
	b.do(`document.querySelector(".pick > summary").focus()`)
	b.press(" ")
	b.press(kb.Tab)
	b.press(" ")
	b.wait("the filter", `location.hash.includes("f.workload=w0")`)
	b.press(kb.Escape)
	if !eval[bool](b, `!document.querySelector(".pick[open]") && document.activeElement.matches(".pick > summary")`) {
		t.Errorf("after Escape the control is open, or the focus lost to %s", focus(b))
	}
	b.press(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift))
	if got := focus(b); got != "input#q" {
		t.Errorf("back from the first control is %s", got)
	}
	b.quiet("file://")
}

// TestEveryChartHasItsFigures: a chart is a picture with words, and a table beside
// it has the same figures.
func TestEveryChartHasItsFigures(t *testing.T) {
	d := small(t)
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	if out := eval[[]string](b, `[...document.querySelectorAll(".chart")].filter((c) => c.checkVisibility() && (c.getAttribute("role") !== "img" || (c.getAttribute("aria-label") || "").length < 20)).map((c) => c.outerHTML.slice(0, 200))`); len(out) > 0 {
		t.Errorf("charts without words: %q", out)
	}
	b.do(`for (const x of document.querySelectorAll("#latency details, #series details, #order details")) x.open = true`)
	b.wait("the tables", `document.querySelectorAll("#latency details table").length === 4`)
	// Order: the table has all trials but none twice.
	if n := eval[int](b, `document.querySelectorAll("#order details tbody tr").length`); n != len(d.Trials.Cell) {
		t.Errorf("%d trials in the table, want %d", n, len(d.Trials.Cell))
	}
	// Series: the mean of each line, by trapezes, is that of the document's line.
	id := eval[string](b, `document.getElementById("series-trial").value`)
	for _, s := range d.Series {
		if fmt.Sprintf("%d-%d", d.Trials.Seq[s.Trial], d.Trials.Attempt[s.Trial]) != id {
			continue
		}
		got := eval[map[string]float64](b, `Object.fromEntries([...document.querySelectorAll("#series figure.wide tbody tr")].map((tr) => [tr.children[0].textContent, Number(tr.children[1].dataset.value)]))`)
		for _, l := range s.Lines {
			sum := 0.0
			for i := 1; i < len(l.T); i++ {
				sum += (l.T[i] - l.T[i-1]) * (l.V[i] + l.V[i-1]) / 2
			}
			want := sum / (l.T[len(l.T)-1] - l.T[0])
			name := strings.NewReplacer("end=", "", "role=", "", ",", " ").Replace(l.Labels)
			if v, ok := got[name]; l.Name == "cpu" && (!ok || v < want*0.999 || v > want*1.001) {
				t.Errorf("%s: the mean is %v, want %v (%v)", l.Labels, v, want, got)
			}
		}
		return
	}
	t.Errorf("no series of the trial %s that is shown", id)
}

// TestSentinelAndEpochsAreShown: what the sentinel saw stands in words and in the
// chart of the order.
func TestSentinelAndEpochsAreShown(t *testing.T) {
	d := small(t)
	s := &analyse.Sentinel{Kind: "syscall", Response: record.Response{Name: "time_per_call", Unit: record.Second}, Share: 0.02, Scatter: 0.004}
	for seq := 5; seq < 60; seq += 5 {
		p := analyse.SentinelPoint{Seq: seq, Value: 1e-6, Epoch: 1}
		if seq >= 30 {
			p.Value, p.Epoch = 1.2e-6, 2
		}
		s.Points = append(s.Points, p)
	}
	b := browse(t)
	b.show(d, "")
	b.drawAll()
	const picture = `document.querySelector('[data-chart="order"] canvas').toDataURL()`
	without := eval[string](b, picture)
	d.Result.Sentinel = s
	d.Result.Epochs = []analyse.Epoch{{Seq: 5}, {Seq: 30, After: 25, What: []string{plan.ChangedTime}, Ratio: 1.2,
		Blocks: []analyse.EpochBlock{{Stratum: d.Result.Compared[0].Stratum, Block: 2, Again: true}, {Stratum: d.Result.Compared[0].Stratum, Block: 3}}}}
	b.show(d, "")
	b.drawAll()
	words := eval[string](b, `document.getElementById("order").innerText`)
	for _, want := range []string{"syscall, time_per_call) ran 11 times", "scatter of 0.4 %", "took 2 % of the time", "Epoch 2 began", "before trial 30", "1.20 × as long", "2 blocks lay across, 1 ran again"} {
		if !strings.Contains(words, want) {
			t.Errorf("the page does not say %q: %s", want, words)
		}
	}
	if eval[string](b, picture) == without {
		t.Error("the chart shows nothing of it")
	}
	// No change is seen by enough of them only, as in the text of a terminal.
	d.Result.Epochs = nil
	all := s.Points
	for n, want := range map[int]string{
		analyse.MinSentinels - 1: fmt.Sprintf("too few to detect a change of the machine, which needs %d.", analyse.MinSentinels),
		analyse.MinSentinels:     "It detected no change of the machine.",
	} {
		s.Points = all[:n]
		b.show(d, "")
		b.drawAll()
		words := eval[string](b, `document.getElementById("order").innerText`)
		if !strings.Contains(words, want) || strings.Contains(words, "no change") != (n == analyse.MinSentinels) {
			t.Errorf("%d sentinels: the page does not say %q: %s", n, want, words)
		}
	}
	b.quiet("file://")
}
