package main

import (
	"maps"
	"strings"
	"sync"
	"time"

	"tare/record"
	"tare/report/terminal"
	"tare/store"
)

// logs are the messages of a verb as JSON, an object a line on standard error, for what collects the
// logs of pods. The last line is a summary.
type logs struct {
	out     *terminal.Writer
	mu      sync.Mutex
	summary map[string]any
}

// logFormat has messages written as --log-format says.
func (a *app) logFormat(format string) error {
	switch format {
	case "text":
	case "json":
		a.logs = &logs{out: a.stderr, summary: map[string]any{}}
	default:
		return coded(exitUsage, "--log-format is text or json, not %q", format)
	}
	return nil
}

func (l *logs) line(level string, more map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := map[string]any{"time": time.Now().UTC().Format(time.RFC3339Nano), "level": level}
	maps.Copy(v, more)
	_ = terminal.JSON(l.out).Encode(v) // nobody could be told
	_ = l.out.Flush()
}

func (l *logs) message(text string) {
	l.line("info", map[string]any{"message": strings.TrimSpace(strings.TrimPrefix(text, "tare: "))})
}

// count notes what a study has come to, for the summary.
func (l *logs) count(name string, db *store.Store) error {
	trials, err := db.Trials()
	if err != nil {
		return err
	}
	failed := 0
	for i := range trials {
		if trials[i].Status != record.OK {
			failed++
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.Copy(l.summary, map[string]any{"study": name, "results": db.Dir(), "trials": len(trials), "failed": failed})
	return nil
}

// end writes the summary.
func (l *logs) end(err error, code int) {
	level := "info"
	v := map[string]any{"event": "summary", "exit_code": code}
	if err != nil {
		level, v["error"] = "error", err.Error()
	}
	maps.Copy(v, l.summary)
	l.line(level, v)
}
