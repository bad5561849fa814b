package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"tare/plan"
	"tare/record"
	"tare/site/claim"
)

// Questions.
const (
	opPreview = "preview" // with a study; answers: trying, tried, opened
	opOpen    = "open"    // with a study; answers: trying, tried, opened
	opTrials  = "trials"  // answers: made, one for each of nexts
	opLead    = "lead"    // with the trials that are done: makes the others before they are asked for
	opGoOn    = "go-on"   // likewise, and goes on when nobody asks any more
	opClose   = "close"   // closes what opOpen has opened
	opStop    = "stop"    // ends the question under way; has no answer of its own
	opAlive   = "alive"   // nothing: the asker is there
)

type question struct {
	Op    string      `json:"op"`
	Study *studyBody  `json:"study,omitempty"`
	Wait  bool        `json:"wait,omitempty"`
	Nexts []plan.Next `json:"nexts,omitempty"`

	Trials []record.Trial `json:"trials,omitempty"` // that are done
}

// studyBody is all that is needed to read a study again.
type studyBody struct {
	Source    []byte   `json:"source"`
	Overrides []string `json:"overrides,omitempty"`
	Collect   []string `json:"collect,omitempty"` // names of collectors, in place of the study's
}

// answer has one field that is set. None is: the machine is there.
type answer struct {
	Facts  *Facts       `json:"facts,omitempty"` // the first one
	Say    string       `json:"say,omitempty"`   // to the user
	Trying *tryingBody  `json:"trying,omitempty"`
	Tried  bool         `json:"tried,omitempty"`
	Opened *opened      `json:"opened,omitempty"`
	Made   *record.Made `json:"made,omitempty"`
	Done   *doneBody    `json:"done,omitempty"` // ends the answers to a question
}

// Facts is what a machine says about itself.
type Facts struct {
	Root bool   `json:"root"`
	Home string `json:"home"` // where relative paths begin there
	KVM  bool   `json:"kvm"`  // a virtual machine has started with KVM since the machine did
}

type tryingBody struct {
	Kind   string `json:"kind"`
	Within int64  `json:"within_ns"`
}

type opened struct {
	Nodes []record.Node `json:"nodes,omitempty"`
	Skips []record.Skip `json:"skips,omitempty"`

	AtOnce int `json:"at_once,omitempty"` // site.Preview has it
}

// Kinds of errors.
const (
	kindHeld        = "held"
	kindUnable      = "unable"
	kindInterrupted = "interrupted"
	kindOther       = "other"
)

type doneBody struct {
	Kind   string       `json:"kind,omitempty"` // "": no error
	Error  string       `json:"error,omitempty"`
	Holder claim.Holder `json:"holder,omitzero"`
}

// Bounds of a line, in bytes: a study with its files; a trial with its evidence.
const (
	maxQuestion = 64 << 20
	maxAnswer   = 256 << 20
)

// beat is how often each side says that it is there, and silence how long the other one may say
// nothing. endWithin is how long an end may take that nobody waits for. Both together are a
// minute: no longer does anything run on a machine that nobody asks.
const (
	beat      = 10 * time.Second
	silence   = 35 * time.Second
	endWithin = 25 * time.Second
)

// link is the asking side of a connection.
type link struct {
	out   io.Writer
	mu    sync.Mutex // of out
	in    chan answer
	facts chan Facts
	gone  chan struct{} // closed by fail

	once sync.Once
	err  error
	end  func() // of the stream, after fail
}

// send writes a message. A stream that takes nothing is ended by the other direction's silence.
func (l *link) send(q question) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return write(l.out, q, maxQuestion)
}

// fail ends the link. It keeps the first reason.
func (l *link) fail(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.gone)
		l.end()
	})
}

// next returns the next answer. After ctx has ended the machine has endWithin for it.
func (l *link) next(ctx context.Context) (answer, error) {
	stopped := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case a := <-l.in:
			return a, nil
		case <-l.gone:
			select {
			case a := <-l.in:
				return a, nil
			default:
				return answer{}, l.err
			}
		case <-stopped:
			stopped, late = nil, time.After(endWithin)
		case <-late:
			l.fail(fmt.Errorf("it did not stop within %s", endWithin))
		}
	}
}

// read reads answers until the stream ends. heard gets what is for the user.
func (l *link) read(r io.Reader, heard func(string)) {
	known := false
	l.fail(messages(r, maxAnswer, silence, func(a answer) error {
		switch {
		case a.Say != "":
			heard(a.Say)
		case a.Facts != nil:
			if known {
				return impossible("its facts twice")
			}
			known = true
			if err := a.Facts.check(); err != nil {
				return err
			}
			l.facts <- *a.Facts // which has room for them
		case a.Trying != nil || a.Tried || a.Opened != nil || a.Made != nil || a.Done != nil:
			select {
			case l.in <- a:
			case <-l.gone:
			}
		}
		return nil
	}))
}

// beats says that this side is there, until the link ends.
func (l *link) beats() {
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-l.gone:
			return
		case <-t.C:
			if err := l.send(question{Op: opAlive}); err != nil {
				l.fail(err)
			}
		}
	}
}

var errClosed = errors.New("it is closed")

var errSilent = fmt.Errorf("it sent nothing for %s", silence)

// messages reads a message a line until the stream ends, take returns an error, or nothing comes
// for as long as patience: it returns why. Then r may still be read from.
func messages[M any](r io.Reader, most int, patience time.Duration, take func(M) error) error {
	ended := make(chan error, 2)
	late := time.AfterFunc(patience, func() { ended <- errSilent })
	go func() {
		defer late.Stop()
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 64<<10), most)
		for lines.Scan() {
			late.Stop() // what is done with it may take its time
			m, err := decode[M](lines.Bytes())
			if err == nil {
				err = take(m)
			}
			if err != nil {
				ended <- err
				return
			}
			late.Reset(patience)
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = impossible("a line of more than %d bytes", most)
		}
		if err == nil {
			err = io.EOF
		}
		ended <- err
	}()
	return <-ended
}

func decode[M any](line []byte) (m M, err error) {
	if err := json.Unmarshal(line, &m); err != nil {
		return m, impossible("%w", err)
	}
	return m, nil
}

var errTooLarge = errors.New("the message is too large")

// write writes a message as one line.
func write(w io.Writer, m any, most int) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(m); err != nil {
		return fmt.Errorf("%w: %w", errTooLarge, err) // not JSON either way
	}
	if b.Len() > most {
		return errTooLarge
	}
	_, err := w.Write(b.Bytes())
	return err
}
