package main

// spec is how a figure looks. What is empty is left to the plot.
type spec struct {
	name   string // of the files
	xLabel string
	xTicks []float64
	logX   bool
	panels []panel
	series []style
}

type panel struct {
	key    string // of the data
	title  string // unless the data gives one
	yLabel string
	yMin   float64
	yMax   float64
	yTicks []float64
	want   float64 // a line to be above or below; 0 for none
	said   string  // beside it
}

// Kinds of a series.
const (
	lines  = iota // with marks
	marks         // alone
	ground        // a grey line behind
)

type style struct {
	key   string
	kind  int
	color int // of the palette
	mark  int // circle, square, triangle, diamond
	dash  bool
}

var blocks = []float64{3, 4, 6, 8, 12, 16} //nolint:gochecknoglobals // a constant, in Go a variable

func specs() []spec {
	ways := []style{
		{key: "default rule", color: 0, mark: 0},
		{key: "fixed: 8, in blocks", color: 2, mark: 2, dash: true},
		{key: "A A A B B B", color: 1, mark: 1},
	}
	power := func(key string, first bool) panel {
		p := panel{key: key, title: key, yMax: 100, yTicks: []float64{0, 20, 40, 60, 80, 100}, want: 80}
		if first {
			p.yLabel, p.said = "called slower (%)", "80 %"
		}
		return p
	}
	calibrated := func(key string) panel {
		return panel{key: key, title: key, yMin: 40, yMax: 100, yTicks: []float64{40, 50, 60, 70, 80, 90, 100}}
	}
	low := calibrated("low scatter")
	low.yLabel = "findings that are right (%)"
	return []spec{
		{
			name: "method-drift", xLabel: "trials, in the order of execution", xTicks: []float64{1, 4, 8, 12, 16},
			panels: []panel{
				{key: "A A A B B B", yLabel: "time (% off the long run)"},
				{key: "in blocks"},
			},
			series: []style{
				{key: "the machine", kind: ground},
				{key: "A", kind: marks, color: 0, mark: 0},
				{key: "B", kind: marks, color: 1, mark: 1},
			},
		},
		{
			name: "method-order", xLabel: "correlation of drift, trial to trial", xTicks: []float64{0, 0.2, 0.4, 0.6, 0.8, 0.95},
			panels: []panel{
				{key: "intervals that cover the truth", title: "95 % intervals that cover the truth", yLabel: "per cent", yMin: 40, yMax: 100, yTicks: []float64{40, 50, 60, 70, 80, 90, 95, 100}, want: 95},
				{key: "equal things called different", title: "equal things called different", yMax: 60, yTicks: []float64{0, 5, 10, 20, 30, 40, 50, 60}, want: 5},
			},
			series: ways,
		},

		{
			name: "method-power", xLabel: "blocks", xTicks: blocks,
			panels: []panel{power("trials repeat to 1 %", true), power("trials repeat to 2 %", false), power("trials repeat to 5 %", false)},
			series: []style{
				{key: "10 % slower", color: 0, mark: 0}, {key: "5 % slower", color: 2, mark: 2, dash: true}, {key: "2 % slower", color: 1, mark: 1},
				{key: "10 % slower, default rule", kind: marks, color: 0, mark: 3},
				{key: "5 % slower, default rule", kind: marks, color: 2, mark: 3},
				{key: "2 % slower, default rule", kind: marks, color: 1, mark: 3},
			},
		},
		{
			name: "method-causes", xLabel: "confidence of a finding", xTicks: []float64{0.5, 0.6, 0.7, 0.8, 0.9},
			panels: []panel{low, calibrated("real scatter")},
			series: []style{{key: "as promised", kind: ground}, {key: "the findings", color: 0, mark: 0}},
		},
	}
}
