// Package plot draws every graph of a study at once: bars, lines, dots and heat
// maps as SVG, PNG or PDF, with an index page.
//
// The data path: 1. Build sorts the comparisons of an analysis into figures: one
// for each combination of what is not on an axis (select.go), one for each
// summary table (summary.go), one of what bounds its cells (causes.go), a grid of
// small graphs of what a figure of merit is computed from (grid.go), and a curve for each table of
// ratios to a first level (curve.go), the steps in which sandboxes start (starts.go), and
// the plateaus of loads that grow (plateaus.go); 2. each comparison
// becomes a Mark: a value with its interval, single blocks, or the reason why
// there is none (mark.go); 3. a sheet lays a figure out on a canvas: title,
// legend, axes, caption (sheet.go, axis.go), and draws its marks (bars.go,
// lines.go, heat.go), hatched within their outlines (hatch.go); 4. Write does
// that for all figures in parallel and writes the index (write.go, index.go).
//
// What is drawn is what `tare report` prints: no figure computes a cost or a
// verdict of its own. A cell without a value is a labelled gap.
package plot

import (
	"tare/analyse"
	"tare/analyse/merit"
	"tare/analyse/stat"
	"tare/record"
	"tare/report/section"
	"tare/study"
)

// Source is one results folder, analysed.
type Source struct {
	Study  *study.Study
	Result *analyse.Result
	Trials []record.Trial // for single blocks and the intervals of levels
	Hosts  []record.Host
	Tare   string // version
}

// Graph is a manner of drawing.
type Graph string

// Kinds of graph.
const (
	Bar  Graph = "bar"
	Line Graph = "line"
	Heat Graph = "heat"
	Dot  Graph = "dot"

	CauseMap Graph = "causes" // what bounds each cell
	Grid     Graph = "grid"   // small line graphs, one for each cell of a table
	Starts   Graph = "starts" // bars of the steps in which sandboxes start
)

// Value says which figure of a cell is drawn.
type Value string

// What can be drawn: the level in base units, or the cost as a multiple of the
// baseline's, of which more is worse.
const (
	Level Value = "level"
	Cost  Value = "cost"

	Causes Value = "causes" // of a cause map
)

// Options choose what is drawn.
type Options struct {
	By        []string       // factors of x axis, colour and hatching; none: chosen by the data
	Kind      Graph          // "": lines where x has three numbers or more, else bars
	Value     Value          // "": levels; costs where units differ
	Only      []record.Level // levels to draw; of one factor any, of several all must hold
	Responses []string       // by name; none: all
}

// FactorResponse stands for the response where a factor is named: --by response.
const FactorResponse = "response"

// Axis is what one factor is used for: the x axis, the colour or the hatching.
// The zero Axis is not used.
type Axis struct {
	Factor  string
	Levels  []string  // in the order of drawing; "" for cells without the factor
	Names   []string  // of the levels, as they are written; nil: the levels themselves
	Index   []int     // of each level among all levels of the study, so that a colour means the same everywhere
	Numbers []float64 // of the levels in base units, NaN for words; nil where not all but words are numbers
}

// Mark is one cell in one figure.
type Mark struct {
	X, Colour, Hatch int // indices into the axes' Levels
	Cell             record.Cell
	Response         record.Response
	N                int // blocks
	Value            float64
	Lo, Hi           float64   // of the interval; zero without one
	Points           []float64 // of single blocks, in the order of blocks
	Verdict          stat.Verdict
	Level            float64       // of a summary table's cell: the value that the cost is of; 0 elsewhere
	Bound            string        // the sign before a value that is a bound: "> "; "" for other values
	Baseline, Fewer  bool          // of such a cell: it is the baseline's; it is over fewer combinations than others
	Cause            *section.Cell // of a cause map; else nil
	Gap              string        // in a word why there is no value; "" where there is one
	Why              string        // the same in a sentence
}

// HasInterval reports whether there is one.
func (m *Mark) HasInterval() bool { return m.Hi > 0 }

// single reports whether only the blocks themselves are drawn, because they are
// too few for an interval.
func (m *Mark) single() bool { return m.Gap == "" && m.N < stat.MinN }

// Figure is one graph, not yet drawn.
type Figure struct {
	Name     string       // of its file, without extension
	Summary  string       // name of the summary table that it shows; "": none
	Curve    *merit.Table // of ratios that it shows; nil: none
	Kind     Graph
	Value    Value
	Workload string          // "" where several are in it
	Response record.Response // of a figure of several: what they have in common
	Fixed    record.Cell     // levels that all its cells share, the workload left out
	X        Axis
	Colour   Axis
	Hatch    Axis
	Marks    []Mark // by x, colour, hatching; of a grid: those of its panels, one after the other
	Panels   []Panel
	Boots    []analyse.Boot // of a picture of starts
	Plateaus bool           // it is of the steps of loads
	Down     string         // of a grid: the factor of its rows; "": none
	Across   []string       // likewise, the factors of its columns
	Compare  string         // the compared factor
	Baseline string         // its level
	Margin   float64
	Title    string
	Subtitle string
	Caption  string
	Alt      string // what it shows, in words
	Modelled bool   // no machine measured it: title and caption say so
}
