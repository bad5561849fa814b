package html_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"tare/analyse"
	"tare/report/section"
	"tare/report/words"
)

// TestCauseMap: every cell has the cause that was found, in words, with whether it costs;
// tables of several cells have what section.CauseMaps says.
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
		costs, word := "0", section.CauseCell(res, []int{i}).First
		if f.Costs {
			costs = "1"
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
	m := section.CauseMaps(res)
	if len(m) != 1 {
		t.Fatalf("%d maps", len(m))
	}
	var tally, shown [][]string
	for _, row := range m[0].Table.Rows {
		line := []string{}
		for _, c := range row[1:] {
			if x := c.Cause; x != nil && !x.Baseline {
				costs := 0
				for _, at := range x.Findings {
					if res.Causes[at].Costs {
						costs++
					}
				}
				line = append(line, fmt.Sprint(c.First, " ", costs, " of ", len(x.Findings)))
			}
		}
		if len(line) > 0 {
			tally = append(tally, line)
		}
	}
	shown = eval[[][]string](b, `[...document.querySelectorAll("#causes [data-causes] tbody tr")].slice(1).map((tr) => [...tr.querySelectorAll("td.heat")].map((td) =>
		td.querySelector(".r").textContent + " " + (/costs in (\d+ of \d+)/.exec(td.textContent)[1])))`)
	if diff := cmp.Diff(tally, shown); diff != "" || len(tally) == 0 {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	// The filter chooses rows of every cell, and leaves the tables of the whole study.
	all := len(got)
	b.do(`Tare.set("filter", (s) => s.pick.set("workload", new Set(["w1"])))`)
	if n := eval[int](b, `document.querySelectorAll('#causes .causemap[aria-label="Causes of every cell"] td.heat').length`); n*3 != all {
		t.Errorf("%d cells of %d pass a filter of one workload in three", n, all)
	}
	if n := eval[int](b, `document.querySelectorAll("#causes [data-causes] tbody tr").length`); n != len(m[0].Table.Rows) {
		t.Errorf("%d rows in the table", n)
	}
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
