package main

import (
	"context"
	"sync"
	"time"

	"tare/report/words"
)

// trySoon is how long a sandbox is tried without a word: a runtime needs a second, a
// machine that boots with KVM two.
const trySoon = 3 * time.Second

// tries tells of a sandbox that is tried for long, since the host is held meanwhile, and
// keeps the name of the one that an interrupt has cut short.
type tries struct {
	ctx context.Context      // of the checks
	say func(string, ...any) // nil: prints nothing

	mu  sync.Mutex
	now string // what is being tried; "" for nothing
}

// newTries tells on standard error, and nothing beside JSON.
func (a *app) newTries(ctx context.Context, asJSON bool) *tries {
	t := &tries{ctx: ctx}
	if !asJSON {
		t.say = a.say
	}
	return t
}

// begin notes that something is being tried for so long at most, 0 if that is not known.
// What it returns is called at the end.
func (t *tries) begin(what string, within time.Duration) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil { // every further trial ends at once, and is not what took long
		return func() {}
	}
	t.now = what
	late := time.AfterFunc(trySoon, func() { t.tell(what, within) })
	return func() {
		late.Stop()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.ctx.Err() == nil {
			t.now = ""
		}
	}
}

func (t *tries) tell(what string, within time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now != what || t.ctx.Err() != nil || t.say == nil {
		return
	}
	most := ""
	if within > 0 {
		most = ", at most " + words.Duration(within)
	}
	t.say("trying %s%s", what, most)
}

// interrupted tells Ctrl-C before the first trial: errors of the checks are then only
// that they were cut short.
func (t *tries) interrupted(err error) error {
	if t.ctx.Err() == nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	while := ""
	if t.now != "" {
		while = " while trying " + t.now + ","
	}
	return coded(exitInterrupted, "interrupted%s before anything was measured; the same command starts again", while)
}
