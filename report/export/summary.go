package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/cpucost"
	"tare/analyse/merit"
	"tare/analyse/stat"
	"tare/ordered"
	"tare/record"
	"tare/report/terminal"
	"tare/study"
)

// TablesCSV writes one line for each cell of each summary table. The factors of
// the rows of all tables are columns, each named "factor:NAME"; of the row of a
// geometric mean (mean: true) those that it is over are empty. A cell of a figure of merit
// has the levels of its column there too, and columns of its own, which only a study with
// such figures has.
func TablesCSV(w io.Writer, res *analyse.Result) error {
	var factors factorColumns
	for i := range res.Tables {
		for _, f := range res.Tables[i].Factors {
			factors.add(f)
		}
	}
	for i := range res.Figures {
		for _, f := range append(slices.Clone(res.Figures[i].Factors), res.Figures[i].Across...) {
			factors.add(f)
		}
	}
	rows := [][]string{append(factors.head("table", "response", "unit", "better"), "baseline", "mean", "column_factor", "column", "combinations", "fewer", "value", "base", "ratio", "lo", "hi", "n", "verdict", "why", "accelerator", "modelled")}
	own := []string{"figure", "blocks", "level", "lowest", "highest", "decided", "missing"}
	if len(res.Figures) == 0 {
		own = nil
	}
	rows[0] = append(rows[0], own...)
	for i := range res.Tables {
		t := &res.Tables[i]
		for _, r := range t.Rows {
			for j := range r.Cells {
				c := &r.Cells[j]
				line := factors.line(r.Cell, t.Name, t.Response.Name, string(t.Response.Unit), string(t.Response.Better))
				line = append(line, strconv.FormatBool(r.Baseline), strconv.FormatBool(r.Mean), t.Column, t.Columns[j].Level,
					strconv.Itoa(c.Combinations), strconv.FormatBool(c.Fewer))
				value := ""
				if c.Combinations > 0 {
					value = number(c.Estimate.Value)
				}
				line = append(append(line, value), ratio(&c.Estimate, c.Combinations > 0 && !r.Baseline)...)
				rows = append(rows, append(line, strconv.Itoa(c.Estimate.N), string(c.Verdict), c.Why, res.Accelerated(r.Cell), strconv.FormatBool(res.Modelled)))
				rows[len(rows)-1] = append(rows[len(rows)-1], make([]string, len(own))...)
			}
		}
	}
	for i := range res.Figures {
		rows = append(rows, figureLines(res, &res.Figures[i], factors)...)
	}
	return writeAll(w, rows)
}

// figureLines are those of a figure of merit. A total has mean: true.
func figureLines(res *analyse.Result, t *merit.Table, factors factorColumns) [][]string {
	var out [][]string
	for i := range t.Rows {
		r := &t.Rows[i]
		for j := range r.Cells {
			c, cell := &r.Cells[j], append(slices.Clone(r.Cell), t.Columns[j]...)
			line := factors.line(cell, t.Name, t.Response.Name, string(t.Response.Unit), string(t.Response.Better))
			value, lo, hi, decided := "", "", "", ""
			if c.Value != nil {
				value = number(*c.Value)
			}
			if c.Interval != nil {
				lo, hi = number(c.Interval[0]), number(c.Interval[1])
				if t.Kind == study.FigureFewest && !r.Total {
					decided = strconv.FormatBool(c.Decided)
				}
			}
			out = append(out, append(line, "false", strconv.FormatBool(r.Total), "", "", "", strconv.FormatBool(len(c.Missing) > 0), value, "", "", lo, hi,
				"", "", c.Why, res.Accelerated(append(slices.Clone(cell), t.Fixed...)), strconv.FormatBool(res.Modelled),
				t.Figure, strconv.Itoa(c.Blocks), c.Level, c.Lowest, c.Highest, decided, strings.Join(c.Missing, " ")))
		}
	}
	return out
}

// factorColumns are the columns "factor:NAME" of a table, in the order in which they are met.
type factorColumns []string

func (f *factorColumns) add(name string) {
	*f = ordered.Add(*f, name)
}

func (f factorColumns) head(line ...string) []string {
	for _, name := range f {
		line = append(line, "factor:"+name)
	}
	return line
}

// line puts a cell's levels behind what a line begins with.
func (f factorColumns) line(c record.Cell, line ...string) []string {
	for _, name := range f {
		level, _ := c.Get(name)
		line = append(line, level)
	}
	return line
}

