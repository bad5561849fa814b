// Package published compares the ratios of a study with published figures, and judges
// whether they agree.
//
// The data path: 1. the figures are read from the embedded file, comments included
// (figures.go); 2. a mapping, written as data, gives each figure's workload kind,
// parameters, isolated endpoint and response, and the differences from the published experiment
// (gvisor-guide.yaml, guide.go); 3. the study's strata are searched for each figure (match.go); 4. the ratio to
// the published base is computed from the blocks that have both, as all other ratios, with
// variances moderated over all rows of the table; 5. judge.go judges it.
//
// It is pure: values come through a function, and nothing is read or run.
package published

import (
	"fmt"
	"slices"
	"strings"

	"tare/analyse/stat"
	"tare/record"
	"tare/study"
)

// Table compares a study with published figures.
type Table struct {
	Name     string   `json:"name"`  // the study's word for it
	Title    string   `json:"title"` // "the gVisor performance guide"
	Source   string   `json:"source"`
	Date     string   `json:"date"`
	Ratio    string   `json:"ratio"`  // numerator and denominator: runsc/runc
	Factor   float64  `json:"factor"` // by which intervals are widened, see Judge
	Widest   float64  `json:"widest"` // relative half-width above which an interval cannot agree
	Margin   float64  `json:"margin"` // of the study: ratios this near to 1 are equal
	Notes    []string `json:"notes"`  // differences from the published experiment that all rows have
	Rows     []Row    `json:"rows"`   // in the order of the source
	Agree    int      `json:"agree"`
	Same     int      `json:"same_direction"`
	Disagree int      `json:"disagree"`
	Unsure   int      `json:"undecided"`
	Missing  int      `json:"not_measured"`
	Summary  string   `json:"summary"` // the counts in a sentence
}

// Judged returns the number of rows that have a measured interval.
func (t *Table) Judged() int { return t.Agree + t.Same + t.Disagree + t.Unsure }

// Row is one published ratio, and one stratum of the study that measures it. A
// figure that two strata measure has two rows.
type Row struct {
	Figure
	Stratum   string     `json:"stratum,omitempty"`  // Stratum.Key; "" if the study does not measure it
	Workload  string     `json:"workload,omitempty"` // its label in the study
	Response  string     `json:"response,omitempty"`
	Measured  []Measured `json:"measured,omitempty"` // one for each level of the other side, in the study's order
	Agreement Agreement  `json:"agreement"`          // of the figure's level
	Why       string     `json:"why"`                // reason for Agreement
	Expected  []string   `json:"expected,omitempty"` // differences from the published experiment, in addition to the table's notes
}

// Measured is the study's ratio of one level to the base.
type Measured struct {
	Level     string        `json:"level"` // of the factor sandbox, such as runsc-ptrace
	Name      string        `json:"name"`  // the level, and the levels nested below it
	Cell      record.Cell   `json:"cell"`
	Estimate  stat.Estimate `json:"estimate"`
	Compared  bool          `json:"compared,omitempty"` // the row's agreement is that of this level
	Agreement Agreement     `json:"agreement"`
}

// Values returns the measured values of two cells of one stratum, block by block.
type Values func(base, other record.Cell, response string) stat.Summary

