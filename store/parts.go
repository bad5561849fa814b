package store

import (
	"database/sql"
	"math"
	"slices"
	"strings"
	"time"

	"tare/record"
)

// loader reads batches of trials.
type loader struct {
	parts []part
	same  once
	cells map[string]record.Cell // by key, when trials share them; else nil
	kinds map[string]*sampleKind // likewise
}

// sampleKind is what many samples have in common.
type sampleKind struct {
	sample record.Sample // without its value
	wanted bool
}

// part reads one child table of trials.
type part struct {
	query string
	args  []any // after the first and the last id
	scan  func(r *sql.Rows, trial func(id int64) *record.Trial) error
}

const (
	between = " WHERE trial > ? AND trial <= ?"
	inOrder = " ORDER BY trial, ord"
)

// newLoader lists the child tables that are to be read. A row of a trial that is
// not in the batch can only be in a damaged database and is passed over.
func newLoader(pick Pick) *loader {
	l := &loader{same: once{}}
	if pick.All {
		l.parts = []part{l.levels(), l.samples(), l.phases(), l.warnings(), l.histograms(), l.facts(nil)}
		return l
	}
	// A batch's many equal texts are the time that reading takes. So a cell is made
	// of its key, once, and what samples have in common is read as one text.
	l.cells, l.kinds = make(map[string]record.Cell), make(map[string]*sampleKind)
	l.parts = []part{l.someSamples(pick), l.phases(), l.warnings()}
	if !pick.NoHistograms {
		l.parts = append(l.parts, l.histograms())
	}
	if len(pick.Facts) > 0 {
		l.parts = append(l.parts, l.facts(pick.Facts))
	}
	return l
}

// cell is the cell of a key.
func (l *loader) cell(key string) record.Cell {
	c, ok := l.cells[key]
	if !ok {
		for _, p := range record.Labels(key).Pairs() { // a cell's key has the escapes of Labels
			c = append(c, record.Level{Factor: l.same.text(p[0]), Value: l.same.text(p[1])})
		}
		c = slices.Clip(c)
		l.cells[key] = c
	}
	return c
}

func (l *loader) levels() part {
	return part{"SELECT trial, factor, level FROM levels" + between + inOrder, nil, func(r *sql.Rows, trial func(int64) *record.Trial) error {
		var id int64
		var x record.Level
		err := r.Scan(&id, &x.Factor, &x.Value)
		if t := trial(id); err == nil && t != nil {
			t.Cell = append(t.Cell, record.Level{Factor: l.same.text(x.Factor), Value: l.same.text(x.Value)})
		}
		return err
	}}
}

func (l *loader) samples() part {
	return part{"SELECT trial, name, labels, unit, kind, value, original FROM samples" + between + inOrder, nil, func(r *sql.Rows, trial func(int64) *record.Trial) error {
		var id int64
		var name, labels, unit, kind, original string
		var v sql.NullFloat64
		err := r.Scan(&id, &name, &labels, &unit, &kind, &v, &original)
		if t := trial(id); err == nil && t != nil {
			t.Samples = append(t.Samples, record.Sample{Name: l.same.text(name), Labels: record.Labels(l.same.text(labels)), Unit: record.Unit(l.same.text(unit)),
				Kind: record.Kind(l.same.text(kind)), Value: number(v), Original: original})
		}
		return err
	}}
}

// someSamples reads those without labels, those with a label of one of the names,
// and those that have a name themselves.
func (l *loader) someSamples(pick Pick) part {
	// The condition lets too many through rather than too few: what it costs on
	// each of millions of rows matters, and wanted is exact.
	var where strings.Builder
	var args []any
	where.WriteString(" AND (labels = ''")
	for _, n := range pick.Names {
		where.WriteString(" OR name = ?")
		args = append(args, n)
	}
	for _, n := range pick.Labels {
		where.WriteString(" OR instr(labels, ?)")
		args = append(args, n+"=")
	}
	where.WriteString(")")
	hint := 0
	const common = "name || char(31) || labels || char(31) || unit || char(31) || kind"
	return part{"SELECT trial, " + common + ", value FROM samples" + between + where.String() + inOrder, args, func(r *sql.Rows, trial func(int64) *record.Trial) error {
		var id int64
		var text string
		var v sql.NullFloat64
		err := r.Scan(&id, &text, &v)
		if t := trial(id); err == nil && t != nil {
			if k := l.kind(text, pick); k.wanted {
				if t.Samples == nil { // as many as the last trial had: they are mostly alike
					t.Samples = make([]record.Sample, 0, hint)
				}
				s := k.sample
				s.Value = number(v)
				t.Samples = append(t.Samples, s)
				hint = len(t.Samples)
			}
		}
		return err
	}}
}

