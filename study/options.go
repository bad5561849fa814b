package study

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/ordered"
	"tare/param"
	"tare/record"
)

// checkOptions asks the kind of a cell's sandbox about the parameters that it has in the
// cell, once for each combination. It is false when they are refused.
func (d *draft) checkOptions(cell record.Cell) bool {
	box, _ := cell.Get(FactorSandbox)
	info := d.study.sandbox(d.cat, box)
	if info.CheckOptions == nil || d.cat.Stored {
		return true
	}
	own := info.Params
	var options record.Cell
	values := param.Values{}
	for _, l := range cell {
		if _, ok := param.Find(own, l.Factor); ok {
			options, values[l.Factor] = append(options, l), l.Value
		}
	}
	id := box + "\x00" + options.Key()
	if good, done := d.options[id]; done {
		return good
	}
	values, err := param.Fill(own, values)
	if err == nil {
		err = info.CheckOptions(values)
	}
	if err == nil && info.NoteOptions != nil {
		if note := info.NoteOptions(values); note != "" {
			d.study.Notes = ordered.Add(d.study.Notes, fmt.Sprintf("sandbox %q: %s", box, note))
		}
	}
	if d.options == nil {
		d.options = map[string]bool{}
	}
	d.options[id] = err == nil
	if err != nil {
		d.refuse(d.blamed(options, err), fmt.Sprintf("sandbox %q is not possible: ", box), err, "change it, or exclude the combination")
	}
	return err == nil
}

// blamed is where the study has the level that an error names first; the factor sandbox
// when it names none.
func (d *draft) blamed(options record.Cell, err error) *yaml.Node {
	at, first := d.factors[d.sandbox].at, -1
	for _, l := range options {
		f := d.factors[d.index[l.Factor]]
		if i := strings.Index(err.Error(), l.Factor); i >= 0 && (first < 0 || i < first) && f.places[l.Value] != nil {
			at, first = f.places[l.Value], i
		}
	}
	return at
}
