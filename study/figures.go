package study

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/ordered"
	"tare/param"
	"tare/record"
)

// FigureKind is a figure of merit, as docs/merit.md defines it.
type FigureKind string

// Figures of merit.
const (
	FigureValue      FigureKind = "value"      // the response itself
	FigureBest       FigureKind = "best"       // over the levels of a factor
	FigureFewest     FigureKind = "fewest"     // the first level that reaches a share of the best
	FigureGain       FigureKind = "gain"       // of the best over the factor's first level
	FigureRatio      FigureKind = "ratio"      // of each level of a factor to its first
	FigureDifference FigureKind = "difference" // of each level of a factor from its first, in the response's unit
	FigureOver       FigureKind = "over"       // the best of one level of the compared factor over the best of another
)

// defaultShare is the share of the best for FigureFewest.
const defaultShare = 0.9

// Figure asks for a table of a figure of merit. Rows, Columns and Of together tell all cells of
// the table apart.
type Figure struct {
	Name     string
	Kind     FigureKind
	Text     string  // as written: fewest 90% of io_threads
	Response string  // a response that the workloads compare
	Share    float64 // of FigureFewest
	Of       string  // the factor of FigureBest, FigureFewest, FigureGain, FigureRatio and FigureDifference
	One      string  // of FigureOver: a level of the compared factor
	Other    string  // likewise, which One is divided by
	Rows     []string
	Columns  []string
	Total    string   // the last of Rows, if the table has totals: arithmetic means over its levels; else ""
	Where    []Factor // only cells with one of these levels; a cell without the factor counts
}

// Each reports whether each level of the factor has a figure of its own, in a column of its own.
func (k FigureKind) Each() bool { return k == FigureRatio || k == FigureDifference }

// Holds reports whether the figure is about a cell.
func (f *Figure) Holds(cell record.Cell, compare string) bool {
	if !holds(f.Where, cell) {
		return false
	}
	if f.Kind == FigureOver {
		l, _ := cell.Get(compare)
		return l == f.One || l == f.Other
	}
	_, has := cell.Get(f.Of)
	return has || f.Of == ""
}

// askedFigure is a figure while it is read. It keeps the places of what figuresOf judges once the
// cells exist.
type askedFigure struct {
	Figure
	at, response, figure, total *yaml.Node
}

const figureHint = "write value, best of FACTOR, gain of FACTOR, ratio of FACTOR, difference of FACTOR, fewest 90% of FACTOR, or LEVEL over LEVEL"

// figure reads an entry of tables that has the key figure.
func (d *draft) figure(p pair) {
	f := askedFigure{Figure: Figure{Name: p.key.Value}, at: p.key}
	before := len(d.errs) + d.extra
	keys := d.keys(p.val, "table "+f.Name, "figure", "response", "workload", "rows", "columns", "total", "where")
	f.figure, f.total = keys["figure"].val, keys["total"].val
	f.Response, f.response = d.tableResponse(p, keys)
	whole := d.figureText(&f)
	for _, x := range []struct {
		key string
		dst *[]string
	}{{"rows", &f.Rows}, {"columns", &f.Columns}} {
		names, nodes, ok := d.factorNames(keys[x.key].val, x.key)
		for i, name := range names {
			if name == f.Of || x.key == "columns" && slices.Contains(f.Rows, name) {
				d.bad(nodes[i], "remove it", "%q is what table %q is already over, or in its rows", name, f.Name)
			}
		}
		*x.dst, whole = names, whole && (ok || x.key == "rows")
	}
	if f.Kind.Each() && f.Of != "" {
		f.Columns = append(f.Columns, f.Of)
	}
	if t, ok := d.text(f.total, "total"); ok {
		f.Total = t
		if len(f.Rows) > 0 && f.Rows[len(f.Rows)-1] != t {
			d.bad(f.total, "write total: "+f.Rows[len(f.Rows)-1], "a total is over the last factor of the rows, which %q is not", t)
		}
	}
	var ok bool
	f.Where, ok = d.tableWhere(keys)
	if len(d.errs)+d.extra == before && whole && ok {
		d.askedFigures = append(d.askedFigures, f)
	}
}

