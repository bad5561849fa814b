package export

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/analyse"
	"tare/record"
	"tare/report/terminal"
)

// Trials yields trials in the order of execution; an error ends it. It can be
// gone through more than once, and may have more trials the second time: see
// store.Store.All.
type Trials = iter.Seq2[record.Trial, error]

// factors lists the factors of all cells in the order in which they are met,
// and counts the trials, so that a second pass stops where this one did: a trial
// that was added meanwhile may have a factor that is not listed.
func factors(trials Trials) (names []string, at map[string]int, n int, err error) {
	at = make(map[string]int)
	for t, err := range trials {
		if err != nil {
			return nil, nil, 0, err
		}
		n++
		for _, l := range t.Cell {
			if _, ok := at[l.Factor]; !ok {
				at[l.Factor] = len(names)
				names = append(names, l.Factor)
			}
		}
	}
	return names, at, n, nil
}

// first yields the first n trials.
func first(n int, trials Trials) Trials {
	return func(yield func(record.Trial, error) bool) {
		i := 0
		for t, err := range trials {
			if i == n && err == nil || !yield(t, err) {
				return
			}
			i++
		}
	}
}

// TrialsCSV writes one row for each trial and figure of it, failed trials as
// one row without a figure. The factors of all cells are columns, in the order
// in which they are met, each named "factor:NAME".
func TrialsCSV(w io.Writer, trials Trials) error {
	names, at, n, err := factors(trials)
	if err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	c := csvWriter{csv.NewWriter(w)}
	head := []string{"seq", "block", "attempt", "status", "start", "seconds"}
	for _, f := range names {
		head = append(head, "factor:"+f)
	}
	_ = c.Write(append(head, "response", "labels", "unit", "value", "failure", "accelerator", "node")) // errors here and below are kept for Error
	for t, err := range first(n, trials) {
		if err == nil {
			err = c.Error() // ends a large export soon where nobody reads it
		}
		if err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
		row := make([]string, len(head), len(head)+7)
		copy(row, []string{strconv.Itoa(t.Seq), strconv.Itoa(t.Block), strconv.Itoa(t.Attempt), string(t.Status),
			t.Start.UTC().Format(time.RFC3339Nano), number(t.Duration.Seconds())})
		for _, l := range t.Cell {
			row[6+at[l.Factor]] = l.Value
		}
		how := accelerator(&t)
		if t.Failure != nil {
			_ = c.Write(append(row, "", "", "", "", t.Failure.Reason, how, t.Node))
		}
		for _, s := range t.Samples {
			_ = c.Write(append(row, s.Name, string(s.Labels), string(s.Unit), number(s.Value), "", how, t.Node))
		}
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

// accelerator says what ran a trial's virtual machines: kvm, tcg, model; "" for
// none, several joined by "+".
func accelerator(t *record.Trial) string {
	var out []string
	for name, v := range t.Facts {
		if strings.HasSuffix(name, analyse.AcceleratorFact) && v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "+")
}

// trialLine is a line of JSONLines. Its names are those of the CSV's columns
// and of the database.
type trialLine struct {
	Seq      int               `json:"seq"`
	Block    int               `json:"block"`
	Attempt  int               `json:"attempt"`
	Node     string            `json:"node,omitempty"`
	Status   record.Status     `json:"status"`
	Start    time.Time         `json:"start"`
	Seconds  float64           `json:"seconds"`
	Cell     cellObject        `json:"cell"`
	Samples  []sampleObject    `json:"samples"`
	Failure  *record.Failure   `json:"failure"`
	Warnings []record.Warning  `json:"warnings,omitempty"`
	Facts    map[string]string `json:"facts,omitempty"`
}

// sampleObject is a sample whose value may be missing: JSON has no NaN.
type sampleObject struct {
	Name   string            `json:"name"`
	Labels record.Labels     `json:"labels"`
	Unit   record.Unit       `json:"unit"`
	Kind   record.SampleType `json:"kind"`
	Value  *float64          `json:"value"`
}

// cellObject is a cell as an object, its factors in the study's order.
type cellObject record.Cell

// MarshalJSON keeps the order, which a map would lose.
func (c cellObject) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, l := range c {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, s := range []string{l.Factor, l.Value} {
			if j > 0 {
				b.WriteByte(':')
			}
			text, err := json.Marshal(s)
			if err != nil {
				return nil, err
			}
			b.Write(text)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// JSONLines writes each trial, failed ones too, as one line with its cell and
// samples. A value that is not a number is null.
func JSONLines(w io.Writer, trials Trials) error {
	buf := bufio.NewWriter(w)
	e := terminal.JSON(buf)
	for t, err := range trials {
		if err == nil {
			err = e.Encode(lineOf(&t))
		}
		if err != nil {
			return fmt.Errorf("write JSON lines: %w", err)
		}
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("write JSON lines: %w", err)
	}
	return nil
}

func lineOf(t *record.Trial) trialLine {
	l := trialLine{Seq: t.Seq, Block: t.Block, Attempt: t.Attempt, Node: t.Node, Status: t.Status, Start: t.Start.UTC(), Seconds: t.Duration.Seconds(),
		Cell: cellObject(t.Cell), Samples: make([]sampleObject, 0, len(t.Samples)), Failure: t.Failure, Warnings: t.Warnings, Facts: t.Facts}
	for _, s := range t.Samples {
		o := sampleObject{Name: s.Name, Labels: s.Labels, Unit: s.Unit, Kind: s.Kind}
		if finite(s.Value) {
			o.Value = &s.Value
		}
		l.Samples = append(l.Samples, o)
	}
	return l
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
