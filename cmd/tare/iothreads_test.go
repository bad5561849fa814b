package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/analyse"
)

// published is a table of testdata/iothreads: percent or threads by size, operation (or
// total), jobs and depth.
type published map[[4]string]float64

const total = "total"

func readPublished(t *testing.T, name string) published {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "iothreads", name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil || len(rows) != 91 {
		t.Fatalf("%s: %d rows, %v", name, len(rows), err)
	}
	out := published{}
	for _, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[4], 64)
		if err != nil {
			t.Fatal(err)
		}
		out[[4]string(row)] = v
	}
	return out
}

// TestPublishedIOThreads imports data whose figures of merit are the published tables, and
// finds these tables in the report, cell by cell.
func TestPublishedIOThreads(t *testing.T) {
	gain, fewest := readPublished(t, "best_improvement"), readPublished(t, "min_for_90pct")
	dir := filepath.Join(t.TempDir(), "results")
	data := filepath.Join(t.TempDir(), "data.csv")
	if err := os.WriteFile(data, dataOf(gain, fewest), 0o600); err != nil {
		t.Fatal(err)
	}
	inProcess(t, "import", "csv", data, "--map", "testdata/iothreads/map.yaml", "--results", dir)
	want := map[string]published{"gain": gain, "fewest": fewest}

	t.Run("markdown", func(t *testing.T) {
		got := markdownFigures(inProcess(t, "report", dir, "--markdown"))
		for name, table := range want {
			same(t, name, table, got[name])
		}
	})
	t.Run("json", func(t *testing.T) {
		var got analyse.Result
		if err := json.Unmarshal([]byte(inProcess(t, "report", dir, "--json")), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Figures) != 4 {
			t.Fatalf("%d figures", len(got.Figures))
		}
		for i := range got.Figures {
			f := &got.Figures[i]
			cells := map[[4]string]string{}
			for _, r := range f.Rows {
				for k := range r.Cells {
					cells[place(func(factor string) string {
						for _, l := range append(slices.Clone(r.Cell), f.Columns[k]...) {
							if l.Factor == factor {
								return l.Value
							}
						}
						return ""
					})] = rounded(f.Name, *r.Cells[k].Value)
				}
			}
			if table := want[f.Name]; table != nil {
				same(t, f.Name, table, cells)
			}
		}
	})
	t.Run("csv", func(t *testing.T) {
		rows, err := csv.NewReader(strings.NewReader(inProcess(t, "report", dir, "--csv", "--tables"))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for name, table := range want {
			cells := map[[4]string]string{}
			for _, row := range rows[1:] {
				if row[slices.Index(rows[0], "table")] != name {
					continue
				}
				v, err := strconv.ParseFloat(row[slices.Index(rows[0], "value")], 64)
				if err != nil {
					t.Fatal(err)
				}
				cells[place(func(factor string) string { return row[slices.Index(rows[0], "factor:"+factor)] })] = rounded(name, v)
			}
			same(t, name, table, cells)
		}
	})
	t.Run("text", func(t *testing.T) {
		var lines []string
		for line := range strings.Lines(inProcess(t, "report", dir, "--full")) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		for _, line := range []string{
			"2048 randread 18 % 31 % 30 % 30 % 103 % 192 % 151 % 432 % 494 %",
			"Total 67 % 53 % 20 % 97 % 118 % 141 % 318 % 339 % 334 %",
			"Total 1 1 1 2 9 8 6 9 10",
			"1048576 randread 0 0 0 0 0 0 1 0 0",
		} {
			if !slices.Contains(lines, line) {
				t.Errorf("the text report has no line %q", line)
			}
		}
	})
	t.Run("html", func(t *testing.T) {
		page := inProcess(t, "report", dir, "--html")
		for _, text := range []string{"494 %", "fewest io_threads that reach 90 % of the best throughput"} {
			if !strings.Contains(page, text) {
				t.Errorf("the page has no %q", text)
			}
		}
	})
}

// dataOf makes throughputs whose figures are the published ones. Those are rounded: the
// gains are moved within their rounding so that totals, which were rounded from exact values,
// come out too.
func dataOf(gain, fewest published) []byte {
	threads := []int{0, 1, 2, 3, 4, 6, 8, 12, 16}
	var b strings.Builder
	b.WriteString("sandbox,io_threads,block_size,op,jobs,iodepth,throughput\n")
	for _, size := range []string{"2048", "1048576"} {
		for _, at := range cellsOfSize(size) {
			mean := 0.0
			for _, op := range diskOps() {
				mean += gain[[4]string{size, op, at[2], at[3]}] / 4
			}
			moved := 0.6 * (gain[[4]string{size, total, at[2], at[3]}] - mean)
			base := 1e8
			best := base * (1 + max(0, gain[at]+moved)/100)
			fmt.Fprintf(&b, "pod,,%s,%g\n", strings.Join(at[:], ","), 1.1*best)
			for _, n := range threads {
				v := best // with the most threads
				switch few := int(fewest[at]); {
				case n == 0 || n < 16 && few == 0:
					v = base
				case n < few: // below 90 % of the best
					v = (base + 0.9*best) / 2
				case n < 16:
					v = 0.93 * best
				}
				fmt.Fprintf(&b, "vm,%d,%s,%g\n", n, strings.Join(at[:], ","), v)
			}
		}
	}
	return []byte(b.String())
}

func diskOps() []string { return []string{"randread", "randwrite", "read", "write"} }

// cellsOfSize are those of one size, without totals.
func cellsOfSize(size string) [][4]string {
	var out [][4]string
	for _, op := range diskOps() {
		for _, jobs := range []string{"1", "4", "16"} {
			for _, depth := range []string{"1", "4", "16"} {
				out = append(out, [4]string{size, op, jobs, depth})
			}
		}
	}
	return out
}

// place is where a cell is in the published table.
func place(level func(factor string) string) [4]string {
	out := [4]string{level("bs"), level("rw"), level("jobs"), level("iodepth")}
	if out[1] == "" {
		out[1] = total
	}
	return out
}

// rounded is a figure as it was published.
func rounded(name string, v float64) string {
	if name == "gain" {
		return fmt.Sprintf("%.0f %%", 100*v)
	}
	return strconv.Itoa(int(v + 0.5))
}

func same(t *testing.T, name string, want published, got map[[4]string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d cells, want %d", name, len(got), len(want))
	}
	for at, v := range want {
		text := fmt.Sprint(v)
		if name == "gain" {
			text += " %"
		}
		if got[at] != text {
			t.Errorf("%s at %v: %q, want %q", name, at, got[at], text)
		}
	}
}

// markdownFigures reads the tables of figures of merit, by name.
func markdownFigures(text string) map[string]map[[4]string]string {
	out := map[string]map[[4]string]string{}
	name, head := "", []string(nil)
	for line := range strings.Lines(text) {
		if s, ok := strings.CutPrefix(line, "### "); ok {
			name, _, _ = strings.Cut(s, ":")
			head = nil
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) != 11 || cells[0] == "---":
			continue
		case head == nil:
			head, out[name] = cells, map[[4]string]string{}
			continue
		}
		for i, v := range cells[2:] {
			jobs, depth, _ := strings.Cut(head[i+2], "×")
			op := cells[1]
			if op == "Total" {
				op = total
			}
			out[name][[4]string{cells[0], op, jobs, depth}] = v
		}
	}
	return out
}

func inProcess(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if code := execute(t.Context(), &out, &errs, args); code != exitOK {
		t.Fatalf("tare %s: exit code %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}
