// Package tensorflow is the workload tensorflow: a small convolutional network is
// trained on the processor, from the start of Python to its end, as gVisor's
// performance guide does it.
//
// The data path: 1. Roles makes one command for the image tensorflow, which has /app/train.py
// (images/tensorflow); 2. package timed measures the whole run; 3. the script prints a line of
// JSON when TensorFlow is loaded, after each step and at the end; 4. Parse compares the steps
// with what was requested, checks that the loss is a number and has fallen, and makes samples and
// a series.
package tensorflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/output"
	"tare/workload/timed"
)

const (
	auto     = "auto"
	minSteps = 20
	maxSteps = 100_000
	// ends is the number of steps at the start and at the end over which the loss is averaged,
	// because that of one batch scatters.
	ends = 5
	// fallen is the largest allowed loss at the end, as a part of that at the start.
	fallen = 0.9
	// classes is how many kinds of picture there are.
	classes = 10
)

// New returns the workload.
func New() workload.Workload { return tensorflow{} }

type tensorflow struct{}

func (tensorflow) Name() string { return "tensorflow" }

func (tensorflow) About() string {
	return "TensorFlow trains a small convolutional network on the processor: thousands of files read at the start, then computing by several threads"
}

func (tensorflow) Params() []param.Param {
	return []param.Param{
		{Name: "steps", Type: param.Int, Default: "100", Min: minSteps, Max: maxSteps, Help: "training steps; the guide makes 2000"},
		{Name: "batch", Type: param.Int, Default: "128", Min: 32, Max: 4096, Help: "pictures in a step"},
		{Name: "threads", Type: param.Int, Default: auto, Min: 1, Max: 256, Words: []string{auto},
			Help: "threads that compute one operation, and operations at the same time; auto lets TensorFlow choose by the processors that it sees"},
		{Name: "caches", Type: param.Enum, Default: "warm", Words: []string{"warm", "cold"},
			Help: "cold: the host's page cache is dropped before, as the guide does it, so that Python and TensorFlow are read from the disk"},
	}
}

func (tensorflow) Responses(param.Values) []record.Response {
	return []record.Response{
		{Name: "time", Unit: record.Second, Better: record.Lower, Operation: "run", Help: "the whole run, from before Python's start to after its end"},
		{Name: "import_time", Unit: record.Second, Better: record.Lower, Help: "of it, loading TensorFlow: thousands of small files, and libraries of 900 MB"},
		{Name: "step_time", Unit: record.Second, Better: record.Lower, Operation: "step", Help: "median time of a training step, without the first, in which TensorFlow compiles the network"},
		{Name: "step_rate", Unit: record.PerSecond, Better: record.Higher, Operation: "step", Help: "training steps in a second, from the end of the first to the end of the last"},
	}
}

func (tensorflow) Roles(v param.Values) ([]workload.Role, error) {
	steps, batch := v.Int("steps"), v.Int("batch")
	cmd := []string{"python3", "-B", "/app/train.py", "--steps", strconv.Itoa(steps), "--batch", strconv.Itoa(batch)}
	if v.Str("threads") != auto {
		cmd = append(cmd, "--threads", v.Str("threads"))
	}
	return []workload.Role{{
		Name: "main", Mode: workload.Exec, Image: "tensorflow", Args: timed.Args(cmd), Until: timed.Until,
		Env: []string{
			"HOME=/tmp",              // for Keras's own files
			"PYTHONHASHSEED=0",       // the same order in every run
			"TF_CPP_MIN_LOG_LEVEL=1", // warnings, no notes
		},
		DropCaches: v.Str("caches") == "cold",
		// Two processors of 2023: three seconds to start, 0.15 ms a picture.
		Expect: 3*time.Second + time.Duration(steps)*time.Duration(batch)*150*time.Microsecond,
	}}, nil
}

// line is one line of the script. Times in seconds.
type line struct {
	Event   string  `json:"event"`
	Seconds float64 `json:"seconds"` // imported, end: since the script's begin; step: its own time
	N       int     `json:"n"`       // step: from 1
	At      float64 `json:"at"`      // step: its end, since the script's begin
	Loss    float64 `json:"loss"`    // step: mean cross entropy of its batch, in nats
	Steps   int     `json:"steps"`   // end
	Batch   int     `json:"batch"`   // end
}

