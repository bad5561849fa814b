// Package junit writes a comparison of two results as JUnit XML, which CI servers
// show as tests: https://github.com/testmoapp/junitxml describes what they read.
//
// The data path: 1. each row of a compare.Result becomes a test case; 2. the
// gates that it breaks become its failure, those that cannot judge it its error, and a
// row without a ratio or an interval that has neither is skipped; 3. hosts and their differences become properties.
package junit

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"tare/analyse/compare"
	"tare/record"
	"tare/report/terminal"
	"tare/report/text"
	"tare/report/words"
)

// Options of the file.
type Options struct {
	Hostname string    // of the machine whose result is tested
	Time     time.Time // when it began to be measured
	Gates    []string  // what was promised, for the properties
}

// Write writes one test suite. A test case's class is tare.STUDY.WORKLOAD, its
// name the cell and the response; both stay the same from run to run, so that a
// server can show a history.
func Write(w io.Writer, res *compare.Result, breaches []compare.Breach, doubts []compare.Doubt, opt Options) error {
	broken, doubted := make(map[int][]string), make(map[int][]string)
	for _, b := range breaches {
		broken[b.Row] = append(broken[b.Row], b.Gate)
	}
	for _, d := range doubts {
		doubted[d.Row] = append(doubted[d.Row], d.Gate+": "+text.DoubtLine(&d))
	}
	suite := junit.Testsuite{Name: clean("tare compare " + res.Study), Hostname: clean(opt.Hostname), Time: "0"}
	if !opt.Time.IsZero() {
		suite.Timestamp = opt.Time.UTC().Format("2006-01-02T15:04:05") // the schema's form has no zone
	}
	property := func(name, value string) { suite.AddProperty(clean(name), clean(value)) }
	property("A", res.A.Name)
	property("B", res.B.Name)
	property("question", string(res.Question))
	property("confidence", strconv.FormatFloat(res.Confidence, 'g', -1, 64))
	property("margin", strconv.FormatFloat(res.Margin, 'g', -1, 64))
	property("fdr", strconv.FormatFloat(res.FDR, 'g', -1, 64))
	for _, g := range opt.Gates {
		property("gate", g)
	}
	for _, d := range res.Differences {
		property("differs: "+d.Field, d.A+" -> "+d.B)
	}
	for i := range res.Rows {
		suite.AddTestcase(testcase(res, i, broken[i], doubted[i]))
	}
	all := junit.Testsuites{Name: "tare compare", Time: "0"}
	all.AddSuite(suite)
	if _, err := io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"); err != nil {
		return fmt.Errorf("write JUnit XML: %w", err)
	}
	if err := all.WriteXML(w); err != nil {
		return fmt.Errorf("write JUnit XML: %w", err)
	}
	return nil
}

func testcase(res *compare.Result, i int, broken, doubted []string) junit.Testcase {
	r := &res.Rows[i]
	tc := junit.Testcase{Classname: clean("tare." + dotless(res.Study) + "." + dotless(r.Workload)),
		Name: clean(strings.TrimSpace(r.Cell.Without("workload").Key() + " " + r.Response.Name)), Time: "0"}
	line := text.ChangeLine(r)
	switch missing := r.Missing(); {
	case len(broken) > 0:
		tc.Failure = &junit.Result{Message: clean(line), Type: "gate", Data: clean("broken: " + strings.Join(broken, "\nbroken: ") + "\n" + details(res, r))}
	case len(doubted) > 0:
		tc.Error = &junit.Result{Message: clean("cannot be judged: " + line), Type: "gate", Data: clean(strings.Join(doubted, "\n") + "\n" + details(res, r))}
	case missing != "":
		tc.Skipped = &junit.Result{Message: clean(missing)}
	case !r.Change().HasInterval():
		tc.Skipped = &junit.Result{Message: clean(r.Change().Why)}
	default:
		tc.SystemOut = &junit.Output{Data: clean(line + "\n" + details(res, r))}
	}
	return tc
}

func details(res *compare.Result, r *compare.Row) string {
	var b strings.Builder
	for _, s := range []struct {
		name string
		m    *compare.Measured
	}{{"A (" + res.A.Name + ")", r.A}, {"B (" + res.B.Name + ")", r.B}} {
		m := s.m
		if m == nil {
			fmt.Fprintf(&b, "%s: does not have it\n", s.name)
			continue
		}
		fmt.Fprintf(&b, "%s: %s, %d blocks, %d failed", s.name, level(m, r.Response.Unit), m.N, m.Failed)
		if m.Cost.Ratio > 0 {
			fmt.Fprintf(&b, ", %s x the baseline", words.Ratio(m.Cost.Ratio))
		}
		b.WriteString("\n")
	}
	if c := r.Change(); c != nil && c.Why != "" {
		fmt.Fprintf(&b, "why: %s\n", c.Why)
	}
	return b.String()
}

func level(m *compare.Measured, u record.Unit) string {
	if m.N == 0 {
		return "no value"
	}
	return words.Value(m.Level, u)
}

// dotless keeps a name one part of a class.
func dotless(s string) string { return strings.ReplaceAll(s, ".", "_") }

// clean keeps what XML 1.0 can hold and a terminal can show. The encoder ensures the
// first in attributes, but not in CDATA.
func clean(s string) string { return terminal.Text(s) }