func (l *loader) kind(text string, pick Pick) *sampleKind {
	k := l.kinds[text]
	if k == nil {
		p := append(strings.Split(text, "\x1f"), "", "", "")
		k = &sampleKind{sample: record.Sample{Name: p[0], Labels: record.Labels(p[1]), Unit: record.Unit(p[2]), Kind: record.Kind(p[3])}}
		k.wanted = p[1] == "" || slices.Contains(pick.Names, p[0]) || slices.ContainsFunc(pick.Labels, func(n string) bool { return k.sample.Labels.Get(n) != "" })
		if len(l.kinds) > 1<<14 {
			clear(l.kinds) // labels that never come again
		}
		l.kinds[text] = k
	}
	return k
}

// number is a value, NULL being what is not a number.
func number(v sql.NullFloat64) float64 {
	if !v.Valid {
		return math.NaN()
	}
	return v.Float64
}

func (l *loader) phases() part {
	return part{"SELECT trial, name, offset_ns, duration_ns FROM phases" + between + inOrder, nil, func(r *sql.Rows, trial func(int64) *record.Trial) error {
		var id, offset, duration int64
		var name string
		err := r.Scan(&id, &name, &offset, &duration)
		if t := trial(id); err == nil && t != nil {
			if t.Phases == nil {
				t.Phases = make([]record.Phase, 0, 8)
			}
			t.Phases = append(t.Phases, record.Phase{Name: l.same.text(name), Offset: time.Duration(offset), Duration: time.Duration(duration)})
		}
		return err
	}}
}

func (l *loader) warnings() part {
	return part{"SELECT trial, code, text FROM warnings" + between + inOrder, nil, func(r *sql.Rows, trial func(int64) *record.Trial) error {
		var id int64
		var w record.Warning
		err := r.Scan(&id, &w.Code, &w.Text)
		if t := trial(id); err == nil && t != nil {
			w.Code = l.same.text(w.Code)
			t.Warnings = append(t.Warnings, w)
		}
		return err
	}}
}

func (l *loader) histograms() part {
	return part{"SELECT trial, name, labels, unit, scale, encoded FROM histograms" + between + inOrder, nil, func(r *sql.Rows, trial func(int64) *record.Trial) error {
		var id int64
		var h record.Histogram
		err := r.Scan(&id, &h.Name, &h.Labels, &h.Unit, &h.Scale, &h.Encoded)
		if t := trial(id); err == nil && t != nil {
			t.Histograms = append(t.Histograms, h)
		}
		return err
	}}
}

// facts are those whose names end so; with none, or "", all.
func (l *loader) facts(ends []string) part {
	query, args := "SELECT trial, name, value FROM facts"+between, []any(nil)
	if len(ends) > 0 && !slices.Contains(ends, "") {
		query += " AND (0"
		for _, end := range ends {
			query, args = query+" OR substr(name, -length(?)) = ?", append(args, end, end)
		}
		query += ")"
	}
	return part{query, args, func(r *sql.Rows, trial func(int64) *record.Trial) error {
		var id int64
		var k, v string
		err := r.Scan(&id, &k, &v)
		if t := trial(id); err == nil && t != nil {
			if t.Facts == nil {
				t.Facts = make(map[string]string)
			}
			t.Facts[l.same.text(k)] = l.same.text(v)
		}
		return err
	}}
}

// once keeps each text once: a study has a few names, and each of them a million
// times. Of texts that never come again it does not grow for ever.
type once map[string]string

func (o once) text(s string) string {
	if s == "" {
		return ""
	}
	t, ok := o[s]
	if !ok {
		if len(o) > 1<<14 {
			clear(o)
		}
		t = s
		o[s] = s
	}
	return t
}