// Compare makes the table that the study asks for; nil when it asks for none, or
// for one that this version does not have.
func Compare(st *study.Study, rule stat.Rule, values Values, kinds map[string]record.Traits) *Table {
	if st.Published != guideName {
		return nil
	}
	figures, err := guideFigures()
	g, bad := readGuide()
	if err != nil || bad != nil { // impossible: a test parses the embedded files
		return nil
	}
	t := g.table()
	t.Factor, t.Widest, t.Margin = Factor, Widest, rule.Margin
	var sums []stat.Summary       // of all Measured, in order
	var variances []stat.Variance // likewise
	for _, f := range figures {
		m := g.mapping(f)
		strata := find(st, m)
		if len(strata) == 0 {
			t.Rows = append(t.Rows, Row{Figure: f, Agreement: NotMeasured, Why: "the study does not measure it", Expected: m.Other})
		}
		for _, i := range strata {
			s := &st.Strata[i]
			w := &st.Workloads[s.Workload]
			row := Row{Figure: f, Stratum: s.Key, Workload: w.Label, Response: m.Response, Expected: m.expected(s, w)}
			base, others := sides(s, kinds)
			for _, cell := range others {
				level, _ := cell.Get(study.FactorSandbox)
				row.Measured = append(row.Measured, Measured{Level: level, Name: name(level, cell, s.Shared), Cell: cell, Compared: kinds[level].Platform == f.Platform})
				sum := values(base, cell, m.Response)
				sums, variances = append(sums, sum), append(variances, stat.Of(sum, w.Label))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	priors := stat.Moderate(variances)
	for i, n := 0, 0; i < len(t.Rows); i++ {
		row := &t.Rows[i]
		for j := range row.Measured {
			m := &row.Measured[j]
			m.Estimate = rule.Estimate(sums[n], priors[n])
			m.Agreement, _ = Judge(row.Ratio, m.Estimate, rule.Margin)
			n++
		}
		row.judge(rule.Margin)
		t.count(row.Agreement)
	}
	t.Summary = t.sentence()
	return t
}

// judge sets the row's agreement: that of the figure's level.
func (r *Row) judge(margin float64) {
	if r.Stratum == "" {
		return
	}
	at := slices.IndexFunc(r.Measured, func(m Measured) bool { return m.Compared })
	if at < 0 {
		base, other := study.PublishedRuntimes()
		r.Agreement, r.Why = NotMeasured, fmt.Sprintf("the study does not measure %s-%s", other, r.Platform)
		if len(r.Measured) == 0 {
			r.Why = fmt.Sprintf("the study does not measure both %s and %s here", base, other)
		}
		return
	}
	r.Agreement, r.Why = Judge(r.Ratio, r.Measured[at].Estimate, margin)
}

func (t *Table) count(a Agreement) {
	switch a {
	case Agrees:
		t.Agree++
	case SameDirection:
		t.Same++
	case Disagrees:
		t.Disagree++
	case Undecided:
		t.Unsure++
	default:
		t.Missing++
	}
}

// sides returns the base's cell and the others'. Where factors nested under the
// base make several cells, the first is taken. Without a base there is nothing
// to divide by, and so no others.
func sides(s *study.Stratum, kinds map[string]record.Traits) (base record.Cell, others []record.Cell) {
	divisor, other := study.PublishedRuntimes()
	for _, c := range s.Cells {
		level, _ := c.Get(study.FactorSandbox)
		switch t := kinds[level]; {
		case t.Runtime == divisor && base == nil:
			base = c
		case t.Runtime == other:
			others = append(others, c)
		}
	}
	if base == nil {
		return nil, nil
	}
	return base, others
}

// name returns a level, with the cell's other levels that differ within its stratum.
func name(level string, cell, shared record.Cell) string {
	for _, l := range cell {
		if _, ok := shared.Get(l.Factor); !ok && l.Factor != study.FactorSandbox {
			level += " " + l.Factor + "=" + l.Value
		}
	}
	return level
}

// sentence summarises the table: how many ratios agree.
func (t *Table) sentence() string {
	n := t.Judged()
	if n == 0 {
		return fmt.Sprintf("None of the %d ratios that %s published is measured yet.", len(t.Rows), t.Title)
	}
	s := fmt.Sprintf("%d of %d ratios that %s published agree with what is measured here", t.Agree, n, t.Title)
	var rest []string
	for _, p := range []struct {
		n    int
		word string
	}{{t.Same, "point in the same direction"}, {t.Disagree, "disagree"}, {t.Unsure, "are undecided"}} {
		if p.n == 1 {
			p.word = strings.NewReplacer("point in", "points in", "disagree", "disagrees", "are", "is").Replace(p.word)
		}
		if p.n > 0 {
			rest = append(rest, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	if len(rest) > 0 {
		s += "; " + strings.Join(rest, ", ")
	}
	return s + "."
}
