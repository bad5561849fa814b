package agent

import (
	"context"
	"encoding/json"
	"fmt"
)

// Operation answers one kind of call: body is the caller's JSON, the result is
// turned into JSON. It runs on the agent's reading goroutine, so it is quick, or
// the only thing that is to happen (setting a guest up).
type Operation func(body json.RawMessage) (any, error)

// Operations are an agent's, by name.
type Operations map[string]Operation

// Call asks the agent for an operation and waits for its answer, which is put
// into result unless that is nil. An error is the operation's own, the stream's,
// or ctx's.
func (c *Client) Call(ctx context.Context, op string, body, result any) error {
	answer, forget, err := c.ask(op, body)
	if err != nil {
		return err
	}
	defer forget()
	select {
	case r := <-answer:
		return r.into(op, result)
	case <-c.gone:
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Errorf("while calling %s: %w", op, c.err)
	case <-ctx.Done():
		return fmt.Errorf("the agent in the sandbox did not answer %s: %w", op, context.Cause(ctx))
	}
}

// ask sends a call; the answer comes on the channel, once, unless forget is
// called first.
func (c *Client) ask(op string, body any) (answer <-chan returnBody, forget func(), err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, nil, fmt.Errorf("agent: %w", err)
	}
	ch := make(chan returnBody, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.asks[id] = ch
	c.mu.Unlock()
	forget = func() {
		c.mu.Lock()
		delete(c.asks, id)
		c.mu.Unlock()
	}
	if err := c.out.json(frameCall, id, callBody{Op: op, Body: raw}); err != nil {
		forget()
		return nil, nil, fmt.Errorf("cannot ask the agent in the sandbox for %s: %w", op, err)
	}
	return ch, forget, nil
}

// returned hands an answer to who asked, if that one still waits.
func (c *Client) returned(f frame) error {
	var r returnBody
	if err := f.decode(&r); err != nil {
		return err
	}
	c.mu.Lock()
	ch := c.asks[f.id]
	delete(c.asks, f.id)
	c.mu.Unlock()
	if ch != nil {
		ch <- r
	}
	return nil
}

func (r returnBody) into(op string, result any) error {
	if r.Error != "" {
		return fmt.Errorf("%s in the sandbox: %s", op, r.Error)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(r.Body, result); err != nil {
		return fmt.Errorf("%w: the answer to %s: %w", errFrame, op, err)
	}
	return nil
}

// call does an operation and sends its result.
func (s *server) call(id uint32, b callBody) {
	var r returnBody
	op := s.ops[b.Op]
	if op == nil {
		r.Error = fmt.Sprintf("this agent has no operation %q", b.Op)
	} else if got, err := op(b.Body); err != nil {
		r.Error = err.Error()
	} else if r.Body, err = json.Marshal(got); err != nil {
		r.Error = err.Error()
	}
	_ = s.out.json(frameReturn, id, r) // a broken channel ends the loop too
}
