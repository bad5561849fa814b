package export

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"tare/analyse"
	"tare/report/terminal"
)

// metric is one metric of OpenMetrics; value returns false where a comparison
// has none. bound says of which side the value is a bound, "" of none.
type metric struct {
	name, help string
	bound      func(c *analyse.Comparison) string
	value      func(c *analyse.Comparison) (float64, bool)
}

// Values of the label bound.
const (
	boundLower  = "lower"
	boundUpper  = "upper"
	boundEither = "either" // of a ratio of two lower bounds
)

func valueBound(c *analyse.Comparison) string {
	if c.Level.AtLeast {
		return boundLower
	}
	return ""
}

func ratioBound(c *analyse.Comparison) string {
	switch {
	case c.Level.AtLeast && c.Base.AtLeast:
		return boundEither
	case c.Base.AtLeast:
		return boundUpper
	}
	return valueBound(c)
}

func noBound(*analyse.Comparison) string { return "" }

func metrics() []metric {
	return []metric{
		{"tare_value", "Level of a response in a cell, in the unit of its label: geometric mean over the good trials.", valueBound,
			func(c *analyse.Comparison) (float64, bool) { return c.Level.Typical, c.Level.N > 0 }},
		{"tare_ratio", "Ratio of a cell to the baseline, within blocks.", ratioBound,
			func(c *analyse.Comparison) (float64, bool) { return c.Estimate.Ratio, hasRatio(c) }},
		{"tare_ratio_lo", "Lower end of the ratio's interval.", ratioBound,
			func(c *analyse.Comparison) (float64, bool) {
				return c.Estimate.Lo, hasRatio(c) && c.Estimate.HasInterval()
			}},
		{"tare_ratio_hi", "Upper end of the ratio's interval.", ratioBound,
			func(c *analyse.Comparison) (float64, bool) {
				return c.Estimate.Hi, hasRatio(c) && c.Estimate.HasInterval()
			}},
		{"tare_pairs", "Blocks with a value of both cell and baseline.", noBound,
			func(c *analyse.Comparison) (float64, bool) { return float64(c.Estimate.N), !c.Baseline }},
	}
}

func hasRatio(c *analyse.Comparison) bool {
	return !c.Baseline && c.Estimate.N > 0 && c.Estimate.Undefined == ""
}

// OpenMetrics writes a gauge for each figure of each comparison, labelled with
// study, response, unit and the cell's factors
// (https://prometheus.io/docs/specs/om/open_metrics_spec/). Without times: the
// reader gives its own. The baseline itself has a value and no ratio.
func OpenMetrics(w io.Writer, res *analyse.Result) error {
	buf := bufio.NewWriter(w)
	names := labelNames(res)
	for _, m := range metrics() {
		fmt.Fprintf(buf, "# TYPE %s gauge\n# HELP %s %s\n", m.name, m.name, m.help)
		for i := range res.Compared {
			c := &res.Compared[i]
			v, ok := m.value(c)
			if !ok || !finite(v) {
				continue
			}
			fmt.Fprintf(buf, `%s{study="%s",response="%s",unit="%s"`, m.name, labelValue(res.Study), labelValue(c.Response.Name), labelValue(string(c.Response.Unit)))
			for _, l := range c.Cell {
				fmt.Fprintf(buf, `,%s="%s"`, names[l.Factor], labelValue(l.Value))
			}
			if how := res.Accelerated(c.Cell); how != "" {
				fmt.Fprintf(buf, `,accelerator="%s"`, labelValue(how))
			}
			if res.Modelled {
				fmt.Fprint(buf, `,modelled="true"`)
			}
			if side := m.bound(c); side != "" {
				fmt.Fprintf(buf, `,bound="%s"`, side)
			}
			fmt.Fprintf(buf, "} %s\n", number(v))
		}
	}
	nodeBlocks(buf, res)
	fmt.Fprintln(buf, "# EOF")
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("write OpenMetrics: %w", err)
	}
	return nil
}

// nodeBlocks writes what each node had, where there are several. A comparison is over
// all of them, so its figures have no such label.
func nodeBlocks(w io.Writer, res *analyse.Result) {
	if len(res.Nodes) == 0 {
		return
	}
	fmt.Fprint(w, "# TYPE tare_node_blocks gauge\n# HELP tare_node_blocks Blocks that count and ran on a node.\n")
	for _, n := range res.Nodes {
		fmt.Fprintf(w, "tare_node_blocks{study=\"%s\",node=\"%s\"} %d\n", labelValue(res.Study), labelValue(n.Name), n.Blocks)
	}
}

// labelNames gives each factor a label's name, no two the same: letters, digits
// and underscores, "factor_" before those that are ours or reserved.
func labelNames(res *analyse.Result) map[string]string {
	taken := map[string]bool{"study": true, "response": true, "unit": true, "accelerator": true, "modelled": true, "bound": true}
	names := make(map[string]string)
	for i := range res.Compared {
		for _, l := range res.Compared[i].Cell {
			if _, ok := names[l.Factor]; ok {
				continue
			}
			name := strings.Map(func(r rune) rune {
				if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
					return r
				}
				return '_'
			}, l.Factor)
			if name == "" || name[0] == '_' || name[0] <= '9' || taken[name] {
				name = "factor_" + name
			}
			for taken[name] {
				name += "_"
			}
			taken[name], names[l.Factor] = true, name
		}
	}
	return names
}

func labelValue(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(terminal.Text(s))
}
