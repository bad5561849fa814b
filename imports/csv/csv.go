// Package csv reads results in long form: each row has one figure and its factors.
//
// The data path: 1. a Mapping names the columns: factors, response, value, unit,
// trial, block, time, labels; 2. Read goes through the rows once, converts values to base
// units and groups the rows by trial; 3. rows with a time become series, whose mean is the
// trial's figure, and rows without a time are figures; rows with labels are readings in
// addition to the responses, from which causes are found; 4. the trials are an imports.Set.
// The format is that of RFC 4180; errors name file:line:column.
package csv

import (
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/imports"
	"tare/param"
	"tare/record"
	"tare/study"
)

// Bounds on a file.
const (
	MaxFile    = 256 << 20
	maxRows    = imports.MaxPoints
	maxColumns = 1000
	maxText    = 512     // bytes of a level or a name
	maxSeconds = 3.2e9   // of a time: a century
	maxRecord  = 1 << 20 // bytes of a row
)

// trialKey identifies a trial: the cell and the repeat.
type trialKey struct{ cell, repeat string }

type figure struct {
	sum   float64
	n     int
	unit  record.Unit
	text  string // the value and unit as written, of the first row
	scale float64
	kind  string // if it has labels
	t     []time.Duration
	v     []float64
}

// gathered is a trial whose rows are being read.
type gathered struct {
	trial   imports.Trial
	figures map[reading]*figure
	names   []reading
}

// reader is a file that is being read.
type reader struct {
	file      string
	m         Mapping
	at        map[string]int
	rec       []string
	line      func(column int) (line, col int)
	own       map[string]int // columns of tare's own exports that say what made a trial
	trials    map[trialKey]*gathered
	order     []*gathered
	seen      map[[2]string]int // without a trial column: how often a cell had a response
	responses map[string][]record.Response
	units     map[string]record.Unit
	rows      map[[32]byte]int // without a trial column: the line of a row, by its hash
	repeats   int              // rows that equal an earlier one
	repeated  [2]int           // the line of the first of them, and that of its first
}

// Read makes a Set of a file. file is its name, for messages and provenance.
func Read(file string, in io.Reader, m Mapping) (*imports.Set, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	c := csv.NewReader(&bounded{in: in, file: file})
	c.ReuseRecord = true
	header, err := c.Read()
	if err != nil {
		return nil, syntax(file, err)
	}
	header = slices.Clone(header)
	if len(header) > 0 {
		header[0] = strings.TrimPrefix(header[0], "\ufeff") // spreadsheets write a byte order mark
	}
	if len(header) > maxColumns {
		return nil, fmt.Errorf("%s:1:1: there are %d columns; write at most %d", file, len(header), maxColumns)
	}
	r := &reader{file: file, m: m, line: c.FieldPos, trials: map[trialKey]*gathered{}, seen: map[[2]string]int{},
		responses: map[string][]record.Response{}, units: map[string]record.Unit{}, rows: map[[32]byte]int{}}
	if r.at, err = m.find(file, header); err != nil {
		return nil, err
	}
	r.own = map[string]int{}
	for _, name := range []string{columnAccelerator, columnModelled} {
		if i := slices.Index(header, name); i >= 0 {
			r.own[name] = i
		}
	}
	if m.Compare == "" && !r.has(study.FactorSandbox) {
		return nil, fmt.Errorf("no column is the sandbox, so the compared factor is unknown; %swrite sandbox=COLUMN, or compare with one of the factors %s", m.typo(study.FactorSandbox), strings.Join(m.order, ", "))
	}
	for rows := 0; ; rows++ {
		if r.rec, err = c.Read(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			if errors.Is(err, csv.ErrFieldCount) {
				line, _ := c.FieldPos(0)
				return nil, fmt.Errorf("%s:%d:1: the row has %s, and the header has %d; write as many", file, line, fields(len(r.rec)), len(header))
			}
			return nil, syntax(file, err)
		}
		if rows >= maxRows {
			return nil, fmt.Errorf("%s: there are more than %d rows; import it in parts", file, maxRows)
		}
		if err := r.row(); err != nil {
			return nil, err
		}
	}
	if len(r.order) == 0 {
		return nil, fmt.Errorf("%s:2:1: the file has only a header; add rows", file)
	}
	return r.set(), nil
}

