// Package document puts together everything that a report shows of one results
// folder, as one value that goes into the HTML file as JSON and over the wire
// from `tare serve`.
//
// The data path: 1. a Builder takes a study and, one by one in any order, its
// trials; 2. it lists each cell once and makes the trials columns of numbers that
// point into that list, since 30,000 trials as objects would be 30 MB; 3. it
// merges the latency histograms of a cell into one curve as they come, so that no
// trial need be kept; 4. Document adds the analysis, and series for the trials
// that there is room for; 5. package words says the answer in sentences.
//
// The same results give the same bytes, whatever the order of Add: nothing here
// depends on the clock, on the iteration of maps, or on the folder's path.
// Version counts changes of meaning; fields are only ever added.
package document

import (
	"tare/analyse"
	"tare/record"
	"tare/report/section"
	"tare/report/words"
)

// Version is the version of the JSON.
const Version = 1

// Document is what one report shows.
type Document struct {
	Version   int                `json:"version"`
	Tare      string             `json:"tare"`      // the version that wrote it
	Generated string             `json:"generated"` // RFC 3339; of the last trial's end, so that the same results give the same file
	Live      bool               `json:"live,omitempty"`
	Dir       string             `json:"dir"` // name of the results folder, without its path
	Study     Study              `json:"study"`
	State     string             `json:"state"`              // how far the study is, in words
	Answer    []Sentence         `json:"answer"`             // what was found, in words
	Machines  string             `json:"machines,omitempty"` // what the names of virtual machines' levels mean
	Result    *analyse.Result    `json:"result"`             // what `tare report --json` prints, its figures to six digits; left out is what Causes, Advice and Sections have
	Sessions  []Session          `json:"sessions"`
	Cells     []Cell             `json:"cells"`
	Trials    Trials             `json:"trials"`
	Causes    *Causes            `json:"causes,omitempty"`   // what bounds each cell: Result.Causes, in short
	Advice    []Advice           `json:"advice,omitempty"`   // what to set: Result.Advice, in short
	Sections  []*section.Section `json:"sections,omitempty"` // what the page shows as it is: section.Page
	Plain     []*section.Section `json:"-"`                  // what the page without scripts shows: section.Plain
	Modelled  string             `json:"modelled,omitempty"` // that no machine measured this, in words; "" of measured figures
	Busy      string             `json:"busy,omitempty"`     // that others used the host meanwhile, in words; "" if not
	Plateaus  []string           `json:"plateaus,omitempty"` // which figures of Result.LoadSteps are drawn, in their order
	Curves    []Curve            `json:"curves,omitempty"`
	Series    []TrialSeries      `json:"series,omitempty"`
	Omitted   string             `json:"omitted,omitempty"` // which series had no room, and where they are; "" when none
	Notes     []Note             `json:"notes"`             // how each figure is computed, shown beside it

	windows [][]float64 // by trial
}

// Window is the measured part of a trial, as TrialSeries.Window has it; nil if it has
// none. The trial is an index into the columns of Trials.
func (d *Document) Window(trial int) []float64 {
	if trial >= len(d.windows) { // it was not made by a Builder
		return nil
	}
	return d.windows[trial]
}

// Study is what was asked, in short: a section says it at length.
type Study struct {
	Name    string   `json:"name"`
	About   string   `json:"about,omitempty"`
	Factors []Factor `json:"factors"` // in the study's order
}

// Factor is what was varied.
type Factor struct {
	Name   string   `json:"name"`
	Levels []string `json:"levels"`
}

// Sentence is one statement of the answer.
type Sentence = words.Sentence

// Session is one run that wrote to the folder.
type Session struct {
	ID      int64         `json:"id"`
	Started string        `json:"started"`
	Tare    string        `json:"tare"`
	Host    record.Host   `json:"host"`
	Nodes   []record.Node `json:"nodes,omitempty"` // where there are several; Host is of the first
}

// Cell is one cell, as Trials and Curves point to it.
type Cell struct {
	Key       string      `json:"key"`
	Levels    record.Cell `json:"levels"`
	Stratum   string      `json:"stratum"`
	Treatment string      `json:"treatment"`
	Baseline  bool        `json:"baseline,omitempty"`
	Responses []string    `json:"responses"` // the columns of its trials' values
}

// Trials are the trials in the order of execution, column by column; all columns
// have one entry a trial.
type Trials struct {
	Cell     []int        `json:"cell"` // index into Document.Cells
	Seq      []int        `json:"seq"`
	Block    []int        `json:"block"`
	Attempt  []int        `json:"attempt"`
	Session  []int64      `json:"session"`
	OK       []int        `json:"ok"`       // 1 or 0
	Start    []float64    `json:"start"`    // seconds since the first trial's start
	Duration []float64    `json:"duration"` // seconds
	Values   [][]*float64 `json:"values"`   // by Cell.Responses; null where there is none
	Warnings [][]string   `json:"warnings"` // codes; null where there are none
}

// Curve is a latency distribution of one cell: the histograms of its good trials
// merged. It is not a mean of percentiles.
type Curve struct {
	Cell      int         `json:"cell"`
	Name      string      `json:"name"` // of the histogram
	Labels    string      `json:"labels,omitempty"`
	Unit      record.Unit `json:"unit"`
	Count     int64       `json:"count"`     // events
	Quantiles []float64   `json:"quantiles"` // from 0 to 1, denser towards the tail
	Values    []float64   `json:"values"`
}

// TrialSeries is what was sampled during one trial, for looking at: rates made
// of counters, one line a role and end.
type TrialSeries struct {
	Trial  int       `json:"trial"`            // index into the columns of Trials
	Window []float64 `json:"window,omitempty"` // from and to: what is measured, seconds since the trial's start
	Lines  []Line    `json:"lines"`
}

// Line is one time series of a trial.
type Line struct {
	Name   string      `json:"name"`   // such as cpu
	Labels string      `json:"labels"` // such as end=server,role=sentry
	Unit   record.Unit `json:"unit"`   // such as cores
	T      []float64   `json:"t"`      // seconds since the trial's start
	V      []float64   `json:"v"`

	Of int    `json:"of,omitempty"` // how many readings there were, where they are more than are shown
	By string `json:"by,omitempty"` // and what is shown of each stretch of them: ByMean, ByExtremes
}

// What is shown of a stretch of readings.
const (
	ByMean     = "mean"
	ByExtremes = "extremes"
)

// Note tells how one figure is computed.
type Note struct {
	ID      string `json:"id"` // a stable word: ratio, interval, verdict...
	Title   string `json:"title"`
	Text    string `json:"text"`
	Section string `json:"section,omitempty"` // the heading of docs/method.md that says it at length
}
