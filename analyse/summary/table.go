// Package summary makes the summary tables that a study asks for: one response
// over rows and columns of levels, everything else averaged over, each row beside
// the baseline's.
//
// The data path: 1. the comparisons of the response that the table is about are
// sorted by row and column; what tells them apart otherwise is a stratum, a
// combination of the levels averaged over; 2. the estimates of a row, one a
// stratum, are combined (package stat) into one of the cell, over the strata in
// which both the row and the baseline have values; where several treatments of one
// stratum fall into a row they share the baseline's trials, and are first averaged
// block by block; 3. each level of the compared factor with several rows has one
// more, the geometric mean over them.
//
// The order of trials changes nothing, to the last bit.
package summary

import (
	"tare/analyse/stat"
	"tare/record"
)

// Table is one summary table. Values are in base units, and none is NaN or
// infinite.
type Table struct {
	Name     string          `json:"name"`
	Response record.Response `json:"response"`
	Where    []Levels        `json:"where,omitempty"` // only cells with one of these levels
	Factors  []string        `json:"row_factors"`     // the compared one first
	Column   string          `json:"column_factor,omitempty"`
	Columns  []Column        `json:"columns"`         // at least one
	Rows     []Row           `json:"rows"`            // the baseline's first
	Over     []Levels        `json:"over,omitempty"`  // factors that a cell's mean is over
	Fixed    record.Cell     `json:"fixed,omitempty"` // levels that all of the table has
}

// Levels are those of one factor that occur.
type Levels struct {
	Factor string   `json:"factor"`
	Levels []string `json:"levels"`
}

// Column is one level of the column factor.
type Column struct {
	Level        string `json:"level"`        // "" without a column factor, or where it does not apply
	Combinations int    `json:"combinations"` // strata that the study has here
}

// Row is one combination of the row factors' levels, or the geometric mean over
// those of one level of the compared factor.
type Row struct {
	Cell     record.Cell `json:"cell"` // levels of the row factors; of a mean: the compared one's
	Baseline bool        `json:"baseline,omitempty"`
	Mean     bool        `json:"mean,omitempty"`
	Of       int         `json:"of,omitempty"` // rows that a mean is over
	Cells    []Cell      `json:"cells"`        // one a column
}

// Cell is what one row has in one column. Estimate.Value is the cell's value, the
// geometric mean over the combinations; Estimate.Base that of the baseline over
// the same ones, Estimate.Ratio the ratio of both with its interval, and
// Estimate.N the pairs of trials in it. The baseline's own has Value and N alone.
type Cell struct {
	Combinations int           `json:"combinations"`    // strata in it; 0: there is no value
	Fewer        bool          `json:"fewer,omitempty"` // than the column has, or of a mean: over fewer rows than it has
	Rows         int           `json:"rows,omitempty"`  // of a mean: rows in it
	Estimate     stat.Estimate `json:"estimate"`
	Verdict      stat.Verdict  `json:"verdict,omitempty"`
	Why          string        `json:"why,omitempty"` // there is no value, or the verdict
}