// bad is an error at the column of a role.
func (r *reader) bad(role, format string, args ...any) error {
	line, col := r.line(r.at[role])
	return fmt.Errorf("%s:%d:%d: %s", r.file, line, col, fmt.Sprintf(format, args...))
}

func fields(n int) string {
	if n == 1 {
		return "1 field"
	}
	return fmt.Sprintf("%d fields", n)
}

func syntax(file string, err error) error {
	var p *csv.ParseError
	switch {
	case errors.As(err, &p):
		return fmt.Errorf("%s:%d:%d: %w; check quotes and the number of fields", file, p.Line, p.Column, p.Err)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s:1:1: the file is empty; its first row names the columns", file)
	}
	return fmt.Errorf("%s: %w", file, err)
}

// field returns the text of a role or factor in this row, or the constant.
func (r *reader) field(role string) string {
	if i, ok := r.at[role]; ok {
		return strings.TrimSpace(r.rec[i])
	}
	return r.m.Constants[role]
}

// levels reads the factors of a row, and a text that tells its cell from others.
func (r *reader) levels() (map[string]string, string, error) {
	levels := map[string]string{}
	var cell strings.Builder
	for _, f := range append([]string{study.FactorWorkload, study.FactorSandbox}, r.m.order...) {
		v := strings.Clone(r.field(f))
		switch own := f != study.FactorWorkload && f != study.FactorSandbox; {
		case v != "":
		case f == study.FactorWorkload && !r.has(f):
			v = "imported"
		case own || !r.has(f):
			continue // the factor does not apply to this row
		default:
			return nil, "", r.bad(f, "the %s is empty; write its level, or leave the row out", f)
		}
		if strings.ContainsFunc(v, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return nil, "", r.bad(f, "the level %q of %s has a control character; write text on one line", v, f)
		}
		if len(v) > maxText {
			return nil, "", r.bad(f, "the level of %s has %d bytes; write at most %d", f, len(v), maxText)
		}
		levels[f] = v
		cell.WriteString(f + "\x00" + v + "\x00")
	}
	return levels, cell.String(), nil
}

// row takes one row in.
func (r *reader) row() error {
	levels, cell, err := r.levels()
	if err != nil {
		return err
	}
	name := strings.Clone(r.field(roleResponse))
	if name == "" || len(name) > maxText || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' }) {
		return r.bad(roleResponse, "%q cannot name a response; write 1 to %d bytes without control characters", name, maxText)
	}
	text := r.field(roleValue)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return r.bad(roleValue, "%q is not a number; write one with a decimal point", text)
	}
	unit, scale, ok := imports.Unit(r.field(roleUnit))
	if !ok {
		return r.bad(roleUnit, "unknown unit %q; %s", r.field(roleUnit), param.Suggest(r.field(roleUnit), imports.Units()))
	}
	if err := r.notNegative(name, text, v, unit); err != nil {
		return err
	}
	of := reading{name: name}
	if of.labels, ok = labels(r.field(roleLabels)); !ok {
		return r.bad(roleLabels, "cannot read the labels %q; %s", r.field(roleLabels), labelsHint)
	}
	kind := r.field(roleKind)
	if of.labels != "" && kind != "" && kind != kindGauge && kind != kindCounter && kind != kindRate {
		return r.bad(roleKind, "unknown kind %q; write gauge, counter or rate", kind)
	}
	if of.labels != "" {
		name += "\x00" // a reading may have the name of a response
	}
	if err := r.known(levels[study.FactorWorkload], name, of, unit); err != nil {
		return err
	}
	key := trialKey{cell, strings.Clone(r.field(roleTrial))}
	timed := r.field(roleTime) != "" // else it is of the whole trial
	if !r.has(roleTrial) && !r.has(roleTime) {
		k := [2]string{key.cell, name + string(of.labels)}
		r.seen[k]++
		key.repeat = strconv.Itoa(r.seen[k])
		r.repeat()
	}
	g, err := r.trial(key, levels)
	if err != nil {
		return err
	}
	f := g.figures[of]
	if f == nil {
		f = &figure{unit: unit, scale: scale, kind: strings.Clone(kind)}
		if scale != 1 || string(unit) != r.field(roleUnit) {
			f.text = strings.TrimSpace(text + " " + r.field(roleUnit))
		}
		g.figures[of], g.names = f, append(g.names, of)
	} else if timed != (f.t != nil) {
		return r.bad(roleTime, "%s of trial %q has a time in only some rows; give it all points of a series, or one figure", of.name, key.repeat)
	} else if !timed {
		return r.bad(roleValue, "trial %q has %s twice; give each row its own trial, or name the column of the time", key.repeat, of.name)
	}
	f.sum, f.n = f.sum+v*scale, f.n+1
	if math.IsInf(f.sum, 0) {
		return r.bad(roleValue, "%s is too large", text)
	}
	if timed {
		return r.point(f, v*scale)
	}
	return nil
}

