package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"tare/analyse/stat"
	"tare/param"
	"tare/record"
	"tare/report/words"
	"tare/workload"
)

// weighing is what `tare weigh` is asked for, as the parts of a study.
type weighing struct {
	at        string // in messages: here, or on which machine
	cluster   bool   // which has no `tare doctor`
	draft     *draft // nil: it is run as it is
	label     string
	server    string        // command line of a server; "" where commands are weighed
	builtIn   bool          // the built-in client loads the server
	commands  []string      // texts that the workload splits into words, or gives to a shell
	params    [][2]string   // of the workload, beside the command and what timing says
	limits    [][2]string   // factors with one level
	figures   []string      // names of responses that the user asks for; the first decides when to stop
	sandboxes []string      // the baseline first
	unproven  []string      // sandboxes that are left out because nothing shows that KVM works
	timeout   time.Duration // that the user gave; 0: none
	warmup    int           // -1: as timing says
}

// draft is what `tare init` adds to a study, which is to be changed.
type draft struct {
	file    string
	shipped []workload.Workload // in place of a command or a server
}

// timing is how the time of a weighing is used.
type timing struct {
	fixed  int           // blocks, 0: as many as are needed
	turns  int           // of a block
	fill   time.Duration // of a turn
	expect time.Duration // of a run
	limit  time.Duration // of a run
	warmup int           // runs before each turn
	budget time.Duration // of all trials
}

// doctor is advice to ask `tare doctor`; "" where there is none.
func (w *weighing) doctor(advice string) string {
	if w.cluster {
		return ""
	}
	return advice
}

// study is the text of the study. All words of the user are in quotes, as YAML and JSON have them.
func (w *weighing) study(p timing) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	w.compared(line)
	line("workloads:")
	if w.draft != nil && len(w.draft.shipped) > 0 {
		for _, x := range w.draft.shipped {
			shipped(line, x)
		}
		line("budget: {time: %s} # at most; it ends before, once the intervals are narrow", param.FormatDuration(p.budget))
		return b.String()
	}
	w.workload(line, p)
	if p.turns > 0 {
		line("turns: %d # sandboxes start together and are weighed in turn", p.turns)
	}
	if w.draft != nil {
		line("stop: {width: 2%%, margin: 3%%} # ends when intervals are this narrow; a cost within the margin counts as free")
		line("budget: {time: %s} # at most", param.FormatDuration(p.budget))
		return b.String()
	}
	line("retries: 0")
	line("sentinel: off")
	if p.fixed > 0 {
		line("stop: {fixed: %d}", p.fixed)
		return b.String()
	}
	line("stop: {looks: [3, 4, 6, 8, 12, 16, 24, 32], width: 2%%, margin: 3%%}")
	line("budget: {time: %s}", param.FormatDuration(p.budget))
	return b.String()
}

// compared has what the file is for, and what is compared in it.
func (w *weighing) compared(line func(string, ...any)) {
	name := "weigh"
	if w.draft == nil {
		line("# Made by `tare weigh`. `tare run` with this file weighs the same again.")
	} else {
		name = w.label
		line("# Made by `tare init`, to be changed. What each key means: docs/study.md, `tare schema`.")
		line("#   tare plan %s    what it does, and how long it takes", words.Path(w.draft.file))
		line("#   tare run %s     do it", words.Path(w.draft.file))
	}
	line("study: %s", name)
	line("baseline: %s # what the other sandboxes are compared with", w.sandboxes[0])
	line("factors: # every combination of their levels is measured")
	line("  sandbox: [%s]", strings.Join(w.sandboxes, ", "))
	for _, f := range w.limits {
		line("  %s: [%s]", f[0], quoted(f[1]))
	}
	if w.draft != nil && len(w.limits) == 0 {
		line("  # cpu-limit: [none, 1] # cores")
		line("  # memory-limit: [none, 512MiB]")
	}
}

