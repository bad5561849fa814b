package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// logged is what an ordinary user's command writes to standard error, an object a line.
func logged(t *testing.T, by tareBy, want int, args ...string) (lines []map[string]any, stdout string) {
	t.Helper()
	var out, told bytes.Buffer
	cmd := by.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &told
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
		t.Fatalf("%v, and not %d: %s", err, want, told.String())
	}
	for line := range strings.Lines(told.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil || v["time"] == nil || v["level"] == nil {
			t.Errorf("%v: %s", err, line)
		}
		lines = append(lines, v)
	}
	if len(lines) == 0 {
		t.Fatal("nothing was logged")
	}
	return lines, out.String()
}

// TestLogFormat: messages, progress and the reason of a failure are objects, the last one is a summary, and the
// report is what it is without.
func TestLogFormat(t *testing.T) {
	by := ordinary(t)
	dir := by.home
	file := filepath.Join(dir, "s.yaml")
	if err := os.WriteFile(file, []byte("study: logs\ncompare: slowdown\nbaseline: \"1\"\nfactors: {sandbox: [fake], slowdown: [1, 1.5]}\nworkloads: {idle: {kind: noop, sleeps: 5}}\nstop: {fixed: 2}\nsentinel: off\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	lines, report := logged(t, by, exitOK, "run", file, "-o", filepath.Join(dir, "r"), "--wait", "--log-format", "json")
	if !strings.HasPrefix(report, "logs: what each level of slowdown costs") {
		t.Errorf("the report is %q", report)
	}
	ends, messages := 0, 0
	for _, l := range lines {
		if l["event"] == "end" {
			ends++
		}
		if text, _ := l["message"].(string); strings.HasPrefix(text, "study logs, ") {
			messages++
		}
	}
	last := lines[len(lines)-1]
	if ends != 4 || messages != 1 || last["event"] != "summary" || last["trials"] != 4.0 || last["failed"] != 0.0 || last["exit_code"] != 0.0 || last["study"] != "logs" {
		t.Errorf("%d ends, %d messages, summary %v", ends, messages, last)
	}
	lines, _ = logged(t, by, exitUsage, "run", filepath.Join(dir, "nothing"), "--log-format", "json")
	if last := lines[len(lines)-1]; last["level"] != "error" || last["exit_code"] != 2.0 || last["error"] == "" {
		t.Errorf("a failure: %v", last)
	}
}