// known keeps the unit of a reading, and its response if it is one.
func (r *reader) known(workload, name string, of reading, unit record.Unit) error {
	was, known := r.units[workload+"\x00"+name]
	if known && was != unit {
		return r.bad(roleUnit, "%s is in %s in an earlier row, and in %s here; give each response one kind of unit", of.name, was, unit)
	}
	r.units[workload+"\x00"+name] = unit
	if of.labels == "" && !known {
		better := cmp.Or(r.m.Better[name], imports.Better(unit))
		r.responses[workload] = append(r.responses[workload], record.Response{Name: name, Unit: unit, Better: better, Operation: r.m.Operation[name]})
	}
	return nil
}

func (r *reader) has(role string) bool {
	_, column := r.at[role]
	return column || r.m.Constants[role] != ""
}

// trial returns the trial of a key, and makes it if it is new.
func (r *reader) trial(key trialKey, levels map[string]string) (*gathered, error) {
	g := r.trials[key]
	block := 0
	if r.has(roleBlock) {
		var err error
		if block, err = strconv.Atoi(r.field(roleBlock)); err != nil || block < 1 || block > 100_000 {
			return nil, r.bad(roleBlock, "%q is not the number of a block; write a whole number from 1 to 100000", r.field(roleBlock))
		}
	}
	if g != nil {
		if g.trial.Block != block {
			return nil, r.bad(roleBlock, "trial %q is in block %d in an earlier row; give it one block", key.repeat, g.trial.Block)
		}
		return g, nil
	}
	if len(r.order) >= imports.MaxTrials {
		return nil, fmt.Errorf("%s: there are more than %d trials; import it in parts", r.file, imports.MaxTrials)
	}
	g = &gathered{figures: map[reading]*figure{}, trial: imports.Trial{Levels: levels, Block: block, Facts: r.made()}}
	if r.has(roleTrial) {
		g.trial.Facts["imported.trial"] = key.repeat
	}
	r.trials[key] = g
	r.order = append(r.order, g)
	return g, nil
}

// made returns the facts of what ran a trial's virtual machines, as tare's own exports say it:
// a model's figures stay a model's, and an emulated processor's those of one.
func (r *reader) made() map[string]string {
	facts := map[string]string{}
	if i, ok := r.own[columnAccelerator]; ok {
		for name := range strings.SplitSeq(r.rec[i], "+") {
			switch name {
			case record.AcceleratorKVM, record.AcceleratorTCG, record.AcceleratorModel:
				facts["imported."+name+"."+record.FactAccelerator] = strings.Clone(name)
			}
		}
	}
	if i, ok := r.own[columnModelled]; ok && r.rec[i] == "true" {
		facts["imported."+record.AcceleratorModel+"."+record.FactAccelerator] = record.AcceleratorModel
	}
	return facts
}

// point adds a row to a series.
func (r *reader) point(f *figure, v float64) error {
	text := r.field(roleTime)
	t, err := strconv.ParseFloat(text, 64)
	scale := 1.0
	if u := r.field(roleTimeUnit); u != "" {
		unit, s, ok := imports.Unit(u)
		if !ok || unit != record.Second {
			return r.bad(roleTimeUnit, "unknown unit of time %q; write s, ms, us or ns", u)
		}
		scale = s
	}
	if inside := t*scale >= 0 && t*scale < maxSeconds; err != nil || !inside {
		return r.bad(roleTime, "%q is not a time; write a number from 0", text)
	}
	at := time.Duration(math.Round(t * scale * 1e9))
	if n := len(f.t); n > 0 && at < f.t[n-1] {
		return r.bad(roleTime, "the time %s is earlier than that of the last row; sort the rows of a trial by time", text)
	}
	f.t, f.v = append(f.t, at), append(f.v, v)
	return nil
}

