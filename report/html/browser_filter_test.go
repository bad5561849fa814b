package html_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/report/document"
)

// keys are those of the comparisons that pass, in the study's order.
func keys(d *document.Document, pass func(*analyse.Comparison) bool) []string {
	out := []string{}
	for i := range d.Result.Compared {
		if c := &d.Result.Compared[i]; !c.Baseline && pass(c) {
			out = append(out, keyOf(c))
		}
	}
	return out
}

// shown are the keys of the table's rows, in their order.
func shown(b *browser) []string {
	b.t.Helper()
	return eval[[]string](b, rows)
}

// rows is a script that returns the keys of the visible rows.
const rows = `[...document.querySelectorAll(".figures tbody tr")].map((tr) => tr.dataset.key)`

// tick opens a control and ticks one of its boxes.
func tick(b *browser, control, value string) {
	b.t.Helper()
	name := eval[string](b, fmt.Sprintf(`[...document.querySelectorAll("details.pick")].find((d) => d.querySelector(".pick-name").textContent === %s)?.dataset.pick ?? ""`, quote(control)))
	if name == "" {
		b.t.Fatalf("there is no control for %s", control)
	}
	pick := `details.pick[data-pick="` + name + `"]`
	if !eval[bool](b, `document.querySelector(`+quote(pick)+`).open`) {
		b.click(pick + " > summary")
		b.wait("the control to open", `document.querySelector(`+quote(pick)+`).open`)
	}
	b.click(pick + ` input[value="` + value + `"]`)
}

func TestFilterByEachControl(t *testing.T) {
	d := small(t)
	b := browse(t)
	b.show(d, "")
	level := func(f, v string) func(*analyse.Comparison) bool {
		return func(c *analyse.Comparison) bool { got, _ := c.Cell.Get(f); return got == v }
	}
	all := len(compared(d))
	check := func(what string, pass func(*analyse.Comparison) bool) {
		t.Helper()
		want := keys(d, pass)
		if len(want) == 0 || len(want) == all {
			t.Fatalf("%s: the test is void, %d of %d pass", what, len(want), all)
		}
		if diff := gocmp.Diff(want, shown(b)); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
		if got, say := eval[string](b, `document.getElementById("count").textContent`), fmt.Sprintf("%d of %d comparisons", len(want), all); got != say {
			t.Errorf("%s: the count says %q, want %q", what, got, say)
		}
		// The heat map has the rows of these, and no others.
		rows := map[string]bool{}
		for _, k := range want {
			p := strings.Split(k, "|")
			rows[p[0]+"|"+p[2]] = true
		}
		if n := eval[int](b, `document.querySelectorAll(".heatmap tbody tr").length`); n != len(rows) {
			t.Errorf("%s: %d rows in the heat map, want %d", what, n, len(rows))
		}
	}
	for _, x := range []struct {
		control, value string
		pass           func(*analyse.Comparison) bool
	}{
		{"workload", "w1", level("workload", "w1")},
		{"size", "2KiB", level("size", "2KiB")},
		{"sandbox", "runsc", level("sandbox", "runsc")},
		{"response", "memory", func(c *analyse.Comparison) bool { return c.Response.Name == "memory" }},
		{"verdict", "worse", func(c *analyse.Comparison) bool { return verdictWord(c) == "▼ costs more" }},
		{"verdict", "equivalent", func(c *analyse.Comparison) bool { return verdictWord(c) == "= free" }},
		{"verdict", "below-noise", func(c *analyse.Comparison) bool { return c.Level.BelowNoise > 0 }},
		{"verdict", "skipped", func(c *analyse.Comparison) bool { return c.Skipped != "" }},
		{"verdict", "gave-up", func(c *analyse.Comparison) bool { return c.GaveUp != "" }},
	} {
		tick(b, x.control, x.value)
		check(x.control+" "+x.value, x.pass)
		b.click("#clear")
		if n := len(shown(b)); n != all {
			t.Fatalf("%d rows after Clear, want %d", n, all)
		}
	}
	// Two levels of one control are either; two controls are both.
	tick(b, "sandbox", "runsc")
	tick(b, "sandbox", "crun")
	tick(b, "size", "1KiB")
	check("two controls", func(c *analyse.Comparison) bool {
		return (level("sandbox", "runsc")(c) || level("sandbox", "crun")(c)) && level("size", "1KiB")(c)
	})
	if got := eval[[]string](b, `[...document.querySelectorAll(".heatmap thead th.col")].map((e) => e.textContent)`); !gocmp.Equal(got, []string{"process", "crun", "runsc"}) {
		t.Errorf("the heat map has the columns %q", got)
	}
	b.click("#clear")
	b.click("#first")
	check("first responses", func(c *analyse.Comparison) bool { return c.First })
	b.click("#first")
	b.click("#q")
	b.press("RUNSC 2kib")
	b.wait("the text to be looked for", `location.hash.includes("q=")`)
	check("a text", func(c *analyse.Comparison) bool { return level("sandbox", "runsc")(c) && level("size", "2KiB")(c) })
	b.quiet("file://")
}

