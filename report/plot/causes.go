package plot

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tare/analyse/cause"
	"tare/report/section"
	"tare/report/words"
)

// mostCauseRows bounds the map of all strata: more are not read.
const mostCauseRows = 120

// causes draws what bounds each cell: with the rows and columns of each summary table,
// or, where the study asks for none, of strata and treatments. They are of the whole
// study, as the tables' heat maps are.
func (b *builder) causes() []Figure {
	r := b.src.Result
	if len(b.opt.By) > 0 || len(b.opt.Only) > 0 || len(b.opt.Responses) > 0 || b.opt.Value != "" || b.opt.Kind != "" && b.opt.Kind != Heat || !section.Known(r) {
		return nil
	}
	maps := section.CauseMaps(r)
	if len(maps) == 0 {
		m := section.StrataCauses(r)
		if n := len(m.Table.Rows); n > mostCauseRows {
			b.notes = append(b.notes, fmt.Sprintf("the causes of %d strata are not drawn: `tare report --html` has a map of them", n))
			return nil
		}
		maps = []section.CauseMap{m}
	}
	var out []Figure
	for i := range maps {
		out = append(out, b.causeMap(&maps[i]))
	}
	return out
}

func (b *builder) causeMap(m *section.CauseMap) Figure {
	r := b.src.Result
	f := Figure{Summary: m.Name, Kind: CauseMap, Value: Causes, Compare: r.Compare, Baseline: r.Baseline, Margin: r.Margin}
	f.X = Axis{Factor: m.Column, Levels: m.Levels}
	if m.Column == "" {
		f.X.Factor = "cause"
	}
	f.Colour = Axis{Factor: strings.Join(m.Factors, ", ")}
	for i := range m.Levels {
		f.X.Index = append(f.X.Index, i)
	}
	for i, row := range m.Table.Rows {
		f.Colour.Levels, f.Colour.Index = append(f.Colour.Levels, row[0].First), append(f.Colour.Index, i)
		for j := range row[1:] {
			c := &row[1+j]
			if x := c.Cause; x != nil {
				f.Marks = append(f.Marks, Mark{X: j, Colour: i, Cell: r.Causes[x.Findings[0]].Cell, N: len(x.Findings), Baseline: x.Baseline, Cause: c})
			}
		}
	}
	slices.SortStableFunc(f.Marks, func(x, y Mark) int { return x.X - y.X })
	what := "What bounds each cell"
	if m.Name != "" {
		what = m.Title + ": what bounds each cell"
	}
	by := append(slices.Clone(m.Factors), m.Column)
	f.Title = what + ", by " + words.List(slices.DeleteFunc(by, func(s string) bool { return s == "" }))
	return f
}

// describeCauses writes the words of a cause map.
func (b *builder) describeCauses(f *Figure) {
	parts := []string{"Full colour: isolation costs there, by this cause, the paler the less sure; framed: it is not known to cost; undecided: too few blocks, or the interval holds 1; no cost: as good as the baseline or better",
		fmt.Sprintf("?: a confidence below %.0f %%", 100*words.Doubtful)}
	if f.Summary != "" {
		parts = append(parts, "the most frequent cause among a cell's strata that cost, in how many of all, and the mean confidence")
	} else {
		parts = append(parts, "times "+f.Baseline+"'s cost, and confidence")
	}
	f.Caption = b.withTail(f, parts)
	f.Alt = alt(f)
}

// spokenCause is a cell of a cause map in words.
func spokenCause(c *section.Cell) string {
	s := c.First
	if c.Second != "" {
		s += ", " + c.Second
	}
	switch {
	case c.Cause.Baseline:
		return s + ", the baseline"
	case c.Cause.Costs:
		return s + ", isolation costs"
	}
	return s
}

