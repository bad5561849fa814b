package hackbench

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"tare/workload/output"
)

const maxSeconds = 1e6

// run is hackbench's output of one run.
type run struct {
	mode          string // process or thread
	groups, tasks int
	loops         int
	size          int64
	seconds       float64
}

func (r run) String() string {
	return fmt.Sprintf("%d groups with %d tasks (%s) and %d messages of %d bytes", r.groups, r.tasks, r.mode, r.loops, r.size)
}

// parse reads the output of any number of runs:
//
//	Running in process mode with 10 groups using 40 file descriptors each (== 400 tasks)
//	Each sender will pass 100 messages of 100 bytes
//	Time: 0.398
//
// Other lines are error messages; an error quotes the first.
func parse(in io.Reader) ([]run, error) {
	b, err := output.Read(in)
	if err != nil {
		return nil, fmt.Errorf("hackbench: %w", err)
	}
	head := regexp.MustCompile(`^Running in (process|thread)(?:ed)? mode with ([0-9]{1,6}) groups using [0-9]{1,6} file descriptors each \(== ([0-9]{1,9}) tasks\)$`)
	body := regexp.MustCompile(`^Each sender will pass ([0-9]{1,9}) messages of ([0-9]{1,9}) bytes$`)
	var runs []run
	var cur run
	var said string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		text, timed := strings.CutPrefix(line, "Time: ")
		switch {
		case timed:
			if cur.mode == "" || cur.loops == 0 {
				return nil, errors.New("hackbench: the output has a time without the lines that describe its run")
			}
			if cur.seconds, err = strconv.ParseFloat(text, 64); err != nil || !(cur.seconds >= 0 && cur.seconds <= maxSeconds) {
				return nil, fmt.Errorf("hackbench: %q is not a time in seconds", text)
			}
			runs, cur = append(runs, cur), run{}
		case head.MatchString(line):
			m := head.FindStringSubmatch(line)
			cur = run{mode: m[1], groups: number(m[2]), tasks: number(m[3])}
		case body.MatchString(line):
			m := body.FindStringSubmatch(line)
			cur.loops, cur.size = number(m[1]), int64(number(m[2]))
		case line != "" && said == "":
			said = line
		}
	}
	switch {
	case len(runs) == 0 && said != "":
		return nil, fmt.Errorf("hackbench: the output has no time; it says: %.200s", strings.ToValidUTF8(said, "?"))
	case len(runs) == 0:
		return nil, errors.New("hackbench: the output has no time")
	case cur.mode != "":
		return nil, errors.New("hackbench: the output ends within a run")
	}
	return runs, nil
}

// number converts digits whose number a pattern has bounded.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