func TestSort(t *testing.T) {
	d := small(t)
	b := browse(t)
	b.show(d, "")
	comparisons := compared(d)
	order := map[string]int{}
	for i, s := range []string{"process", "runc", "crun", "runsc", "flaky", "vm"} {
		order[s] = i
	}
	nan := math.NaN()
	ratio := func(f func(*analyse.Comparison) float64) func(*analyse.Comparison) float64 {
		return func(c *analyse.Comparison) float64 {
			if !hasRatio(c) {
				return nan
			}
			return f(c)
		}
	}
	for _, x := range []struct {
		head string
		key  func(*analyse.Comparison) float64
		desc bool // at the first click
	}{
		{"ratio", ratio(func(c *analyse.Comparison) float64 { x, _, _ := c.Estimate.Cost(c.Response.Better); return x }), true},
		{"width", ratio(func(c *analyse.Comparison) float64 { return c.Estimate.HalfWidth() }), true},
		{"f.sandbox", func(c *analyse.Comparison) float64 { s, _ := c.Cell.Get("sandbox"); return float64(order[s]) }, false},
		{"f.size", func(c *analyse.Comparison) float64 {
			s, _ := c.Cell.Get("size")
			return map[string]float64{"1KiB": 0, "2KiB": 1}[s]
		}, false},
	} {
		for turn := range 2 {
			b.click(`.figures button[data-sort="` + x.head + `"]`)
			desc := x.desc != (turn == 1)
			want := keys(d, func(*analyse.Comparison) bool { return true })
			slices.SortStableFunc(want, func(p, q string) int {
				kp, kq := x.key(comparisons[p]), x.key(comparisons[q])
				switch { // what has none comes last either way
				case math.IsNaN(kp) && math.IsNaN(kq):
					return 0
				case math.IsNaN(kp):
					return 1
				case math.IsNaN(kq):
					return -1
				case desc:
					return cmp.Compare(kq, kp)
				}
				return cmp.Compare(kp, kq)
			})
			if diff := gocmp.Diff(want, shown(b)); diff != "" {
				t.Errorf("by %s, descending %v:\n%s", x.head, desc, diff)
			}
			say := map[bool]string{true: "descending", false: "ascending"}[desc]
			if got := eval[string](b, `document.querySelector('.figures button[data-sort="`+x.head+`"]').closest("th").ariaSort`); got != say {
				t.Errorf("by %s: aria-sort is %q, want %q", x.head, got, say)
			}
		}
	}
	// The heat map follows: its rows by their greatest cost.
	b.do(`Tare.set("sort", (s) => { s.sort = "ratio"; s.desc = true; })`)
	got := eval[[]float64](b, `[...document.querySelectorAll(".heatmap tbody tr")].map((tr) => Math.max(...[...tr.querySelectorAll("td[data-cost]")].map((td) => Number(td.dataset.cost))))`)
	if !slices.IsSortedFunc(got, func(x, y float64) int { return cmp.Compare(y, x) }) || len(got) != 16 {
		t.Errorf("the heat map's rows have the greatest costs %v", got)
	}
	b.quiet("file://")
}

// TestViewIsShared opens the address that a chosen view has, from another file.
func TestViewIsShared(t *testing.T) {
	d := small(t)
	b := browse(t)
	b.show(d, "")
	tick(b, "sandbox", "runsc")
	tick(b, "response", "latency")
	b.do(`Tare.set("sort", (s) => { s.sort = "width"; s.desc = true; })`)
	want := shown(b)
	b.do(`Tare.open(` + quote(want[1]) + `)`)
	hash := eval[string](b, "location.hash")
	title := eval[string](b, `document.getElementById("details-title").textContent`)
	b.show(d, hash) // another file: nothing is left of the first page
	if diff := gocmp.Diff(want, shown(b)); diff != "" || len(want) != 4 {
		t.Errorf("the view of %s:\n%s", hash, diff)
	}
	if got := eval[string](b, `document.querySelector("dialog[open] #details-title")?.textContent ?? ""`); got != title {
		t.Errorf("the details of %q are open, want %q", got, title)
	}
	// Another address in the same tab, as Back or a link in a message gives it.
	b.do(`document.querySelector("dialog").close(); location.hash = "#f.sandbox=crun&response=memory"`)
	crun := keys(d, func(c *analyse.Comparison) bool {
		s, _ := c.Cell.Get("sandbox")
		return s == "crun" && c.Response.Name == "memory"
	})
	// Both views have four rows, so only the keys distinguish them.
	b.wait("the rows "+strings.Join(crun, ", "), rows+`.join("\n") === `+quote(strings.Join(crun, "\n")))
	// A change of the state before the page has read a new address does not undo it.
	b.do(`location.hash = "#f.sandbox=runsc&response=memory"; Tare.set("sort", (s) => { s.sort = "width"; })`)
	b.wait("the view of the new address", `location.hash.includes("f.sandbox=runsc") && `+rows+`.every((k) => k.includes("sandbox=runsc"))`)
	// Addresses that nobody made must not break the page.
	for _, h := range []string{"#%%%", "#f.sandbox=nowhere", "#sort=-f.nothing&p.table=99999999999&open=x%7Cy", "#verdict=__proto__&p.__proto__=4"} {
		b.show(d, h)
		b.quiet("file://")
	}
}