// CPUCSV writes one line for each stratum and treatment with a CPU cost. The part
// of each role is a column named "role:NAME". Each end with a CPU limit has four:
// "quota:END" in cores, "used:END" in cores, "throttled:END", the share of the quota's periods
// in which it was used up, and "held_back:END", seconds a second summed over processors.
func CPUCSV(w io.Writer, res *analyse.Result) error {
	var roles []string
	for i := range res.CPUCosts {
		for _, r := range res.CPUCosts[i].Roles {
			roles = ordered.Add(roles, r.Role)
		}
	}
	slices.Sort(roles)
	head := []string{"workload", "stratum", "treatment", "baseline", "response", "unit", "work", "ends", "source", "trials", "cores", "rate", "cpu_per_work",
		"base", "ratio", "lo", "hi", "n", "verdict", "missing", "accelerator", "modelled"}
	for _, r := range roles {
		head = append(head, "role:"+r)
	}
	endpoints := limitedEndpoints(res.Quotas)
	for _, e := range endpoints {
		head = append(head, "quota:"+e, "used:"+e, "throttled:"+e, "held_back:"+e)
	}
	rows := [][]string{head}
	for i := range res.CPUCosts {
		c := &res.CPUCosts[i]
		line := []string{c.Workload, c.Stratum, c.Treatment, strconv.FormatBool(c.Baseline), c.Response.Name, string(c.Response.Unit), c.Unit,
			strings.Join(c.Endpoints, " "), c.Source, strconv.Itoa(c.Trials), number(c.Cores), number(c.Rate), number(c.Value)}
		line = append(line, ratio(&c.Estimate, !c.Baseline)...)
		line = append(line, strconv.Itoa(c.Estimate.N), string(c.Verdict), c.Missing, res.Accelerated(c.Cell), strconv.FormatBool(res.Modelled))
		for _, name := range roles {
			part := ""
			if k := slices.IndexFunc(c.Roles, func(r cpucost.Role) bool { return r.Role == name }); k >= 0 {
				part = number(c.Roles[k].Part)
			}
			line = append(line, part)
		}
		rows = append(rows, append(line, quotas(res.Quotas, c, endpoints)...))
	}
	return writeAll(w, rows)
}

// limitedEndpoints names the endpoints that have a quota anywhere, in order.
func limitedEndpoints(all []cpucost.Quota) []string {
	var out []string
	for i := range all {
		out = ordered.Add(out, all[i].Endpoint)
	}
	slices.Sort(out)
	return out
}

// quotas are the columns of each endpoint in the row of a cost; empty for one without a quota.
func quotas(all []cpucost.Quota, c *cpucost.Cost, endpoints []string) []string {
	out := make([]string, 0, 4*len(endpoints))
	for _, endpoint := range endpoints {
		k := slices.IndexFunc(all, func(q cpucost.Quota) bool {
			return q.Endpoint == endpoint && q.Workload == c.Workload && q.Stratum == c.Stratum && q.Treatment == c.Treatment
		})
		if k < 0 {
			out = append(out, "", "", "", "")
			continue
		}
		q := &all[k]
		if q.Unread {
			out = append(out, number(q.Quota), number(q.Cores), "", "")
			continue
		}
		out = append(out, number(q.Quota), number(q.Cores), number(q.Throttled), number(q.Time))
	}
	return out
}

// ratio is base, ratio, lo and hi of an estimate; empty where there are none.
func ratio(e *stat.Estimate, has bool) []string {
	out := make([]string, 4)
	if !has || e.N == 0 || e.Undefined != "" {
		return out
	}
	out[0], out[1] = number(e.Base), number(e.Ratio)
	if e.HasInterval() {
		out[2], out[3] = number(e.Lo), number(e.Hi)
	}
	return out
}

func writeAll(w io.Writer, rows [][]string) error {
	c := csvWriter{csv.NewWriter(w)}
	for _, row := range rows {
		_ = c.Write(row) // an error is kept for Error
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

// csvWriter writes fields and shows control characters as escapes such as \x1b: CSV has no
// escape for them (RFC 4180), and people read it in terminals. A newline becomes \n too:
// in quotes it would be valid, but grep and cat would show the rest as a record of its own.
// A text that a spreadsheet takes for a formula is not changed, because numbers begin with
// a sign too: docs/verbs/export.md says how to load fields as text.
type csvWriter struct{ *csv.Writer }

func (c csvWriter) Write(row []string) error {
	for i := range row {
		row[i] = terminal.Text(strings.ReplaceAll(row[i], "\n", `\n`))
	}
	return c.Writer.Write(row)
}
