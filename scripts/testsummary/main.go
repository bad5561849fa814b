// Command testsummary reads `go test -json` and prints what a person wants to
// know: each package's result, the output of what failed, what was skipped and
// why, and one closing line of counts.
//
//  1. read turns the events into results.
//  2. A package whose tests failed runs once more, alone: a busy host fails a
//     test now and then. Results.settle holds the second run against the first: what passes
//     then is flaky, said to be, and bounded in number; what does not has failed.
//  3. main prints both and exits.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() {
	status := flag.Int("status", 0, "the exit `code` of the go command whose output is read")
	flag.Parse()
	if !summarise(os.Stdin, os.Stdout, *status, again(".")) {
		os.Exit(1)
	}
}

// maxAgain is how many tests may fail and be tried again. More failures are not noise.
const maxAgain = 20

// maxFlaky is how many of them may pass then. More is a fault of timing in the tests or
// in what they test, and no busy host.
const maxFlaky = 5

// summarise tells whether everything that ran passed, and that something ran.
// A code of the go command that no failed test or package explains is a failure.
func summarise(r io.Reader, w io.Writer, status int, again func(packages []string) (io.ReadCloser, error)) bool {
	res := read(r, w)
	explained := status == 0 || len(res.failures) > 0 || res.broken > 0
	if pkgs := res.doubtful(); len(pkgs) > 0 && len(res.failures) <= maxAgain {
		fmt.Fprintln(w, "again, alone:", strings.Join(pkgs, " "))
		if second, err := again(pkgs); err != nil {
			fmt.Fprintln(w, "cannot run tests again:", err)
		} else {
			res.settle(read(second, w), pkgs)
			_ = second.Close() // the go command's code: what it says was read
		}
	}
	for _, text := range res.broke {
		fmt.Fprint(w, text)
	}
	for _, f := range res.failures {
		fmt.Fprintf(w, "FAIL  %s %s%s\n%s", f.pkg, f.test, f.how, f.output)
	}
	for _, s := range res.skips {
		fmt.Fprintln(w, "skip ", s)
	}
	for _, f := range res.flaky {
		fmt.Fprintf(w, "flaky %s %s\n%s", f.pkg, f.test, f.output)
	}
	if !explained {
		fmt.Fprintf(w, "the go command ended with code %d, and no test says why\n", status)
	}
	flaky := ""
	switch n := len(res.flaky); {
	case n > maxFlaky:
		flaky = fmt.Sprintf(" (%d flaky, more than the %d that are let pass)", n, maxFlaky)
	case n > 0:
		flaky = fmt.Sprintf(" (%d flaky)", n)
	}
	fmt.Fprintf(w, "%d passed%s, %d failed, %d skipped\n", res.passed+len(res.flaky), flaky, len(res.failures), len(res.skips))
	return explained && len(res.failures) == 0 && len(res.flaky) <= maxFlaky && res.broken == 0 && res.passed+len(res.flaky) > 0
}

// again runs the tests of packages one after another, with nothing else running.
func again(dir string) func([]string) (io.ReadCloser, error) {
	return func(packages []string) (io.ReadCloser, error) {
		cmd := exec.Command("go", append([]string{"test", "-p", "1", "-count", "1", "-timeout", "20m", "-json"}, packages...)...) //nolint:gosec // G204: packages are what the go command named
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		return running{out, cmd}, cmd.Start()
	}
}

// running is the output of a command; closing it waits for the end.
type running struct {
	io.Reader
	cmd *exec.Cmd
}

func (r running) Close() error { return r.cmd.Wait() }
