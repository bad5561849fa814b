package export

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"tare/record"
)

// Bounds on what a Parquet export holds in memory: rows go out in groups.
const (
	groupRows  = 1 << 16
	batchRows  = 1 << 10
	pageBuffer = 256 << 10
)

// column is one column of the table of trials. get returns false for NULL.
type column struct {
	name string
	node parquet.Node
	get  func(t *record.Trial, s *record.Sample) (parquet.Value, bool)
}

// columns are those of TrialsCSV, and kind.
func columns(factors []string) []column {
	number := parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked)
	word := parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	double := parquet.Leaf(parquet.DoubleType)
	integer := func(f func(t *record.Trial) int64) func(*record.Trial, *record.Sample) (parquet.Value, bool) {
		return func(t *record.Trial, _ *record.Sample) (parquet.Value, bool) { return parquet.Int64Value(f(t)), true }
	}
	text := func(s string, ok bool) (parquet.Value, bool) { return parquet.ByteArrayValue([]byte(s)), ok }
	figure := func(f func(s *record.Sample) string) func(*record.Trial, *record.Sample) (parquet.Value, bool) {
		return func(_ *record.Trial, s *record.Sample) (parquet.Value, bool) {
			if s == nil {
				return parquet.Value{}, false
			}
			return text(f(s), true)
		}
	}
	out := []column{
		{"seq", number, integer(func(t *record.Trial) int64 { return int64(t.Seq) })},
		{"block", number, integer(func(t *record.Trial) int64 { return int64(t.Block) })},
		{"attempt", number, integer(func(t *record.Trial) int64 { return int64(t.Attempt) })},
		{"status", word, func(t *record.Trial, _ *record.Sample) (parquet.Value, bool) { return text(string(t.Status), true) }},
		{"start", parquet.Timestamp(parquet.Nanosecond), integer(func(t *record.Trial) int64 { return t.Start.UnixNano() })},
		{"seconds", double, func(t *record.Trial, _ *record.Sample) (parquet.Value, bool) {
			return parquet.DoubleValue(t.Duration.Seconds()), true
		}},
	}
	for _, f := range factors {
		out = append(out, column{"factor:" + f, parquet.Optional(word), func(t *record.Trial, _ *record.Sample) (parquet.Value, bool) {
			return text(t.Cell.Get(f))
		}})
	}
	return append(out,
		column{"response", parquet.Optional(word), figure(func(s *record.Sample) string { return s.Name })},
		column{"labels", parquet.Optional(word), figure(func(s *record.Sample) string { return string(s.Labels) })},
		column{"unit", parquet.Optional(word), figure(func(s *record.Sample) string { return string(s.Unit) })},
		column{"kind", parquet.Optional(word), figure(func(s *record.Sample) string { return string(s.Kind) })},
		column{"value", parquet.Optional(double), func(_ *record.Trial, s *record.Sample) (parquet.Value, bool) {
			if s == nil || !finite(s.Value) {
				return parquet.Value{}, false
			}
			return parquet.DoubleValue(s.Value), true
		}},
		column{"failure", parquet.Optional(word), func(t *record.Trial, s *record.Sample) (parquet.Value, bool) {
			if s != nil || t.Failure == nil {
				return parquet.Value{}, false
			}
			return text(t.Failure.Reason, true)
		}},
		column{"accelerator", parquet.Optional(word), func(t *record.Trial, _ *record.Sample) (parquet.Value, bool) {
			how := accelerator(t)
			return text(how, how != "")
		}},
		column{"node", parquet.Optional(word), func(t *record.Trial, _ *record.Sample) (parquet.Value, bool) {
			return text(t.Node, t.Node != "")
		}},
	)
}

// table is a parquet.Group whose columns keep their order; a Group, being a
// map, has them in that of the alphabet.
type table struct {
	parquet.Group
	order []column
}

// Fields returns the columns.
func (t table) Fields() []parquet.Field {
	byName := make(map[string]parquet.Field, len(t.order))
	for _, f := range t.Group.Fields() {
		byName[f.Name()] = f
	}
	out := make([]parquet.Field, len(t.order))
	for i, c := range t.order {
		out[i] = byName[c.name]
	}
	return out
}

// Parquet writes what TrialsCSV writes, and the samples' kinds: a row for each
// trial and figure, a row without a figure for each failure. What a row does not
// have is NULL, a value that is not a number too; start is UTC in nanoseconds.
func Parquet(w io.Writer, trials Trials) error {
	if err := writeParquet(w, trials); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	return nil
}

func writeParquet(w io.Writer, trials Trials) error {
	names, _, n, err := factors(trials)
	if err != nil {
		return err
	}
	cols := columns(names)
	group := make(parquet.Group, len(cols))
	for _, c := range cols {
		group[c.name] = c.node
	}
	p := parquet.NewWriter(w, parquet.NewSchema("trials", table{group, cols}), parquet.CreatedBy("tare", "", ""),
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault}), parquet.PageBufferSize(pageBuffer), parquet.MaxRowsPerRowGroup(groupRows))
	batch := make([]parquet.Row, 0, batchRows)
	flush := func() error {
		_, err := p.WriteRows(batch)
		batch = batch[:0]
		return err
	}
	for t, err := range first(n, trials) {
		if err != nil {
			return err
		}
		if t.Failure != nil {
			batch = append(batch, rowOf(cols, &t, nil))
		}
		for i := range t.Samples {
			batch = append(batch, rowOf(cols, &t, &t.Samples[i]))
		}
		if len(batch) >= batchRows {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return p.Close()
}

func rowOf(cols []column, t *record.Trial, s *record.Sample) parquet.Row {
	row := make(parquet.Row, len(cols))
	for i, c := range cols {
		v, ok := c.get(t, s)
		defined := 0
		if !ok {
			v = parquet.NullValue()
		} else if c.node.Optional() {
			defined = 1
		}
		row[i] = v.Level(0, defined, i)
	}
	return row
}
