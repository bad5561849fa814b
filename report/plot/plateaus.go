package plot

import (
	"fmt"
	"slices"
	"strconv"

	"tare/analyse"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// plateauColumns is how many graphs of plateaus stand side by side.
const plateauColumns = 2

// plateaus draw the loads that grow within a trial: a grid for each stratum, with a graph of each figure over the objects that
// there are, and a line for each treatment.
func (b *builder) plateaus() []Figure {
	r := b.src.Result
	if len(b.opt.By) > 0 || len(b.opt.Only) > 0 || len(b.opt.Responses) > 0 || b.opt.Value == Cost || b.opt.Kind != "" && b.opt.Kind != Grid {
		return nil
	}
	var order []string
	strata := make(map[string][]*analyse.LoadStep)
	for i := range r.LoadSteps {
		x := &r.LoadSteps[i]
		key := x.Cell.Without(r.Compare).Key()
		if strata[key] == nil {
			order = append(order, key)
		}
		strata[key] = append(strata[key], x)
	}
	var out []Figure
	for _, key := range order {
		steps := strata[key]
		f := Figure{Plateaus: true, Kind: Grid, Value: Level, Compare: r.Compare, Baseline: r.Baseline, Margin: r.Margin, Response: record.Response{Name: "plateaus"},
			Fixed: steps[0].Cell.Without(study.FactorWorkload, r.Compare)}
		f.Workload, _ = steps[0].Cell.Get(study.FactorWorkload)
		for _, name := range words.LoadFigures() {
			p := Panel{Row: len(f.Panels) / plateauColumns, Column: len(f.Panels) % plateauColumns, Figure: Figure{Plateaus: true, Kind: Line, Value: Level, Title: name}}
			if b.plateau(&p.Figure, steps, name); len(p.Marks) == 0 {
				continue
			}
			f.Panels, f.Marks = append(f.Panels, p), append(f.Marks, p.Marks...)
			f.X, f.Colour = p.X, p.Colour
		}
		out = append(out, f)
	}
	return out
}

// plateau places a figure of steps on the axes of a graph.
func (b *builder) plateau(f *Figure, steps []*analyse.LoadStep, name string) {
	var at, treatments []string
	objects := func(x *analyse.LoadStep) string {
		v, _ := x.Value("objects")
		return strconv.FormatFloat(v.Median, 'f', -1, 64)
	}
	for _, x := range steps {
		if l := objects(x); !slices.Contains(at, l) {
			at = append(at, l)
		}
		if l, _ := x.Cell.Get(b.src.Result.Compare); !slices.Contains(treatments, l) {
			treatments = append(treatments, l)
		}
	}
	f.Compare, f.Baseline = b.src.Result.Compare, b.src.Result.Baseline
	f.X, f.Colour = newAxis("objects", at, nil), newAxis(f.Compare, treatments, b.levels[f.Compare])
	for _, l := range f.Colour.Levels {
		f.Colour.Names = append(f.Colour.Names, b.levelName(record.Level{Factor: f.Compare, Value: l}))
	}
	for _, x := range steps {
		v, ok := x.Value(name)
		if !ok {
			continue
		}
		treatment, _ := x.Cell.Get(f.Compare)
		f.Response = record.Response{Name: name, Unit: v.Unit}
		f.Marks = append(f.Marks, Mark{X: slices.Index(f.X.Levels, objects(x)), Colour: slices.Index(f.Colour.Levels, treatment), Cell: x.Cell,
			Response: f.Response, N: x.Trials, Value: v.Median, Points: []float64{v.Median}})
	}
}

// mediansOf says of how many trials or starts values are the medians; one has none.
func mediansOf(most int, of string) string {
	if most == 1 {
		return "of " + of
	}
	return "medians of " + of
}

// describePlateaus writes the words of a picture of plateaus.
func (b *builder) describePlateaus(f *Figure) {
	f.Title = "figures at each plateau"
	if f.Workload != "" {
		f.Title = f.Workload + ": " + f.Title
	}
	f.Subtitle = "over the objects that there are; node_: of the load's node, since before the first step"
	if len(f.Fixed) > 0 {
		f.Subtitle = words.Levels(b.src.Result, f.Fixed, ", ") + "; " + f.Subtitle
	}
	least, most := f.Marks[0].N, f.Marks[0].N
	for i := range f.Marks {
		least, most = min(least, f.Marks[i].N), max(most, f.Marks[i].N)
	}
	of := words.Count(most, "trial")
	if least != most {
		of = fmt.Sprintf("%d to %s", least, of)
	}
	f.Caption = b.withTail(f, []string{mediansOf(most, of)})
	f.Alt = alt(f)
}