// workload has the command or the service, and how long it runs.
func (w *weighing) workload(line func(string, ...any), p timing) {
	line("  %s:", quoted(w.label))
	if w.server != "" {
		line("    kind: service")
		line("    server: %s", quoted(w.server))
	} else {
		line("    kind: command")
		command := quoted(w.commands[0])
		if len(w.commands) > 1 {
			command = "[" + strings.Join(mapped(w.commands, quoted), ", ") + "]"
		}
		line("    command: %s", command)
	}
	for _, f := range w.params {
		line("    %s: %s", f[0], quoted(f[1]))
	}
	if len(w.figures) > 0 && w.server == "" {
		line("    responses: [%s, wall, user, system, peak_memory]", strings.Join(mapped(w.figures, quoted), ", "))
	}
	switch {
	case w.draft != nil:
		draftTiming(line, w, p)
	case w.builtIn:
		line("    warmup: %s", p.fill)
		line("    duration: %s # of each turn", 2*p.fill)
	case w.server != "":
		line("    warmup: %s", p.fill)
		line("    expect: %s # of one run of the load, as the first one took natively", p.expect)
	default:
		line("    warmup: %d", p.warmup)
		line("    fill: %s # more runs in each turn, until they have taken this long", p.fill)
		line("    expect: %s # of one run, as the first one took natively", p.expect)
	}
	line("    timeout: %s", param.FormatDuration(p.limit))
}

// draftTiming has the parameters that say how long a workload runs.
func draftTiming(line func(string, ...any), w *weighing, p timing) {
	switch {
	case w.builtIn:
		line("    duration: %s # of each turn", 2*p.fill)
	case w.server != "":
		line("    # expect: 2s # how long one run of the load takes, for the plan")
	default:
		line("    warmup: %d # runs before the timed ones of each turn", p.warmup)
		line("    fill: %s # more runs in each turn, until they have taken this long", p.fill)
		line("    # expect: 1s # how long one run takes, for the plan")
		line("    # responses: [wall, peak_memory] # what is compared; the first decides when it ends")
	}
}

// shipped has a workload of tare's own. Its parameters are there as comments, with their defaults.
func shipped(line func(string, ...any), x workload.Workload) {
	line("  %s: # %s", x.Name(), x.About())
	line("    kind: %s", x.Name())
	for _, p := range x.Params() {
		line("    # %s: %s # %s", p.Name, quoted(p.Default), p.Help)
	}
}

// quoted is a text as JSON, and so YAML, writes it.
func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can always be written
	return strings.TrimSpace(b.String())
}

func mapped[T, U any](in []T, f func(T) U) []U {
	out := make([]U, len(in))
	for i, x := range in {
		out[i] = f(x)
	}
	return out
}

// Constants of the timing. A turn is long enough that starting it, some milliseconds, does not
// matter, and short enough that a block has several.
const (
	turnTime    = 200 * time.Millisecond
	mostTurns   = 4
	leastFill   = turnTime / 8           // of the only turn of a block where time is short
	longestRun  = time.Minute            // unless the user says otherwise
	wantBlocks  = 6                      // with less than 3 there is no interval, and 6 make it a third as wide
	sandboxTime = 500 * time.Millisecond // that a sandbox takes in a block more than none does, about: gVisor settles
)

// looked is what the first look has shown of the command that takes longest natively.
type looked struct {
	run    time.Duration // of one run, or of the slowest of a hundred answers to the built-in client
	beside time.Duration // that a trial took beside its runs: to start, to stop
}

// pilot is the timing of the first look, natively: one run, or several short ones.
func (w *weighing) pilot() timing {
	return timing{fixed: 1, fill: turnTime / 4, expect: time.Second, limit: cmp.Or(w.timeout, longestRun), warmup: max(0, w.warmup)}
}