// trained is a whole output of the script.
type trained struct {
	imported, end *line
	steps         []line
}

// parse reads the script's lines. It skips lines that are not JSON objects, which libraries may
// print.
func parse(text []byte) (trained, error) {
	var t trained
	for s := range strings.Lines(string(text)) {
		s = strings.TrimSpace(s)
		if !strings.HasPrefix(s, "{") {
			continue
		}
		var l line
		if err := json.Unmarshal([]byte(s), &l); err != nil {
			// Python writes NaN, which JSON does not have.
			if strings.Contains(s, "NaN") || strings.Contains(s, "Infinity") {
				return t, fmt.Errorf("tensorflow: a figure of the training is not a number: %.200s", s)
			}
			return t, fmt.Errorf("tensorflow: a line of its output is damaged: %.200q: %w", s, err)
		}
		switch l.Event {
		case "imported":
			t.imported = &l
		case "step":
			if want := len(t.steps) + 1; l.N != want || want > maxSteps {
				return t, fmt.Errorf("tensorflow: step %d is followed by step %d", want-1, l.N)
			}
			if l.Seconds < 0 || l.Loss < 0 || l.At < 0 || l.At > timed.MaxTime.Seconds() ||
				len(t.steps) > 0 && l.At < t.steps[len(t.steps)-1].At {
				return t, fmt.Errorf("tensorflow: a step's line has a negative figure, or its time is out of order: %.200q", s)
			}
			t.steps = append(t.steps, l)
		case "end":
			t.end = &l
		}
	}
	return t, nil
}

// check returns an error for a training that is not the requested one, or did not learn.
func (t trained) check(steps, batch int) error {
	switch {
	case t.imported == nil || t.imported.Seconds <= 0:
		return errors.New("tensorflow: its output does not report that TensorFlow was loaded")
	case t.end == nil:
		return fmt.Errorf("tensorflow: the output lacks the end of the training, after %d of %d steps", len(t.steps), steps)
	case t.end.Steps != steps || len(t.steps) != steps || t.end.Batch != batch:
		return fmt.Errorf("tensorflow: it trained %d steps of %d pictures and printed %d, where %d of %d were asked for", t.end.Steps, t.end.Batch, len(t.steps), steps, batch)
	}
	from, to := meanLoss(t.steps[:ends]), meanLoss(t.steps[steps-ends:])
	// A guess has the loss ln(classes).
	if to > fallen*from || to > math.Log(classes) {
		return fmt.Errorf("tensorflow: it did not learn: the loss was %.3g in the first %d steps and is %.3g in the last %d; guessing has %.3g", from, ends, to, ends, math.Log(classes))
	}
	return nil
}

func meanLoss(steps []line) float64 {
	sum := 0.0
	for _, s := range steps {
		sum += s.Loss / float64(len(steps))
	}
	return sum
}

func (tensorflow) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	said, whole, _, err := timed.Read(out)
	if err != nil {
		return rd, fmt.Errorf("tensorflow: %w", err)
	}
	t, err := parse(said)
	if err != nil {
		return rd, err
	}
	if err := t.check(v.Int("steps"), v.Int("batch")); err != nil {
		return rd, err
	}
	first, last := t.steps[0], t.steps[len(t.steps)-1]
	if last.At <= first.At {
		return rd, fmt.Errorf("tensorflow: %d steps took no time", len(t.steps))
	}
	var times []float64
	series := record.Series{Name: "step_time", Labels: record.MakeLabels("source", "tensorflow", record.LabelResponse, "step_time"), Unit: record.Second, Kind: record.Gauge}
	for _, s := range t.steps[1:] {
		times = append(times, s.Seconds)
		// The script's clock begins with its first line, some tens of milliseconds after the
		// role's start. The whole run is longer mostly by that.
		series.T = append(series.T, time.Duration(s.At*float64(time.Second)))
		series.V = append(series.V, s.Seconds)
	}
	rate := float64(len(t.steps)-1) / (last.At - first.At)
	whole.Sample(&rd)
	rd.Value("import_time", record.Second, t.imported.Seconds)
	rd.Value("step_time", record.Second, output.Median(times))
	rd.Value("step_rate", record.PerSecond, rate)
	rd.Value("first_step", record.Second, first.Seconds, "source", "tensorflow")
	rd.Series = []record.Series{series}
	return rd, nil
}
