// Command testsummary reads `go test -json` and prints what a person wants to
// know: each package's result, the output of what failed, what was skipped and
// why, and one closing line of counts.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
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

func main() {
	if !summarise(os.Stdin, os.Stdout) {
		os.Exit(1)
	}
}

// summarise tells whether everything that ran passed, and that something ran.
// What a test printed is kept until it is known to have passed: a test without
// an end (its process exited or ran out of time) counts as failed.
func summarise(r io.Reader, w io.Writer) bool {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 64<<20)
	output := map[string]map[string][]string{} // by package and test
	var skips []string
	passed, failed, broken := 0, 0, 0
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
			passed++
		case e.Action == "pass":
			fmt.Fprintf(w, "ok    %s (%.1f s)\n", pkg, e.Elapsed)
		case e.Action == "skip" && e.Test != "":
			skips = append(skips, fmt.Sprintf("%s %s: %s", pkg, e.Test, reason(said)))
		case e.Action == "skip": // a package without tests
		case e.Action == "fail" && e.Test != "":
			failed++
			fmt.Fprintf(w, "FAIL  %s %s\n%s", pkg, e.Test, strings.Join(said, ""))
		case e.Action == "fail" || e.Action == "build-fail":
			broken++
			delete(output[pkg], "")
			for _, test := range slices.Sorted(maps.Keys(output[pkg])) {
				failed++
				fmt.Fprintf(w, "FAIL  %s %s has no end\n%s", pkg, test, strings.Join(output[pkg][test], ""))
			}
			fmt.Fprintf(w, "FAIL  %s\n%s", pkg, strings.Join(said, ""))
			clear(output[pkg])
		default: // start, run, pause, cont, bench, attr
			continue
		}
		delete(output[pkg], e.Test)
	}
	for _, s := range skips {
		fmt.Fprintln(w, "skip ", s)
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(w, "cannot read what the tests printed:", err)
		broken++
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, len(skips))
	return failed == 0 && broken == 0 && passed > 0
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
