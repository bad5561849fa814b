package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is one line of `go test -json` (go doc test2json, go help buildjson).
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build's output, instead of Package
	Test       string
	Elapsed    float64
	Output     string
}

// failure is a test that failed.
type failure struct {
	pkg, test string
	how       string // what else is to say of it, or ""
	output    string
}

type name struct{ pkg, test string }

// results is what a run of tests came to.
type results struct {
	passed   int
	passes   map[name]bool // the tests that passed
	failures []failure
	flaky    []failure // passed when they ran alone
	skips    []string
	crashed  map[string]bool // packages that failed otherwise than by a test that says so
	broke    []string        // what these said
	broken   int             // how many there are
}

// crash begins a line of a test binary that dies, or of one whose result is
// not to be believed.
var crash = regexp.MustCompile(`(?m)^(panic: |fatal error: |SIG[A-Z]+: |WARNING: DATA RACE)`)

// read prints the packages that passed. What a test printed is kept until it
// is known to have passed: a test without an end (its process exited or ran out
// of time) counts as failed.
func read(r io.Reader, w io.Writer) *results {
	res := &results{passes: map[name]bool{}, crashed: map[string]bool{}}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 64<<20)
	output := map[string]map[string][]string{} // by package and test
	for in.Scan() {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			fmt.Fprintln(w, in.Text()) // the go command's own words
			continue
		}
		pkg := e.Package + e.ImportPath
		if output[pkg] == nil {
			output[pkg] = map[string][]string{}
		}
		said := output[pkg][e.Test]
		if e.Action == "output" || e.Action == "build-output" {
			output[pkg][e.Test] = append(said, e.Output)
			continue
		}
		switch {
		case e.Action == "pass" && e.Test != "":
			res.passed++
			res.passes[name{pkg, e.Test}] = true
		case e.Action == "pass":
			fmt.Fprintf(w, "ok    %s (%.1f s)\n", pkg, e.Elapsed)
		case e.Action == "skip" && e.Test != "":
			res.skips = append(res.skips, fmt.Sprintf("%s %s: %s", pkg, e.Test, reason(said)))
		case e.Action == "skip": // a package without tests
		case e.Action == "fail" && e.Test != "":
			res.fail(pkg, e.Test, "", said)
		case e.Action == "fail" || e.Action == "build-fail":
			delete(output[pkg], "")
			res.end(pkg, said, output[pkg])
			clear(output[pkg])
		default: // start, run, pause, cont, bench, attr
			continue
		}
		delete(output[pkg], e.Test)
	}
	if err := in.Err(); err != nil {
		res.broken++
		res.broke = append(res.broke, fmt.Sprintln("cannot read what the tests printed:", err))
	}
	return res
}

func (res *results) fail(pkg, test, how string, said []string) {
	f := failure{pkg: pkg, test: test, how: how, output: strings.Join(said, "")}
	res.crashed[pkg] = res.crashed[pkg] || how != "" || crash.MatchString(f.output)
	res.failures = append(res.failures, f)
}

// end records the end of a package that failed, with the tests that did not end.
func (res *results) end(pkg string, said []string, open map[string][]string) {
	for _, test := range slices.Sorted(maps.Keys(open)) {
		res.fail(pkg, test, " has no end", open[test])
	}
	text := strings.Join(said, "")
	named := slices.ContainsFunc(res.failures, func(f failure) bool { return f.pkg == pkg })
	if !named || res.crashed[pkg] || crash.MatchString(text) {
		res.crashed[pkg] = true
		res.broken++
		res.broke = append(res.broke, fmt.Sprintf("FAIL  %s\n%s", pkg, text))
	}
}

// doubtful is the packages in which tests failed and nothing worse happened.
func (res *results) doubtful() []string {
	var pkgs []string
	for _, f := range res.failures {
		if !res.crashed[f.pkg] && !slices.Contains(pkgs, f.pkg) {
			pkgs = append(pkgs, f.pkg)
		}
	}
	return pkgs
}

// settle takes the second run of some packages. A test that passes in it
// is flaky; one that fails, is skipped, or is not in it has failed, and so has
// one that failed in the second run alone.
func (res *results) settle(second *results, pkgs []string) {
	var still []failure
	for _, f := range res.failures {
		switch {
		case !slices.Contains(pkgs, f.pkg):
			still = append(still, f)
		case second.passes[name{f.pkg, f.test}] && !second.crashed[f.pkg]:
			res.flaky = append(res.flaky, f)
		default:
			if i := slices.IndexFunc(second.failures, func(s failure) bool { return s.pkg == f.pkg && s.test == f.test }); i >= 0 {
				f.output += "and again, alone:\n" + second.failures[i].output
				second.failures = slices.Delete(second.failures, i, i+1)
			}
			still = append(still, f)
		}
	}
	for _, s := range second.failures {
		if res.passes[name{s.pkg, s.test}] {
			res.passed--
		}
		s.how += " when run again"
		still = append(still, s)
	}
	res.failures = still
	res.broken += second.broken
	res.broke = append(res.broke, second.broke...)
}

// place is where t.Log and t.Skip say that they stand.
var place = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// reason is what the test said when it skipped itself: the last it logged.
func reason(lines []string) string {
	why := "no reason given"
	for _, l := range lines {
		if at := place.FindString(l); at != "" {
			why = strings.TrimSpace(l[len(at):])
		}
	}
	return why
}
