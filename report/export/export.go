// Package export writes results for programs: JSON, CSV, JSON lines, Parquet,
// the Go benchmark format, OpenMetrics, OpenSearch's bulk format and KubeVirt's VEP 411.
//
// The data path: an analyse.Result (JSON, CSV, OpenMetrics), the trials one by one, or
// both (VEP 411), go through one encoder to the writer. Values are in base
// units, whose names stand beside them; nothing is rounded. Columns and fields
// are only ever added; a change of meaning raises Schema.
//
// Text from others, such as the reason for a failure, cannot control a terminal or forge a
// field. JSON escapes it (package terminal). CSV, the Go benchmark format and OpenMetrics
// show control characters as package terminal does. Parquet is not text.
//
// What takes trials holds a few hundred of them at a time, however many there
// are. Where columns must be known before the first row, trials are read twice.
package export

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"tare/analyse"
	"tare/analyse/merit"
	"tare/analyse/summary"
	"tare/record"
	"tare/report/terminal"
)

// Schema is the version of the JSON document.
const Schema = 1

// Document is what JSON writes: the result's fields at the top, beside the
// version and the machines.
type Document struct {
	Schema int           `json:"schema"`
	Hosts  []record.Host `json:"hosts"`
	*analyse.Result
}

// JSON writes a result with the hosts that measured it, indented.
func JSON(w io.Writer, res *analyse.Result, hosts []record.Host) error {
	return encode(w, Document{Schema: Schema, Hosts: append([]record.Host{}, hosts...), Result: res})
}

// TablesJSON writes the study's own tables alone, under the names that they have in JSON.
func TablesJSON(w io.Writer, res *analyse.Result) error {
	return encode(w, struct {
		Schema   int             `json:"schema"`
		Study    string          `json:"study"`
		Modelled bool            `json:"modelled,omitempty"`
		Tables   []summary.Table `json:"tables,omitempty"`
		Figures  []merit.Table   `json:"figures,omitempty"`
	}{Schema, res.Study, res.Modelled, res.Tables, res.Figures})
}

func encode(w io.Writer, document any) error {
	e := terminal.JSON(w)
	e.SetIndent("", "  ")
	if err := e.Encode(document); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// CSV writes one row for each comparison, the baseline's own included. Fields
// that a row does not have are empty.
func CSV(w io.Writer, res *analyse.Result) error {
	rows := [][]string{{"workload", "stratum", "treatment", "baseline", "response", "unit", "better", "n", "value", "min", "max",
		"base", "ratio", "lo", "hi", "verdict", "why", "blocks", "stopped", "failed", "skipped", "gave_up", "p", "q", "accelerator", "modelled", "shrunk", "at_least", "base_at_least"}}
	for i := range res.Compared {
		x := &res.Compared[i]
		e := &x.Estimate
		n, base, ratio, lo, hi, shrunk := x.Level.N, "", "", "", "", ""
		if !x.Baseline {
			n = e.N
			if e.N > 0 {
				base = number(e.Base)
				if e.Undefined == "" {
					ratio = number(e.Ratio)
				}
			}
			if e.HasInterval() {
				lo, hi = number(e.Lo), number(e.Hi)
				if e.Shrunk > 0 {
					shrunk = number(e.Shrunk)
				}
			}
		}
		value, least, most := "", "", ""
		if x.Level.N > 0 {
			value, least, most = number(x.Level.Typical), number(x.Level.Min), number(x.Level.Max)
		}
		blocks, stopped := "", ""
		if x.Ending != nil {
			blocks, stopped = strconv.Itoa(x.Ending.Blocks), x.Ending.Text
		}
		rows = append(rows, []string{x.Workload, x.Stratum, x.Treatment, strconv.FormatBool(x.Baseline), x.Response.Name,
			string(x.Response.Unit), string(x.Response.Better), strconv.Itoa(n), value, least, most,
			base, ratio, lo, hi, string(x.Verdict), x.Why, blocks, stopped, strconv.Itoa(x.Failed), x.Skipped, x.GaveUp, optional(x.P), optional(x.Q), res.Accelerated(x.Cell), strconv.FormatBool(res.Modelled), shrunk,
			strconv.FormatBool(x.Level.AtLeast), strconv.FormatBool(x.Base.AtLeast)})
	}
	return writeAll(w, rows)
}

// optional is number of a value that may not be there.
func optional(v *float64) string {
	if v == nil {
		return ""
	}
	return number(*v)
}

// number writes all digits; a value that is not a number is empty, as R and
// pandas expect it.
func number(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
