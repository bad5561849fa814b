package plot

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"

	"tare/analyse/cause"
	"tare/record"
	"tare/study"
)

// withFindings gives each cell of a source a cause, of all kinds in turn.
func withFindings(src Source) Source {
	src.Result.Causes = nil
	src.Result.Treatments = slices.Clone(src.Result.Treatments)
	n := 0
	for i := range src.Result.Compared {
		c := &src.Result.Compared[i]
		if c.Response.Name != src.Result.Compared[0].Response.Name {
			continue
		}
		f := cause.Finding{CellKey: record.CellKey{Workload: c.Workload, Stratum: c.Stratum, Shared: c.Shared, Treatment: c.Treatment, Cell: c.Cell, Baseline: c.Baseline}, Response: c.Response, Cause: cause.None, Confidence: 0.9}
		if !c.Baseline {
			half := 0.5
			f.Ratio, f.Costs, f.Cause, f.Confidence = &half, n%3 != 2, cause.Names()[n%len(cause.Names())], 0.97
			if f.Cause == cause.Helper {
				f.Role, f.Confidence = "vhost", 0.6
			}
			n++
		}
		src.Result.Causes = append(src.Result.Causes, f)
	}
	return src
}

func isCauses(f Figure) bool { return f.Kind == CauseMap }

// TestCauseMap: beside the heat map of a table there is one of causes, of the same rows
// and columns; its cells say what the findings come to, in ink and in words.
func TestCauseMap(t *testing.T) {
	src := withFindings(withTable())
	figs := build(t, src, Options{})
	if len(figs) < 2 || figs[0].Summary != "bandwidth" || figs[0].Kind != Heat || figs[1].Kind != CauseMap || figs[1].Name != "table-bandwidth-causes" {
		t.Fatalf("the first two are %s and %s", figs[0].Name, figs[1].Name)
	}
	f, heat := figs[1], figs[0]
	if d := cmp.Diff(heat.X.Levels, f.X.Levels); d != "" {
		t.Errorf("columns: %s", d)
	}
	if d := cmp.Diff(heat.Colour.Levels, f.Colour.Levels); d != "" {
		t.Errorf("rows: %s", d)
	}
	// Counted here by hand: the findings of runsc with 4KiB, over the connections.
	costs, all := 0, 0
	for _, x := range src.Result.Causes {
		box, _ := x.Cell.Get("sandbox")
		if size, _ := x.Cell.Get("size"); box == "runsc" && size == "4KiB" {
			all++
			if x.Costs {
				costs++
			}
		}
	}
	said := false
	for i := range f.Marks {
		if f.place(&f.Marks[i]) == "4KiB, runsc" {
			said = true
			if m := f.Marks[i]; m.N != all || m.Cause.Cause.Costs != (costs > 0) {
				t.Errorf("4KiB, runsc: %d cells, %+v; want %d, of which %d cost", m.N, m.Cause, all, costs)
			}
		}
	}
	if !said || all == 0 {
		t.Errorf("there is no cell 4KiB, runsc of %d findings", all)
	}
	for _, theme := range Themes() {
		th, _ := NewTheme(theme)
		var buf bytes.Buffer
		if err := render(&buf, &f, Output{Format: "svg", Style: Style{Theme: th, Width: 8 * vg.Inch, Height: 5 * vg.Inch}}, newFonts()); err != nil {
			t.Fatal(err)
		}
		for i := range f.Marks {
			if w := f.Marks[i].Cause.First; !strings.Contains(buf.String(), w) {
				t.Errorf("%s: the picture does not have %q", theme, w)
			}
		}
	}
	if f.entry("svg").Kind != CauseMap || !strings.HasPrefix(f.Alt, "Cause map. bandwidth: what bounds each cell") {
		t.Errorf("%+v", f.entry("svg"))
	}
	for name, opt := range map[string]Options{"levels": {Value: Level}, "ratios": {Value: Cost}, "only": {Only: []record.Level{{Factor: "size", Value: "1B"}}}, "by": {By: []string{"size"}}, "bars": {Kind: Bar}, "responses": {Responses: []string{"latency"}}} {
		if slices.ContainsFunc(build(t, src, opt), isCauses) {
			t.Errorf("%s: the causes of the whole study are there", name)
		}
	}
}

// TestCauseMapOfStrata: without summary tables, strata by treatments; none where nothing
// is known.
func TestCauseMapOfStrata(t *testing.T) {
	src := withFindings(sizes().source())
	figs := build(t, src, Options{})
	i := slices.IndexFunc(figs, isCauses)
	if i < 0 || figs[i].Name != "all-causes" || len(figs[i].Marks) != len(src.Result.Causes) {
		t.Fatalf("figure %d of %d", i, len(figs))
	}
	for j := range figs[i].Marks {
		if m := &figs[i].Marks[j]; m.N != 1 || !m.Baseline && m.Cause.Cause.Costs && m.Cause.Cause.Kind != cause.Untold && m.Cause.Cause.Kind != cause.Unknown && !strings.Contains(m.Cause.Second, "2.00 ×, ") {
			t.Errorf("%s: %+v", figs[i].place(m), m.Cause)
		}
	}
	for j := range src.Result.Causes {
		src.Result.Causes[j].Cause = cause.Unknown
	}
	if slices.ContainsFunc(build(t, src, Options{}), isCauses) {
		t.Error("a map of nothing but question marks is drawn")
	}
}

// TestModelledFigures: every figure of modelled results says so where it is seen first.
func TestModelledFigures(t *testing.T) {
	src := withFindings(withTable())
	count := func() (n, all int) {
		for _, f := range build(t, src, Options{}) {
			all++
			th, _ := NewTheme("light")
			var buf bytes.Buffer
			if err := render(&buf, &f, Output{Format: "svg", Style: Style{Theme: th, Width: 8 * vg.Inch, Height: 5 * vg.Inch}}, newFonts()); err != nil {
				t.Fatal(err)
			}
			if f.entry("svg").Modelled && strings.Contains(buf.String(), "MODELLED, NOT MEASURED") && strings.HasPrefix(f.Alt, "Modelled, not measured. ") {
				n++
			} else if strings.Contains(strings.ToLower(buf.String()), "modelled") {
				t.Errorf("%s says it in part", f.Name)
			}
		}
		return n, all
	}
	if n, all := count(); n != 0 {
		t.Errorf("%d of %d measured figures say that they are modelled", n, all)
	}
	src.Result.Modelled = true
	if n, all := count(); n != all || all < 3 {
		t.Errorf("%d of %d figures say it", n, all)
	}
	var page bytes.Buffer
	src.Study = &study.Study{Name: "s"}
	figs := build(t, src, Options{})
	files := make([]File, len(figs))
	for i := range figs {
		files[i] = figs[i].entry("svg")
	}
	if err := index(&page, figs, files, src); err != nil || !strings.Contains(page.String(), "none from a real machine") {
		t.Errorf("%v: the page does not say it", err)
	}
}
