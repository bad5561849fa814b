package export

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/analyse/cause"
)

// CausesCSV writes one line for each cell with a finding, the baseline's included. The
// factors of all cells are columns, each named "factor:NAME". Causes that are not told
// apart are joined by spaces, and so are those that readings support and exclude: the
// readings themselves are in the JSON.
func CausesCSV(w io.Writer, res *analyse.Result) error {
	var factors factorColumns
	for i := range res.Causes {
		for _, l := range res.Causes[i].Cell {
			factors.add(l.Factor)
		}
	}
	rows := [][]string{append(factors.head("workload", "stratum", "treatment", "baseline"), "response", "ratio", "costs", "undecided", "end", "cause", "role", "among", "confidence", "trials", "text", "missing",
		"supports", "excludes", "added", "added_lo", "added_hi", "added_unit", "times", "times_lo", "times_hi",
		"price", "price_lo", "price_hi", "price_unit", "cores", "base_cores", "accelerator", "modelled")}
	for i := range res.Causes {
		f := &res.Causes[i]
		line := factors.line(f.Cell, f.Workload, f.Stratum, f.Treatment, strconv.FormatBool(f.Baseline))
		among := make([]string, len(f.Among))
		for j, k := range f.Among {
			among[j] = string(k)
		}
		confidence := ""
		if f.Cause != cause.Unknown && f.Cause != cause.Untold {
			confidence = number(f.Confidence)
		}
		line = append(line, f.Response.Name, optional(f.Ratio), strconv.FormatBool(f.Costs), strconv.FormatBool(f.Undecided), f.Endpoint, string(f.Cause), f.Role, strings.Join(among, " "),
			confidence, strconv.Itoa(f.Trials), f.Text, f.Missing, kindsThat(f, cause.Supports), kindsThat(f, cause.Excludes))
		line = append(line, fit(f.Added, true)...)
		line = append(line, fit(f.Factor, false)...)
		line = append(line, price(f.Price)...)
		rows = append(rows, append(line, res.Accelerated(f.Cell), strconv.FormatBool(res.Modelled)))
	}
	return writeAll(w, rows)
}

// kindsThat are the causes that readings support or exclude, each once.
func kindsThat(f *cause.Finding, says cause.Says) string {
	var out []string
	for i := range f.Readings {
		if r := &f.Readings[i]; r.Says == says && !slices.Contains(out, string(r.About)) {
			out = append(out, string(r.About))
		}
	}
	return strings.Join(out, " ")
}

// fit is a fit's constant with its interval, and its unit if that is wanted.
func fit(f *cause.Fit, unit bool) []string {
	out := []string{"", "", "", ""}
	if f != nil {
		out = []string{number(f.Constant), number(f.Lo), number(f.Hi), f.Unit}
	}
	if !unit {
		return out[:3]
	}
	return out
}

func price(p *cause.Price) []string {
	if p == nil {
		return make([]string, 6)
	}
	out := []string{number(p.Ratio), "", "", p.Unit, number(p.Cores), number(p.Base)}
	if p.Lo > 0 && p.Hi > 0 {
		out[1], out[2] = number(p.Lo), number(p.Hi)
	}
	return out
}
