package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Operation answers one kind of call. body is the caller's JSON; the result is encoded as
// JSON. It runs on the agent's reading goroutine, so it must be quick, unless nothing else
// can happen meanwhile (the set-up of a guest).
type Operation func(body json.RawMessage) (any, error)

// Operations are the operations of an agent, by name.
type Operations map[string]Operation

// Operations that every agent has.
const (
	opTime   = "time"   // no body; answer: timeBody
	opSample = "sample" // body: sampleAsk; answer: samplesBody, later: the agent answers other calls meanwhile
)

// answer receives the answer to a call, and when it came, on the client's reading
// goroutine.
type answer func(returnBody, time.Time)

// Call asks the agent for an operation, waits for the answer, and decodes it into result
// unless result is nil. An error comes from the operation, the stream or ctx.
func (c *Client) Call(ctx context.Context, op string, body, result any) error {
	_, err := c.call(ctx, op, body, result)
	return err
}

// call is Call, and also returns when the answer came.
func (c *Client) call(ctx context.Context, op string, body, result any) (time.Time, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return time.Time{}, fmt.Errorf("agent: %w", err)
	}
	type reply struct {
		r  returnBody
		at time.Time
	}
	replies := make(chan reply, 1)
	id := c.expect(func(r returnBody, at time.Time) { replies <- reply{r, at} })
	defer c.forgetCall(id)
	if err := c.send(ctx, frameCall, id, callBody{Op: op, Body: raw}); err != nil {
		return time.Time{}, fmt.Errorf("cannot ask the agent in the %s for %s: %w", c.place, op, err)
	}
	select {
	case got := <-replies:
		return got.at, got.r.into(c.place, op, result)
	case <-c.gone:
		return time.Time{}, fmt.Errorf("while calling %s: %w", op, c.Err())
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("the agent in the %s did not answer %s: %w", c.place, op, context.Cause(ctx))
	}
}

// Answer is what Ask got: the operation's result as JSON, or an error. The times are by this
// host's clock.
type Answer struct {
	Body      json.RawMessage
	Err       error
	Asked, At time.Time
}

// Ask asks the agent for an operation and returns at once. took gets the answer, on the
// client's reading goroutine; it must be quick. Ask returns false if it could not ask, because
// the agent reads slowly. If the stream ends first (see Err), took is not called.
func (c *Client) Ask(op string, body any, took func(Answer)) bool {
	asked := time.Now()
	return c.ask(op, body, func(r returnBody, at time.Time) {
		a := Answer{Asked: asked, At: at}
		a.Err = r.into(c.place, op, &a.Body)
		took(a)
	})
}

func (c *Client) ask(op string, body any, f answer) bool {
	raw, err := json.Marshal(body)
	if err != nil {
		return false
	}
	id := c.expect(f)
	if !c.trySend(frameCall, id, callBody{Op: op, Body: raw}) {
		c.forgetCall(id)
		return false
	}
	return true
}

// expect returns the number of a new call. f gets its answer, once.
func (c *Client) expect(f answer) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	c.asks[c.next] = f
	return c.next
}

func (c *Client) forgetCall(id uint32) {
	c.mu.Lock()
	delete(c.asks, id)
	c.mu.Unlock()
}

// returned passes an answer to its caller, if the caller still waits.
func (c *Client) returned(f frame) error {
	at := time.Now()
	var r returnBody
	if err := f.decode(&r); err != nil {
		return err
	}
	c.mu.Lock()
	take := c.asks[f.id]
	delete(c.asks, f.id)
	c.mu.Unlock()
	if take != nil {
		take(r, at)
	}
	return nil
}

func (r returnBody) into(place, op string, result any) error {
	if r.Error != "" {
		return fmt.Errorf("%s in the %s: %s", op, place, text(r.Error))
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(r.Body, result); err != nil {
		return fmt.Errorf("%w: the answer to %s: %w", errFrame, op, err)
	}
	return nil
}

// call runs an operation and sends its result.
func (s *server) call(id uint32, b callBody) {
	if b.Op == opSample {
		s.samples.ask(id, b.Body)
		return
	}
	op := s.ops[b.Op]
	if op == nil {
		s.answer(id, nil, fmt.Errorf("this agent has no operation %q", text(b.Op)))
		return
	}
	got, err := op(b.Body)
	s.answer(id, got, err)
}

// answer sends the result of a call.
func (s *server) answer(id uint32, result any, err error) {
	var r returnBody
	if err == nil {
		r.Body, err = json.Marshal(result)
	}
	if err != nil {
		r = returnBody{Error: err.Error()}
	}
	if s.out.say(frameReturn, id, r) != nil {
		// The caller must get an answer.
		s.say(frameReturn, id, returnBody{Error: "the answer is too long for a frame"})
	}
}
