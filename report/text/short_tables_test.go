package text

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/analyse/merit"
	"tare/record"
	"tare/study"
)

// shortOf is the answer that fits a screen.
func shortOf(t *testing.T, r *analyse.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteShort(&b, r, testHosts(), Options{Width: 80, Dir: "results/first"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestShortOfAnImport: nothing of an import can be measured, so the last line does not send a reader to measure.
func TestShortOfAnImport(t *testing.T) {
	r := manyOf(2, 1, 1)
	r.Advice = []advice.Item{{Rule: "undecided", Change: "Measure more blocks"}}
	const next = "What to measure next: tare advise results/first"
	if got := shortOf(t, r); !strings.Contains(got, next) {
		t.Errorf("measured:\n%s", got)
	}
	if r.Imported = true; strings.Contains(shortOf(t, r), next) {
		t.Errorf("imported:\n%s", shortOf(t, r))
	}
}

// asking has a figure of merit with so many rows.
func asking(r *analyse.Result, rows int) *analyse.Result {
	few := merit.Table{Name: "few", Figure: "fewest of io_threads", Kind: study.FigureFewest, Of: "io_threads", Share: 0.9, Response: throughput, Factors: []string{"op"}, Columns: []record.Cell{{}}}
	for i := range rows {
		few.Rows = append(few.Rows, merit.Row{Cell: record.Cell{{Factor: "op", Value: fmt.Sprintf("op-%d", i)}}, Cells: []merit.Cell{{Value: new(2.0), Level: "2"}}})
	}
	r.Figures = []merit.Table{few}
	return r
}

// inOrder reports the first of the texts that does not follow those before it; "" for none.
func inOrder(s string, texts ...string) string {
	for _, x := range texts {
		_, rest, ok := strings.Cut(s, x)
		if !ok {
			return x
		}
		s = rest
	}
	return ""
}

// TestShortHasOwnTables: the tables that the study asks for stand before the comparison if they fit a screen. Otherwise
// the answer names them, with the command that shows them.
func TestShortHasOwnTables(t *testing.T) {
	for rows, want := range map[int][]string{
		6:  {"122 trials", "few: fewest io_threads", "op-5", "process's cost"},
		60: {"122 trials", "The study's tables, each with tare report results/first --table NAME: few", "process's cost"},
	} {
		got := shortOf(t, asking(testResult(), rows))
		if missing := inOrder(got, want...); missing != "" {
			t.Errorf("%d rows: %q is not in its place:\n%s", rows, missing, got)
		}
		if lines := strings.Count(got, "\n"); lines > screen || rows == 60 && strings.Contains(got, "op-0") {
			t.Errorf("%d rows: %d lines:\n%s", rows, lines, got)
		}
	}
	if got := shortOf(t, testResult()); strings.Contains(got, "study's tables") {
		t.Errorf("a study without tables:\n%s", got)
	}
}

// TestOwnTablesFirst: of a study with one block the long list of ratios tells little, so its own tables stand before it.
func TestOwnTablesFirst(t *testing.T) {
	full := func(r *analyse.Result) string {
		var b bytes.Buffer
		r.Warnings = nil
		if err := Write(&b, r, nil, Options{Width: 120}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const one, table, list = "Each cell has one run: ratios have no interval.", "few: fewest io_threads", "\nworkload  "
	blocks := func(n int) *analyse.Result {
		r := asking(manyOf(2, 2, 1), 3)
		for i := range r.Compared {
			e := &r.Compared[i].Estimate
			e.Lo, e.Hi, e.N = 0, 0, min(e.N, n)
		}
		return r
	}
	if got := full(blocks(1)); inOrder(got, table, one, list) != "" {
		t.Errorf("one block:\n%s", got)
	}
	if got := full(blocks(2)); inOrder(got, table, list) != "" || strings.Contains(got, one) {
		t.Errorf("two blocks:\n%s", got)
	}
	if got := full(asking(manyOf(2, 2, 1), 3)); inOrder(got, list, table) != "" || strings.Contains(got, one) {
		t.Errorf("with intervals:\n%s", got)
	}
}

// TestWriteTables: the study's own tables alone, as text and as Markdown, each with the model's name where it made the figures.
func TestWriteTables(t *testing.T) {
	r := asking(testResult(), 2)
	for _, modelled := range []bool{false, true} {
		r.Modelled = modelled
		var text, marks bytes.Buffer
		if err := errors.Join(WriteTables(&text, r, Options{Width: 80}), WriteTablesMarkdown(&marks, r)); err != nil {
			t.Fatal(err)
		}
		if missing := inOrder(text.String(), "few: fewest io_threads", "op-0", "op-1"); missing != "" || strings.Contains(text.String(), "process") {
			t.Errorf("%q is missing:\n%s", missing, text.String())
		}
		if missing := inOrder(marks.String(), "### few: fewest io", "| op-0 | 2 |"); missing != "" || strings.Contains(marks.String(), "\n## ") {
			t.Errorf("%q is missing:\n%s", missing, marks.String())
		}
		for _, s := range []string{text.String(), marks.String()} {
			if strings.HasPrefix(s, "Modelled, not measured") != modelled {
				t.Errorf("modelled %t:\n%s", modelled, s)
			}
		}
	}
}