// paced uses what the pilot has shown.
func (w *weighing) paced(first looked, budget time.Duration) timing {
	run := first.run
	p := timing{turns: 1, fill: turnTime, expect: max(10*time.Microsecond, run.Round(10*time.Microsecond)), warmup: w.warmup, budget: max(time.Second, budget.Round(time.Second))}
	switch { // an even number: a block goes through its sandboxes in both directions
	case run <= turnTime:
		p.turns = mostTurns
	case run <= 5*turnTime:
		p.turns = 2
	}
	// Many sandboxes, or little time: blocks are worth more than turns.
	each := func(blocks int) time.Duration {
		return budget/time.Duration(blocks*len(w.sandboxes)*max(1, len(w.commands))) - first.beside - sandboxTime
	}
	if p.turns == mostTurns && each(wantBlocks) < mostTurns*turnTime {
		p.turns = 2
	}
	if each(wantBlocks) < 2*turnTime {
		p.fill = turnTime / 2
	}
	short := each(stat.MinN) < 2*turnTime // three blocks of this would not fit, or hardly
	if short {
		p.turns, p.fill = 1, leastFill
		if w.server != "" {
			p.fill = turnTime / 2 // the built-in client runs for twice as long, and connects first
		}
	}
	if w.builtIn { // a turn has several answers, in a sandbox that is far slower, too
		p.fill = max(p.fill, min(5*run, budget/time.Duration(9*stat.MinN*len(w.sandboxes))).Round(10*time.Millisecond))
	}
	if w.warmup < 0 {
		p.warmup = 0
		if run <= turnTime && (!short || run <= leastFill) {
			p.warmup = 1
		}
	}
	// A sandbox that is fifty times slower is still weighed; one that hangs must not take all the time.
	p.limit = cmp.Or(w.timeout, min(longestRun, max(10*time.Second, 50*run).Round(time.Second)))
	return p
}

// wantsTime says what a larger --budget than within gives: four times as much makes intervals half as wide. It is always enough for
// the blocks that are wanted at least.
func wantsTime(within time.Duration, trials []record.Trial) string {
	spent, blocks := time.Duration(0), 1
	for i := range trials {
		spent += trials[i].Duration
		blocks = max(blocks, trials[i].Block)
	}
	more := words.AtLeast(max(4*within, spent/time.Duration(blocks)*wantBlocks))
	if blocks < stat.MinN {
		return fmt.Sprintf("The budget was too short for an interval, which takes %d blocks. Give --budget %s", stat.MinN, more)
	}
	return fmt.Sprintf("The intervals are wide. With --budget %s they should be half as wide or less; an idle machine also helps", more)
}

// figureName is what may stand before the pattern of a figure.
var figureName = regexp.MustCompile(`^([a-z0-9][a-z0-9_-]*)(\[[^\]]*\])?=`)

// figure makes a word of the parameter figures of NAME[UNIT,BETTER]=PATTERN; the name may be left
// out. It returns the name, too.
func figure(text, kind string) (name, word string) {
	m := figureName.FindStringSubmatch(text)
	if m == nil {
		m = []string{"", "figure", ""}
	}
	return m[1], m[1] + m[2] + "=" + words.Shell(kind+text[len(m[0]):])
}

// mount completes HOST:GUEST[:ro]; HOST alone is seen under the same path.
func mount(text string, abs func(string) (string, error)) (string, error) {
	parts := strings.Split(text, ":")
	mode := ""
	if n := len(parts); n > 1 && (parts[n-1] == "ro" || parts[n-1] == "rw") {
		mode, parts = ":"+parts[n-1], parts[:n-1]
	}
	if len(parts) > 2 || parts[0] == "" {
		return "", coded(exitUsage, "--mount %s: write HOST:GUEST or HOST:GUEST:ro", text)
	}
	host, err := abs(parts[0])
	if err != nil {
		return "", err
	}
	guest := host
	if len(parts) == 2 {
		guest = parts[1]
	}
	return host + ":" + guest + mode, nil
}

// duration is a flag's time.
func duration(flag, text string) (time.Duration, error) {
	d, err := param.ParseDuration(text)
	switch {
	case d <= 0 && (err == nil || strings.HasPrefix(text, "-")):
		return 0, coded(exitUsage, "--%s must be more than 0", flag)
	case err != nil:
		return 0, coded(exitUsage, "--%s %w", flag, err)
	}
	return d, nil
}
