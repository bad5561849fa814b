package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/analyse/compare"
	"tare/analyse/stat"
	"tare/record"
)

func testComparison() *compare.Result {
	p, q := 0.001, 0.01
	cell := record.Cell{{Factor: "workload", Value: "rr"}, {Factor: "sandbox", Value: "runc"}}
	m := &compare.Measured{N: 8, Level: 1e-5, Cost: stat.Estimate{Ratio: 2, N: 6}, Failed: 1}
	r := record.Response{Name: "p99", Unit: record.Second, Better: record.Lower}
	return &compare.Result{Study: "x", Rows: []compare.Row{
		{Workload: "rr", Cell: cell, Response: r, Question: compare.Cost, A: m, B: m,
			Cost:  &compare.Change{Ratio: 1.2, Lo: 1.1, Hi: 1.3, P: &p, Q: &q, Verdict: stat.Slower, Changed: true, Why: "a < b"},
			Level: &compare.Change{Undefined: "A: below noise in 1 of 8 trials", Verdict: stat.Undecided}},
		{Workload: "rr", Cell: cell, Response: r, Question: compare.Cost, OnlyIn: "A", A: m},
	}}
}

func TestCompareCSV(t *testing.T) {
	var b bytes.Buffer
	if err := CompareCSV(&b, testComparison(), &Gated{Breaches: []compare.Breach{{Gate: "x", Row: 0}, {Gate: "y", Row: 0}}, Doubts: []compare.Doubt{{Gate: "z", Row: 1}}}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	const key = "workload=rr,sandbox=runc"
	want := [][]string{
		{"rr", key, "false", "p99", "s", "lower", "cost", "true", "6", "6", "2", "2", "1.2", "1.1", "1.3", "0.001", "0.01", "slower", "true", "a < b", "", "1", "1", "2", "0"},
		{"rr", key, "false", "p99", "s", "lower", "level", "false", "8", "8", "1e-05", "1e-05", "", "", "", "", "", "undecided", "false", "", "A: below noise in 1 of 8 trials", "1", "1", "", ""},
		{"rr", key, "false", "p99", "s", "lower", "cost", "true", "6", "", "2", "", "", "", "", "", "", "", "", "", "only in A", "1", "", "0", "1"},
	}
	if d := cmp.Diff(want, rows[1:]); d != "" {
		t.Error(d)
	}
	if len(rows[0]) != len(want[0]) || rows[0][16] != "q" {
		t.Errorf("header: %v", rows[0])
	}
}

func TestCompareJSON(t *testing.T) {
	var b bytes.Buffer
	if err := CompareJSON(&b, testComparison(), &Gated{Gates: []string{"x < 1"}, Doubts: []compare.Doubt{{Gate: "x < 1", Row: 1, Blocks: 12}}}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema   int
		Gates    []string
		Breaches []any
		Doubts   []struct{ Row, Blocks int }
		Rows     []struct {
			OnlyIn string `json:"only_in"`
			Cost   *struct{ Ratio, Q float64 }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != Schema || got.Breaches == nil || got.Doubts[0].Blocks != 12 || got.Gates[0] != "x < 1" || got.Rows[0].Cost.Q != 0.01 || got.Rows[1].OnlyIn != "A" || got.Rows[1].Cost != nil {
		t.Errorf("%+v", got)
	}
	for name, err := range map[string]error{"json": CompareJSON(full{}, testComparison(), &Gated{}), "csv": CompareCSV(full{}, testComparison(), &Gated{})} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s, disk full: %v", name, err)
		}
	}
}