// causeBox draws a cause's ground and returns the colour of text on it. In greys, words
// alone tell causes apart, and the shade says how sure they are.
func (s *sheet) causeBox(r vg.Rectangle, c *section.Cause) color.NRGBA {
	name := words.CauseNameOf(c.Kind)
	hue, hatched := rgb(name.Hue), name.Hatched
	if s.th.Shaded {
		hue, hatched = s.th.High[1], false
	}
	line, in := vg.Length(1.6), vg.Length(1.4)
	switch {
	case c.Kind == cause.Untold:
		s.fill(s.th.Paper, r)
		s.frame(s.th.Quiet, 0.9, inset(r, in))
		return s.th.Ink
	case name.Hue == 0:
		s.fill(s.th.Paper, r)
		s.frame(s.th.Faint, 0.6, r)
		return s.th.Quiet
	case !c.Costs:
		s.fill(s.th.Paper, r)
		s.frame(hue, line, inset(r, in))
		return s.th.Ink
	}
	part := 0.3 + 0.7*max(0, min(1, c.Confidence))
	if s.th.Shaded {
		part *= 0.5
	}
	fill := mix(s.th.Paper, hue, part)
	if hatched {
		s.box(r, fill, mix(fill, over(fill), 0.22), diagonal)
	} else {
		s.fill(fill, r)
	}
	s.frame(s.th.Paper, 0.8, r)
	return over(fill)
}

func inset(r vg.Rectangle, by vg.Length) vg.Rectangle {
	by = min(by, (r.Max.X-r.Min.X)/4, (r.Max.Y-r.Min.Y)/4)
	return vg.Rectangle{Min: r.Min.Add(vg.Point{X: by, Y: by}), Max: r.Max.Sub(vg.Point{X: by, Y: by})}
}

// causeCell is one cell of a cause map: the word, and below it how sure it is.
func (s *sheet) causeCell(m *Mark, r vg.Rectangle) {
	w, h := r.Max.X-r.Min.X, r.Max.Y-r.Min.Y
	mid := vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}
	ink := s.causeBox(r, m.Cause.Cause)
	fs := max(sizeLeast, min(8, float64(h)*0.7))
	for fs > sizeLeast && s.width(m.Cause.First, fs, false) > w-5 {
		fs -= 0.5
	}
	if h < sizeLeast {
		return
	}
	up := -vg.Length(fs) * 0.35
	if below := m.Cause.Second; below != "" && float64(h) >= fs*2.6 {
		s.text(vg.Point{X: mid.X, Y: mid.Y - vg.Length(fs)*0.95}, s.fit(below, fs*0.85, w-4), fs*0.85, false, ink, draw.XCenter, 0)
		up = vg.Length(fs) * 0.15
	}
	s.text(vg.Point{X: mid.X, Y: mid.Y + up}, s.fit(m.Cause.First, fs, w-4), fs, false, ink, draw.XCenter, 0)
}

// causeKeys explain the causes that occur.
func (s *sheet) causeKeys() group {
	seen := make(map[cause.Name]bool)
	for i := range s.f.Marks {
		if c := s.f.Marks[i].Cause; c != nil && c.Cause.Costs {
			seen[c.Cause.Kind] = true
		}
	}
	var g group
	for _, k := range cause.Names() {
		if seen[k] {
			name := words.CauseNameOf(k)
			g.keys = append(g.keys, key{name.Word + ": " + name.About, func(r vg.Rectangle) { s.causeBox(r, &section.Cause{Kind: k, Confidence: 1, Costs: true}) }})
		}
	}
	return g
}

// markModelled says that no machine measured a figure, where it is seen first.
func (f *Figure) markModelled() {
	f.Modelled = true
	f.Subtitle = strings.TrimSuffix(strings.ToUpper(words.Modelled)+"; "+f.Subtitle, "; ")
	f.Alt = strings.ToUpper(words.Modelled[:1]) + words.Modelled[1:] + ". " + f.Alt
	f.Caption = strings.ToUpper(words.Modelled) + ". " + f.Caption
}

// besideTables puts each cause map after the heat map of its table, others at the end.
func besideTables(tables, maps []Figure) []Figure {
	var out []Figure
	used := make(map[string]bool)
	for _, t := range tables {
		out = append(out, t)
		for _, m := range maps {
			if m.Summary == t.Summary && !used[m.Summary] {
				used[m.Summary] = true
				out = append(out, m)
			}
		}
	}
	for _, m := range maps {
		if !used[m.Summary] {
			out = append(out, m)
		}
	}
	return out
}
