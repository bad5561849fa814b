package store

import (
	"database/sql/driver"
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

// sampleKind is what many samples share.
type sampleKind struct {
	sample record.Sample // without its value
	wanted bool
}

// part reads one table of trials. The first column of each query is the trial's id. It always
// reads all rows, because the checksum of a trial covers all of them.
type part struct {
	query string
	scan  func(r fields, t *record.Trial)
}

const (
	between = " WHERE trial > ? AND trial <= ?"
	inOrder = " ORDER BY trial, ord"
)

// newLoader lists the tables in the order of the checksum. It skips a row of a trial that
// is not in the batch. Only a damaged database has one, and the trial that lacks the row
// does not verify.
func (s *Store) newLoader(pick Pick) *loader {
	l := &loader{same: once{}}
	samples, facts := l.samples, l.facts
	if !pick.All {
		// The many equal texts of a batch take most of the reading time. So a cell, and what samples
		// share, is made from its text only once.
		l.cells, l.kinds = make(map[string]record.Cell), make(map[string]*sampleKind)
		samples, facts = l.someSamples(pick), l.someFacts(pick.Facts)
	}
	histograms := l.histograms
	if !pick.All && pick.NoHistograms {
		histograms = func(r fields, _ *record.Trial) { r.histogram() }
	}
	node := "" // a column since schema 3; the checksums of an older one do not have it
	if s.version >= 3 {
		node = ", node"
	}
	l.parts = []part{
		{`SELECT id, name, session, seq, block, attempt, cell, status, start, duration_ns, failure_phase, failure_kind, failure_reason,
			failure_tail, failure_role` + node + ` FROM trials NOT INDEXED WHERE id > ? AND id <= ? ORDER BY id`, l.trial},
		{"SELECT trial, ord, factor, level FROM levels" + between + inOrder, l.levels},
		{"SELECT trial, ord, name || char(31) || labels || char(31) || unit || char(31) || kind || char(31) || original, value FROM samples" +
			between + inOrder, samples},
		{"SELECT trial, ord, name, labels, unit, scale, encoded FROM histograms" + between + inOrder, histograms},
		{"SELECT trial, ord, name, offset_ns, duration_ns FROM phases" + between + inOrder, l.phases},
		{"SELECT trial, ord, code, text FROM warnings" + between + inOrder, l.warnings},
		{"SELECT trial, name, value FROM facts" + between + " ORDER BY trial, name", facts},
		// Under schema 1 a file has no digest.
		{"SELECT e.* FROM evidence e" + between + " ORDER BY trial, kind, name", func(fields, *record.Trial) {}},
	}
	return l
}

// fields are the columns of a row. A value of another type than tare writes is noted: the
// trial is damaged.
type fields struct {
	row []driver.Value
	bad *bool
}

func (f fields) text(i int) string {
	v, ok := f.row[i].(string)
	if !ok {
		*f.bad = true
	}
	return v
}

// optional returns a text; "" for NULL.
func (f fields) optional(i int) string {
	if f.row[i] == nil {
		return ""
	}
	return f.text(i)
}

func (f fields) int(i int) int64 {
	v, ok := f.row[i].(int64)
	if !ok {
		*f.bad = true
	}
	return v
}

// number returns a value; NaN for NULL.
func (f fields) number(i int) float64 {
	switch v := f.row[i].(type) {
	case float64:
		return v
	case nil:
	default:
		*f.bad = true
	}
	return math.NaN()
}

func (l *loader) trial(r fields, t *record.Trial) {
	t.Session, t.Seq, t.Block, t.Attempt = r.int(2), int(r.int(3)), int(r.int(4)), int(r.int(5))
	if cell := r.text(6); l.cells != nil {
		t.Cell = l.cell(cell)
	}
	t.Status, t.Duration = record.Status(l.same.text(r.text(7))), time.Duration(r.int(9))
	if len(r.row) > 15 {
		t.Node = l.same.text(r.text(15))
	}
	var err error
	if t.Start, err = time.Parse(time.RFC3339Nano, r.text(8)); err != nil || r.text(1) != TrialName(t) {
		*r.bad = true
	}
	if r.row[11] != nil {
		t.Failure = &record.Failure{Phase: r.optional(10), Kind: r.text(11), Reason: r.optional(12), Tail: r.optional(13), Role: r.optional(14)}
	}
}

// cell returns the cell of a key.
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

func (l *loader) levels(r fields, t *record.Trial) {
	factor, value := r.text(2), r.text(3)
	if l.cells == nil {
		t.Cell = append(t.Cell, record.Level{Factor: l.same.text(factor), Value: l.same.text(value)})
	}
}

// sampleText is the column of the text that samples share. The original follows the last
// separator.
const sampleText = 2

func (l *loader) samples(r fields, t *record.Trial) {
	p := strings.SplitN(r.text(sampleText), "\x1f", 5)
	if len(p) != 5 {
		*r.bad = true
		return
	}
	t.Samples = append(t.Samples, record.Sample{Name: l.same.text(p[0]), Labels: record.Labels(l.same.text(p[1])), Unit: record.Unit(l.same.text(p[2])),
		Kind: record.SampleType(l.same.text(p[3])), Value: r.number(3), Original: l.same.text(p[4])})
}

// someSamples keeps samples without labels, those with a label that Pick names, and those with
// a name of Pick.
func (l *loader) someSamples(pick Pick) func(fields, *record.Trial) {
	hint := 0
	return func(r fields, t *record.Trial) {
		text := r.text(sampleText)
		value := r.number(3)
		k := l.kind(text[:strings.LastIndexByte(text, '\x1f')+1], pick)
		if !k.wanted {
			return
		}
		if t.Samples == nil { // as many as the last trial had, because most trials are alike
			t.Samples = make([]record.Sample, 0, hint)
		}
		s := k.sample
		s.Value = value
		if slices.Contains(pick.Names, s.Name) && text[len(text)-1] != '\x1f' {
			s.Original = strings.Clone(text[strings.LastIndexByte(text, '\x1f')+1:])
		}
		t.Samples = append(t.Samples, s)
		hint = len(t.Samples)
	}
}

func (l *loader) kind(text string, pick Pick) *sampleKind {
	k := l.kinds[text]
	if k == nil {
		p := append(strings.Split(text, "\x1f"), "", "", "")
		k = &sampleKind{sample: record.Sample{Name: p[0], Labels: record.Labels(p[1]), Unit: record.Unit(p[2]), Kind: record.SampleType(p[3])}}
		k.wanted = p[1] == "" || slices.Contains(pick.Names, p[0]) || slices.ContainsFunc(pick.Labels, func(n string) bool { return k.sample.Labels.Get(n) != "" })
		if len(l.kinds) > 1<<14 {
			clear(l.kinds) // the labels do not repeat
		}
		l.kinds[text] = k
	}
	return k
}

func (l *loader) phases(r fields, t *record.Trial) {
	if t.Phases == nil {
		t.Phases = make([]record.Phase, 0, 8)
	}
	t.Phases = append(t.Phases, record.Phase{Name: l.same.text(r.text(2)), Offset: time.Duration(r.int(3)), Duration: time.Duration(r.int(4))})
}

func (l *loader) warnings(r fields, t *record.Trial) {
	t.Warnings = append(t.Warnings, record.Warning{Code: l.same.text(r.text(2)), Text: r.text(3)})
}

func (l *loader) histograms(r fields, t *record.Trial) {
	t.Histograms = append(t.Histograms, r.histogram())
}

// histogram checks all columns, even for a reader that does not want them: all readers must
// find the same damage.
func (f fields) histogram() record.Histogram {
	encoded, ok := f.row[6].([]byte)
	if !ok && f.row[6] != nil { // the driver gives nil for a blob of no bytes
		*f.bad = true
	}
	return record.Histogram{Name: f.text(2), Labels: record.Labels(f.text(3)), Unit: record.Unit(f.text(4)), Scale: f.number(5), Encoded: encoded}
}

func (l *loader) facts(r fields, t *record.Trial) {
	if t.Facts == nil {
		t.Facts = make(map[string]string)
	}
	t.Facts[l.same.text(r.text(1))] = l.same.text(r.text(2))
}

// someFacts keeps facts whose names have one of these endings; "" matches all.
func (l *loader) someFacts(ends []string) func(fields, *record.Trial) {
	return func(r fields, t *record.Trial) {
		name := r.text(1)
		_ = r.text(2)
		if slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, end) }) {
			l.facts(r, t)
		}
	}
}

// once keeps each text once: a study has a few names, each a million times. Its size is
// bounded, in case the texts do not repeat.
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
