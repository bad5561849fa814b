package main

import (
	"fmt"
	"strings"
	"time"

	"tare/record"
	"tare/report/terminal"
	"tare/report/words"
	"tare/run"
	"tare/study"
)

// progress tells how far a study is: one line that is rewritten on a terminal,
// a plain line a trial elsewhere, JSON lines on request.
type progress struct {
	out      *terminal.Writer
	json     bool
	logs     *logs // JSON lines go there; nil: json says what is printed
	terminal bool
	done     int
	failed   int
	atOnce   int // trials that are made at the same time
	expected func(record.Cell) time.Duration
	pace     *pace // of a rehearsal: its trials do not take what they say; nil: they do
	searches []search
	pass     int // the last one after which progress told of the searches
}

func newProgress(out *terminal.Writer, asJSON bool, done int, expected func(record.Cell) time.Duration) *progress {
	p := &progress{out: out, json: asJSON, done: done, expected: expected}
	_, p.terminal = out.Terminal()
	return p
}

func (p *progress) observe(ev run.Event) {
	if ev.Kind == run.TrialEnds {
		p.done++
		if ev.Trial.Status != record.OK {
			p.failed++
		}
		p.pace.count()
	}
	if p.json || p.logs != nil {
		p.line(ev)
		return
	}
	if !p.terminal && ev.Kind == run.TrialStarts { // nothing is said, and what is left takes long to add up over thousands of cells
		return
	}
	r := ev.Plan.Remaining(p.expected).Across(p.atOnce)
	left := p.pace.left(r) + " left"
	if p.pace == nil {
		left += words.Past(r)
	}
	switch {
	case p.terminal && ev.Kind == run.TrialStarts:
		text := fmt.Sprintf("%s%d done, %s: %s", p.pace.mark(), p.done, left, short(ev.Next.Cell))
		if ev.Next.Again {
			text += " (again: the machine changed around this block)"
		}
		p.out.Rewrite(text)
	case p.terminal && ev.Trial != nil && ev.Trial.Failure != nil:
		p.out.Rewrite("")
		p.say("failed: %s: %s", short(ev.Next.Cell), ev.Trial.Failure.Reason)
	case !p.terminal && ev.Kind == run.TrialEnds:
		status := string(ev.Trial.Status)
		if ev.Trial.Failure != nil {
			status += ": " + ev.Trial.Failure.Reason
		}
		again := ""
		if ev.Next.Again {
			again = ", again because the machine changed"
		}
		p.say("trial %d, block %d%s, %s: %s (%s; %s)",
			ev.Trial.Seq, ev.Trial.Block, again, short(ev.Next.Cell), status, p.pace.took(ev.Trial), left)
	}
	if ev.Kind == run.TrialEnds && r.Pass != p.pass {
		p.pass = r.Pass
		p.found(ev.Plan, r.Pass-1)
	}
}

// say prints something on one line, even if a tool's text has several.
func (p *progress) say(format string, args ...any) {
	fmt.Fprintln(p.out, terminal.Message(terminal.Line(fmt.Sprintf(format, args...))))
}

// finish ends the line that was being rewritten.
func (p *progress) finish() {
	if p.terminal && p.logs == nil {
		p.out.Rewrite("")
	}
}

func (p *progress) line(ev run.Event) {
	v := map[string]any{"event": ev.Kind, "cell": ev.Next.Cell.Key(), "block": ev.Next.Block, "done": p.done}
	if p.pace != nil {
		v["modelled"] = true
	}
	if ev.Next.Sentinel {
		v["sentinel"] = true
	}
	if ev.Next.Counting {
		v["counting"] = true
	}
	if ev.Next.Again {
		v["again"] = true
	}
	if ev.Trial != nil {
		v["trial"] = ev.Trial.Seq
		v["status"] = ev.Trial.Status
		v["duration_s"] = ev.Trial.Duration.Seconds()
		if ev.Trial.Failure != nil {
			v["failure"] = ev.Trial.Failure
		}
	}
	if p.logs != nil {
		p.logs.line("info", v)
		return
	}
	_ = terminal.JSON(p.out).Encode(v)
}

// once asks for a cell's time once: with a thousand cells, all of which are summed up
// after each trial, that took longer than to model the trial.
func once(expected func(record.Cell) time.Duration) func(record.Cell) time.Duration {
	known := make(map[string]time.Duration)
	return func(c record.Cell) time.Duration {
		key := c.Key()
		d, ok := known[key]
		if !ok {
			d = expected(c)
			known[key] = d
		}
		return d
	}
}

// short is a cell as a person reads it: what runs where, then the other levels with
// their factors' names.
func short(c record.Cell) string {
	levels := make([]string, len(c))
	for i, l := range c {
		levels[i] = l.Value
		if l.Factor != study.FactorWorkload && l.Factor != study.FactorSandbox {
			levels[i] = l.Factor + "=" + l.Value
		}
	}
	return strings.Join(levels, " ")
}
