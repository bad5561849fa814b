// Command testsummary reads `go test -json` and prints what a person wants to
// know: each package's result, the output of what failed, what was skipped and
// why, and one closing line of counts.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is one line of `go test -json` (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
}

func main() {
	if !summarise(os.Stdin, os.Stdout) {
		os.Exit(1)
	}
}

func summarise(r io.Reader, w io.Writer) bool {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 64<<20)
	output := map[string][]string{} // of each test and package
	var skips []string
	passed, failed, brokenPackages := 0, 0, 0
	for in.Scan() {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			fmt.Fprintln(w, in.Text()) // a build error before any test
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			output[key] = append(output[key], e.Output)
		case "pass":
			if e.Test != "" {
				passed++
			} else {
				fmt.Fprintf(w, "ok    %s (%.1f s)\n", e.Package, e.Elapsed)
			}
			delete(output, key)
		case "skip":
			if e.Test != "" {
				skips = append(skips, fmt.Sprintf("%s %s: %s", e.Package, e.Test, reason(output[key])))
			}
			delete(output, key)
		case "fail":
			if e.Test != "" {
				failed++
			} else {
				brokenPackages++
			}
			fmt.Fprintf(w, "FAIL  %s\n%s", key, strings.Join(output[key], ""))
		case "build-fail":
			brokenPackages++
			fmt.Fprintf(w, "FAIL  %s\n%s", key, strings.Join(output[key], ""))
		}
	}
	for _, s := range skips {
		fmt.Fprintln(w, "skip ", s)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, len(skips))
	return in.Err() == nil && failed == 0 && brokenPackages == 0 && passed > 0
}

// reason is what the test said when it skipped itself.
func reason(lines []string) string {
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "===") && !strings.HasPrefix(l, "---") {
			if _, after, ok := strings.Cut(l, ".go:"); ok {
				_, after, _ = strings.Cut(after, ": ")
				return after
			}
			return l
		}
	}
	return "no reason given"
}