// set finishes the trials.
func (r *reader) set() *imports.Set {
	s := &imports.Set{Name: r.m.Study, About: "Imported from " + filepath.Base(r.file), Origin: imports.Origin{Tool: "csv", Path: filepath.Base(r.file)},
		Compare: r.m.Compare, Baseline: r.m.Baseline, Factors: r.m.order, Responses: r.responses}
	for _, g := range r.order {
		first := time.Duration(math.MaxInt64)
		for _, f := range g.figures {
			if len(f.t) > 0 {
				first = min(first, f.t[0])
			}
		}
		var labelled []record.Series
		for _, of := range g.names {
			f := g.figures[of]
			p := record.Sample{Name: of.name, Labels: of.labels, Unit: f.unit, Kind: record.Value, Value: f.sum / float64(f.n), Original: f.text}
			for i := range f.t {
				f.t[i] -= first // from times of day or offsets to offsets from the trial's start
			}
			if f.t != nil {
				g.trial.Duration = max(g.trial.Duration, f.t[len(f.t)-1])
			}
			switch {
			case f.t != nil && of.labels != "":
				labelled = append(labelled, f.series(of, f.kind))
				continue // package window computes its figures below
			case f.t != nil:
				p.Original = fmt.Sprintf("mean of %d points", f.n)
				g.trial.Series = append(g.trial.Series, record.Series{Name: of.name, Unit: f.unit, Kind: record.Gauge, T: f.t, V: f.v})
			}
			g.trial.Samples = append(g.trial.Samples, p)
		}
		g.trial.Series = append(g.trial.Series, labelled...)
		for _, p := range figures(labelled, g.trial.Duration) {
			if !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
				g.trial.Samples = append(g.trial.Samples, p)
			}
		}
		s.Trials = append(s.Trials, g.trial)
	}
	s.Host.Warnings = r.warnings()
	if !r.m.Tables.IsZero() {
		s.Tables = imports.Tables{File: r.m.file, Node: &r.m.Tables}
	}
	return s
}

// bounded is a reader that returns an error for a file that is too large or has an endless
// row, which the parser would keep in memory.
type bounded struct {
	in    io.Reader
	file  string
	total int64
	row   int64 // bytes since the last line feed
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	b.total += int64(n)
	for _, c := range p[:n] {
		if b.row++; c == '\n' {
			b.row = 0
		}
		if b.row > maxRecord {
			return 0, fmt.Errorf("a line has more than %d bytes; give a CSV file", maxRecord)
		}
	}
	if b.total > MaxFile {
		return 0, fmt.Errorf("the file has more than %d bytes; import it in parts", MaxFile)
	}
	return n, err
}

// notNegative refuses a negative value if the unit cannot be negative. A difference may be
// negative; its direction is neither.
func (r *reader) notNegative(name, text string, v float64, unit record.Unit) error {
	if v >= 0 || r.m.Better[name] == record.Neither {
		return nil
	}
	var what string
	switch unit {
	case record.Second:
		what = "a time"
	case record.PerSecond, record.BytesPerSecond:
		what = "a rate"
	case record.Byte:
		what = "a size"
	case record.Cores:
		what = "a use of processors"
	default:
		return nil
	}
	return r.bad(roleValue, "%s is %s below 0; correct it, or leave the row out (for a difference, which may be negative, give --better %s=neither)", text, what, name)
}

// repeat records a row that equals an earlier one in every column. Without a column of the
// trial it may be another execution, or the same one twice: only the user knows.
func (r *reader) repeat() {
	line, _ := r.line(0)
	sum := sha256.Sum256([]byte(strings.Join(r.rec, "\x00")))
	switch first, ok := r.rows[sum]; {
	case !ok:
		r.rows[sum] = line
	case r.repeats == 0:
		r.repeated = [2]int{line, first}
		fallthrough
	default:
		r.repeats++
	}
}

// warnings returns doubts about the whole file.
func (r *reader) warnings() []record.Warning {
	if r.repeats == 0 {
		return nil
	}
	what, count := "1 row is", "counts as a separate trial"
	if r.repeats > 1 {
		what, count = fmt.Sprintf("%d rows are", r.repeats), "count as separate trials"
	}
	return []record.Warning{{Code: imports.CodeRepeated, Text: fmt.Sprintf("%s the same in every column as an earlier row (line %d as line %d) and %s: "+
		"an execution that is written twice makes intervals too narrow; name the column of the trial with trial=COLUMN, or leave such rows out", what, r.repeated[0], r.repeated[1], count)}}
}
