package document

import (
	"slices"

	"tare/analyse"
	"tare/analyse/advice"
	"tare/analyse/cause"
	"tare/report/section"
	"tare/report/words"
)

// Causes are the findings of an analysis, with everything that repeats said once: a
// study has thousands of cells, each with a dozen readings of the same names.
type Causes struct {
	Summary  string             `json:"summary"`           // counts, in words
	Missing  []string           `json:"missing,omitempty"` // what was not read, each once
	Doubtful float64            `json:"doubtful"`          // confidence below which a cause has a question mark
	Kinds    []words.CauseName  `json:"kinds"`             // those that occur, in the order in which they are shown
	Readings []Reading          `json:"readings"`
	Findings []Finding          `json:"findings"`
	Maps     []section.CauseMap `json:"maps,omitempty"` // with the rows and columns of the summary tables
}

// Reading is what readings of several cells have in common.
type Reading struct {
	About  cause.Name `json:"about"`
	Name   string     `json:"name"`
	Unit   string     `json:"unit"`
	Limit  float64    `json:"limit,omitempty"`
	Series []string   `json:"series,omitempty"`
	Roles  []string   `json:"roles,omitempty"`
}

// Finding is a cause.Finding of one cell.
type Finding struct {
	Cell       int          `json:"cell"` // index into Document.Cells
	Response   string       `json:"response"`
	Ratio      *float64     `json:"ratio,omitempty"`
	Costs      bool         `json:"costs,omitempty"`
	Undecided  bool         `json:"undecided,omitempty"`
	Suspect    bool         `json:"suspect,omitempty"` // undecided, and looks worse
	Endpoint   string       `json:"end,omitempty"`
	Cause      cause.Name   `json:"cause"`
	Role       string       `json:"role,omitempty"`
	Among      []cause.Name `json:"among,omitempty"`
	Missing    string       `json:"missing,omitempty"`
	Confidence float64      `json:"confidence,omitempty"`
	Trials     int          `json:"trials"`
	Text       string       `json:"text"`
	// Readings: of each an index into Causes.Readings; 1 where it supports, -1 where it
	// excludes, else 0; the value; the lowest and the highest trial.
	Readings [][5]float64 `json:"readings,omitempty"`
	Added    *cause.Fit   `json:"added,omitempty"`
	Factor   *cause.Fit   `json:"factor,omitempty"`
	Price    string       `json:"price,omitempty"` // in words
	Word     string       `json:"word"`            // what its cell of a map says
	Below    string       `json:"below,omitempty"` // and below that
}

// Advice is one setting, with its cells as indices into Document.Cells.
type Advice struct {
	section.Entry
	Cause cause.Name `json:"cause,omitempty"` // that it is against
	Cells []int      `json:"cells"`
}

// causes makes them; nil where there are none.
func (b *Builder) causes(r *analyse.Result) *Causes {
	if r == nil || len(r.Causes) == 0 {
		return nil
	}
	known := *r // without findings of cells that the document does not know
	known.Causes = slices.DeleteFunc(slices.Clone(r.Causes), func(f cause.Finding) bool { _, ok := b.index[f.Cell.Key()]; return !ok })
	r = &known
	out := &Causes{Summary: words.CausesSentence(r), Missing: words.CausesMissing(r), Doubtful: words.Doubtful, Readings: []Reading{}, Findings: make([]Finding, 0, len(r.Causes))}
	seen := make(map[cause.Name]bool)
	at := make(map[string]int) // of Reading
	for i := range r.Causes {
		f := &r.Causes[i]
		shown := section.CauseCell(r, []int{i})
		seen[f.Cause] = true
		for _, k := range f.Among {
			seen[k] = true
		}
		x := Finding{Cell: b.index[f.Cell.Key()], Word: shown.First, Below: shown.Second, Response: f.Response.Name, Costs: f.Costs, Undecided: f.Undecided, Suspect: f.Suspect(), Endpoint: f.Endpoint, Cause: f.Cause, Role: f.Role, Among: f.Among, Missing: f.Missing,
			Confidence: round(f.Confidence, 2), Trials: f.Trials, Text: f.Text, Added: shorterFit(f.Added), Factor: shorterFit(f.Factor), Price: words.CausePrice(f.Price)}
		if f.Ratio != nil {
			ratio := round(*f.Ratio, 4)
			x.Ratio = &ratio
		}
		for j := range f.Readings {
			q := &f.Readings[j]
			seen[q.About] = true
			x.Readings = append(x.Readings, [5]float64{float64(out.reading(at, q)), says(q.Says), round(q.Value, 3), round(q.Lo, 3), round(q.Hi, 3)})
		}
		out.Findings = append(out.Findings, x)
	}
	for _, k := range cause.Names() {
		if seen[k] {
			out.Kinds = append(out.Kinds, words.CauseNameOf(k))
			delete(seen, k)
		}
	}
	for i := range out.Findings { // those of a newer version, in the order in which they are met
		if k := out.Findings[i].Cause; seen[k] {
			out.Kinds = append(out.Kinds, words.CauseNameOf(k))
			delete(seen, k)
		}
	}
	out.Maps = section.CauseMaps(r)
	return out
}

// reading finds what a reading has in common with others, or adds it.
func (c *Causes) reading(at map[string]int, q *cause.Reading) int {
	key := string(q.About) + "\x00" + q.Name + "\x00" + string(q.Unit) + "\x00" + words.Value(q.Limit, "")
	for _, s := range q.Series {
		key += "\x00s" + s
	}
	for _, s := range q.Roles {
		key += "\x00r" + s
	}
	i, ok := at[key]
	if !ok {
		i = len(c.Readings)
		at[key] = i
		c.Readings = append(c.Readings, Reading{About: q.About, Name: q.Name, Unit: string(q.Unit), Limit: round(q.Limit, 3), Series: q.Series, Roles: q.Roles})
	}
	return i
}

func says(s cause.Says) float64 {
	switch s {
	case cause.Supports:
		return 1
	case cause.Excludes:
		return -1
	case cause.Silent:
	}
	return 0
}

func shorterFit(f *cause.Fit) *cause.Fit {
	if f == nil {
		return nil
	}
	out := *f
	out.X, out.Y = make([]float64, len(f.X)), make([]float64, len(f.Y))
	for i, v := range f.X {
		out.X[i] = round(v, 5)
	}
	for i, v := range f.Y {
		out.Y[i] = round(v, 4)
	}
	for _, v := range []*float64{&out.Constant, &out.Lo, &out.Hi, &out.Slope, &out.SlopeLo, &out.SlopeHi} {
		*v = round(*v, 4)
	}
	return &out
}

// advice is what to set, with its cells by index.
func (b *Builder) advice(r *analyse.Result) []Advice {
	if r == nil {
		return nil
	}
	var out []Advice
	kept, _ := advice.Together(r.Advice, r.Compare)
	for i, block := range section.Entries(r, kept).Blocks {
		if block.Entry == nil {
			break // it says why there is no advice
		}
		x := Advice{Entry: *block.Entry, Cause: cause.Name(kept[i].Cause), Cells: []int{}}
		for _, c := range kept[i].Cells {
			if k, ok := b.index[c.Key()]; ok {
				x.Cells = append(x.Cells, k)
			}
		}
		out = append(out, x)
	}
	return out
}
