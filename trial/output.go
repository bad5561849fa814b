package trial

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"tare/record"
	"tare/workload"
)

// maxOutput bounds what is kept of one role's stream, maxTail what a failure
// shows of it.
const (
	maxOutput = 64 << 20
	maxTail   = 4 << 10
)

// output is what one role printed on one stream. Past most the rest is
// dropped and said so: a flooding program must not take the harness with it.
type output struct {
	role, stream string
	began        time.Duration // when the role began, from the trial's start
	most         int           // bytes that are kept

	mu      sync.Mutex
	buf     bytes.Buffer
	dropped int
	ready   string        // the line prefix that is waited for
	scanned int           // bytes of buf in which it is not
	seen    chan struct{} // closed when it came
}

func newOutput(role, stream, ready string) *output {
	o := &output{role: role, stream: stream, most: maxOutput, ready: ready, seen: make(chan struct{})}
	if ready == "" {
		close(o.seen)
	}
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	keep := min(len(p), o.most-o.buf.Len())
	o.buf.Write(p[:keep])
	o.dropped += len(p) - keep
	if o.ready != "" {
		o.scan()
	}
	return len(p), nil
}

// scan looks for the ready line in the complete lines that are new.
func (o *output) scan() {
	for {
		rest := o.buf.Bytes()[o.scanned:]
		line, _, found := bytes.Cut(rest, []byte{'\n'})
		if !found {
			return
		}
		o.scanned += len(line) + 1
		if bytes.HasPrefix(line, []byte(o.ready)) {
			o.ready = ""
			close(o.seen)
			return
		}
	}
}

func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.buf.Bytes())
}

// tail is the end of the stream, from the start of a line where that is near.
func (o *output) tail() string { return tail(o.bytes()) }

func tail(b []byte) string {
	if len(b) > maxTail {
		b = b[len(b)-maxTail:]
		if i := bytes.IndexByte(b, '\n'); i >= 0 && i < 200 {
			b = b[i+1:]
		}
	}
	return strings.ToValidUTF8(string(b), "�")
}

func (o *output) reader() io.Reader { return bytes.NewReader(o.bytes()) }

// newOutputs makes the streams of a role; what they hold becomes evidence.
func (t *trial) newOutputs(role, ready string) (stdout, stderr *output) {
	stdout, stderr = newOutput(role, "stdout", ready), newOutput(role, "stderr", "")
	stdout.began, stderr.began = t.elapsed(), t.elapsed()
	t.outputs = append(t.outputs, stdout, stderr)
	return stdout, stderr
}

// keepOutputs moves what was printed into the evidence. The turn, "" for a trial's only one, ends
// the names of the files.
func (t *trial) keepOutputs(turn string) {
	for _, o := range t.outputs {
		data := o.bytes()
		if len(data) == 0 {
			continue
		}
		t.evidence.Raw = append(t.evidence.Raw, record.Raw{Name: o.role + "." + o.stream + turn, Data: data})
		if o.dropped > 0 {
			t.rec.Warnings = append(t.rec.Warnings, record.Warning{
				Code: "output-cut", Text: "the " + o.stream + " of " + o.role + " was cut at 64 MiB",
			})
		}
	}
	t.outputs = nil
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return line
}

// parse hands each role's output to the workload. Without a whole run the
// output is kept but not parsed: half an answer is none.
func (t *trial) parse(whole bool) error {
	if !whole {
		return nil
	}
	var errs []error
	var victim record.Reading
	copies := make(readings, max(1, t.res.Copies))
	for _, o := range t.outputs {
		if o.stream != "stdout" {
			continue
		}
		r, err := t.read(o)
		if err != nil {
			f := &failure{kind: "garbage", role: o.role, tail: o.tail(),
				err: fmt.Errorf("the output of %s cannot be read: %w", o.role, err)}
			if u := (*workload.Unfit)(nil); errors.As(err, &u) {
				f.kind, f.tail = record.Unfit, tail([]byte(u.Printed))
				ends := "is empty"
				if last := lastLine(f.tail); last != "" {
					ends = "ends with" + last
				}
				f.err = fmt.Errorf("%w; its output %s", f.err, ends)
			}
			if u := (*workload.Refused)(nil); errors.As(err, &u) {
				f.kind, f.err = record.Refused, u
			}
			errs = append(errs, f)
			continue
		}
		for _, sr := range r.Series {
			// A role counts from its own start, a trial's series from the trial's.
			for i := range sr.T {
				sr.T[i] += o.began
			}
		}
		if record.IsVictim(o.role) {
			victim.Add(r)
		} else {
			copies.add(t.copyOf(o.role), r)
		}
		t.evidence.Series = append(t.evidence.Series, r.Series...)
		t.steady(o, r.Series)
	}
	all := copies.together(t.load.Responses(t.res.Params), t.res.Copies > 0)
	all.Add(victim)
	t.rec.Samples = append(t.rec.Samples, all.Samples...)
	t.rec.Histograms = append(t.rec.Histograms, all.Histograms...)
	t.rec.Warnings = append(t.rec.Warnings, all.Warnings...)
	if len(errs) == 0 {
		errs = append(errs, t.missing())
	}
	return errors.Join(errs...)
}

// missing is an error if a response that the study compares was not returned:
// a trial without it would be a noAnswer gap.
func (t *trial) missing() error {
	for _, name := range t.res.Workload.Responses {
		if _, ok := t.rec.Sample(name); !ok {
			return &failure{kind: "garbage", role: t.lastRole(name),
				err: fmt.Errorf("the output has no %s", name)}
		}
	}
	return nil
}
