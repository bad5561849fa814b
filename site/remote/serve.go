package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"tare/record"
	"tare/site"
	"tare/site/claim"
	"tare/study"
)

// Served is what Serve offers.
type Served struct {
	Facts Facts
	Site  func(say io.Writer) site.Site // what it tells the user goes there, a Write a message
	Parse func(source []byte, overrides []string) (*study.Study, study.Catalogue, error)
}

// Serve answers a Machine's questions until r ends, nothing arrives for silence, or ctx is done.
// Then it ends what is running and removes what it opened, except for a site.Lasting. It returns
// after endWithin in any case.
func Serve(ctx context.Context, r io.Reader, w io.Writer, s Served) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v := &server{out: w, parse: s.Parse}
	v.site = s.Site(sayer{v})
	if err := v.send(answer{Facts: &s.Facts}); err != nil {
		return err
	}
	jobs := make(chan job)
	go func() {
		err := messages(r, maxQuestion, silence, func(q question) error { return v.take(ctx, q, jobs) })
		cancel(fmt.Errorf("%w: %w", site.ErrLeft, err))
	}()
	go v.beats(ctx)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		v.work(ctx, jobs)
	}()
	<-ctx.Done()
	select {
	case <-closed:
	case <-time.After(endWithin):
		return fmt.Errorf("the session did not end within %s; `tare clean` removes what it left", endWithin)
	}
	if err := context.Cause(ctx); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

type server struct {
	site  site.Site
	parse func([]byte, []string) (*study.Study, study.Catalogue, error)

	mu  sync.Mutex // of out
	out io.Writer

	stop    func()       // ends the question under way; of the reading goroutine
	session site.Session // nil: none is open; of the working goroutine
}

// job is a question and how long it may take.
type job struct {
	question
	ctx context.Context //nolint:containedctx // it goes from one goroutine to another
}

// take gives a question to the working goroutine.
func (v *server) take(ctx context.Context, q question, jobs chan<- job) error {
	switch q.Op {
	case opAlive:
	case opStop:
		if v.stop != nil {
			v.stop()
		}
	default:
		j := job{question: q}
		j.ctx, v.stop = context.WithCancel(ctx)
		select {
		case jobs <- j:
		case <-ctx.Done():
		}
	}
	return nil
}

func (v *server) work(ctx context.Context, jobs <-chan job) {
	defer v.leave()
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-jobs:
			err := v.answer(j.ctx, j.question)
			if ctx.Err() != nil { // nobody asks any more
				return
			}
			_ = v.send(answer{Done: done(err)}) // the reader meets the end of the stream
		}
	}
}

func (v *server) answer(ctx context.Context, q question) error {
	switch q.Op {
	case opPreview, opOpen:
		return v.open(ctx, q)
	case opTrials:
		if v.session == nil {
			return errors.New("no study is open")
		}
		for _, m := range v.session.Trials(ctx, q.Nexts) {
			if err := v.sendTrial(m); err != nil {
				return err
			}
		}
	case opLead, opGoOn:
		s, is := v.session.(site.Lasting)
		switch {
		case !is:
			return errors.New("this machine runs trials only while tare asks for them")
		case q.Op == opLead:
			return s.Lead(q.Trials)
		}
		return s.GoOn(q.Trials)
	case opClose:
		v.close()
	default:
		return fmt.Errorf("unknown question %.100q", q.Op)
	}
	return nil
}

func (v *server) open(ctx context.Context, q question) error {
	if q.Study == nil || v.session != nil {
		return errors.New("no study was given, or one is already open")
	}
	st, cat, err := v.parse(q.Study.Source, q.Study.Overrides)
	if err != nil {
		return err
	}
	st.Collect.Names = q.Study.Collect
	r := site.Request{Study: st, Catalogue: cat, Wait: q.Wait, Trying: func(kind string, within time.Duration) func() {
		_ = v.send(answer{Trying: &tryingBody{kind, int64(within)}}) // the reader meets the end of the stream
		return func() { _ = v.send(answer{Tried: true}) }
	}}
	var o opened
	if q.Op == opPreview {
		p, err := v.site.Preview(ctx, r)
		if err != nil {
			return err
		}
		o.Skips = p.Skips
	} else {
		if v.session, err = v.site.Open(ctx, r); err != nil {
			v.session = nil
			return err
		}
		p := v.session.Preview()
		o.Skips, o.AtOnce, o.Nodes = p.Skips, p.AtOnce, v.session.Nodes()
	}
	return v.send(answer{Opened: &o})
}

// sendTrial sends a trial; of one that is too large, why.
func (v *server) sendTrial(m record.Made) error {
	err := v.send(answer{Made: &m})
	if !errors.Is(err, errTooLarge) {
		return err
	}
	t := *m.Trial
	t.Samples, t.Histograms, t.Status = nil, nil, record.Failed
	t.Failure = &record.Failure{Phase: "stopping", Kind: "garbage", Reason: fmt.Sprintf("the results cannot be sent: %v", err)}
	return v.send(answer{Made: &record.Made{Trial: &t}})
}

// leave ends the server's part in a session whose asker is gone.
func (v *server) leave() {
	if s, is := v.session.(site.Lasting); is {
		s.Leave()
		return
	}
	v.close()
}

func (v *server) close() {
	if v.session != nil {
		v.session.Close()
		v.session = nil
	}
}

func (v *server) send(a answer) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return write(v.out, a, maxAnswer)
}

// beats says that this side is there.
func (v *server) beats(ctx context.Context) {
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = v.send(answer{}) // the reader meets the end of the stream
		}
	}
}

// done makes an answer of an error.
func done(err error) *doneBody {
	var unable *site.UnableError
	var held *claim.HeldError
	switch {
	case err == nil:
		return &doneBody{}
	case errors.As(err, &held):
		return &doneBody{Kind: kindHeld, Holder: held.Holder}
	case errors.Is(err, site.ErrInterrupted), errors.Is(err, context.Canceled):
		return &doneBody{Kind: kindInterrupted}
	case errors.As(err, &unable):
		return &doneBody{Kind: kindUnable, Error: err.Error()}
	}
	return &doneBody{Kind: kindOther, Error: err.Error()}
}

// sayer sends what is written to it to the user.
type sayer struct{ v *server }

func (s sayer) Write(p []byte) (int, error) {
	if t := string(bytes.TrimSpace(bytes.TrimPrefix(p, []byte("tare: ")))); t != "" {
		_ = s.v.send(answer{Say: t}) // the reader meets the end of the stream
	}
	return len(p), nil
}