// figureText reads what figure it is. It is false if --set left out what it is about.
func (d *draft) figureText(f *askedFigure) bool {
	text, ok := d.text(f.figure, "figure")
	if !ok {
		return false
	}
	words := strings.Fields(text)
	f.Text = strings.Join(words, " ")
	of := len(words) > 2 && words[len(words)-2] == "of"
	switch {
	case f.Text == string(FigureValue):
		f.Kind = FigureValue
		return true
	case len(words) == 3 && words[1] == string(FigureOver):
		f.Kind, f.One, f.Other = FigureOver, words[0], words[2]
		return true
	case of && len(words) == 3 && FigureKind(words[0]).Each():
		f.Kind = FigureKind(words[0])
	case of && len(words) == 3 && (words[0] == string(FigureBest) || words[0] == string(FigureGain) || words[0] == string(FigureFewest)):
		f.Kind, f.Share = FigureKind(words[0]), defaultShare
	case of && len(words) == 4 && words[0] == string(FigureFewest):
		f.Kind = FigureFewest
		d.fraction(placed(f.figure, words[1]), "the share", 0, 1, &f.Share)
	default:
		d.bad(f.figure, figureHint, "%q is not a figure of merit", text)
		return false
	}
	f.Of = words[len(words)-1]
	if _, ok := d.index[f.Of]; !ok {
		if !d.relaxed || !slices.Contains(d.cat.factorNames(), f.Of) {
			d.noFactor(placed(f.figure, f.Of), f.Of, d.inStudy())
		}
		return false
	}
	return true
}

// placed is a word of a scalar, with its own place.
func placed(n *yaml.Node, word string) *yaml.Node {
	column := n.Column + strings.LastIndex(n.Value, word)
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		column++
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: word, Line: n.Line, Column: column}
}

// figuresOf judges the figures once the cells exist. It drops figures that --set left without a
// cell.
func (d *draft) figuresOf() {
	for i := range d.askedFigures {
		f := &d.askedFigures[i]
		before := len(d.errs)
		if f.Kind == FigureOver && !d.overLevels(f) {
			continue
		}
		if d.tableCells(f.Name, f.Response, f.at, f.response, func(s *Stratum) bool {
			return slices.ContainsFunc(s.Cells, func(c record.Cell) bool { return f.Holds(c, d.study.Compare) })
		}) && d.apart(f) && len(d.errs) == before {
			d.study.Figures = append(d.study.Figures, f.Figure)
		}
	}
}

// overLevels is false if the two are not levels of the compared factor.
func (d *draft) overLevels(f *askedFigure) bool {
	levels := d.factors[d.compare].levels
	for _, l := range []string{f.One, f.Other} {
		if !slices.Contains(levels, l) {
			if !d.relaxed {
				d.bad(placed(f.figure, l), param.Suggest(l, levels), "%q is not a level of %s in this study", l, d.study.Compare)
			}
			return false
		}
	}
	return true
}

// apart finds the rows that the study leaves to the table, and judges whether rows, columns
// and the figure's factor tell all cells apart.
func (d *draft) apart(f *askedFigure) bool {
	levels := map[string][]string{} // of the cells that the figure is about
	var cells []record.Cell
	for i := range d.study.Strata {
		s := &d.study.Strata[i]
		if !slices.Contains(s.Responses, f.Response) {
			continue
		}
		for _, c := range s.Cells {
			if !f.Holds(c, d.study.Compare) {
				continue
			}
			cells = append(cells, c)
			for _, l := range c {
				levels[l.Factor] = ordered.Add(levels[l.Factor], l.Value)
			}
		}
	}
	var left []string // factors that vary and have no place
	for _, x := range d.factors {
		over := f.Kind == FigureOver && x.treats // both bests are over these
		if len(levels[x.name]) > 1 && x.name != f.Of && !over && !slices.Contains(f.Rows, x.name) && !slices.Contains(f.Columns, x.name) {
			left = append(left, x.name)
		}
	}
	switch {
	case len(f.Rows) == 0:
		f.Rows = left
		if f.Total != "" && !slices.Contains(left, f.Total) {
			d.bad(f.total, "name it as the last of rows", "%q is not in the rows of table %q", f.Total, f.Name)
			return false
		}
		if i := slices.Index(left, f.Total); i >= 0 {
			f.Rows = append(slices.Delete(left, i, i+1), f.Total)
		}
	case len(left) > 0:
		d.bad(f.at, fmt.Sprintf("add it to rows or columns, or write where: {%s: %s}", left[0], levels[left[0]][0]), "the cells of table %q differ in %s", f.Name, left[0])
		return false
	}
	if f.Of != "" && len(levels[f.Of]) < 2 {
		if !d.relaxed {
			d.bad(placed(f.figure, f.Of), "give it several levels, or choose another factor", "%s has one level in the cells of table %q", f.Of, f.Name)
		}
		return false
	}
	return len(cells) > 0
}
