package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/study"
)

// initOf runs the verb without a command line. in answers its questions, "" for no terminal.
func initOf(t *testing.T, f initFlags, in string) (text, said string, err error) {
	t.Helper()
	given := []string{"in"}
	for flag, value := range map[string]string{"cpus": f.cpus, "memory": f.memory, "budget": f.within} {
		if value != "" {
			given = append(given, flag)
		}
	}
	if f.in == nil { // what works here is for another test
		f.in, given = []string{"runc", "crun"}, given[1:]
	}
	if f.within == "" {
		f.within = "5m"
	}
	asked := given
	f.given = func(flag string) bool { return flag == "in" && f.in != nil || slices.Contains(asked, flag) }
	f.timeout, f.warmup, f.output = "1m", -1, filepath.Join(t.TempDir(), "study.yaml")
	var out bytes.Buffer
	var from io.Reader
	if in != "" {
		from = strings.NewReader(in)
	}
	err = newApp(&out, &out).initStudy(context.Background(), f, from)
	raw, _ := os.ReadFile(f.output) // none after an error
	return string(raw), out.String(), err
}

// planned is the study that `tare plan` reads in a text.
func planned(t *testing.T, text string) *study.Study {
	t.Helper()
	cat, err := offered()
	if err != nil {
		t.Fatal(err)
	}
	st, err := study.Parse("study.yaml", []byte(text), cat, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return st
}

// TestInit: what the flags say is in a study that plan accepts.
func TestInit(t *testing.T) {
	for name, c := range map[string]struct {
		f      initFlags
		kind   string
		params map[string]string
	}{
		"command":  {initFlags{commandTexts: []string{"gzip -kc 'a b'"}}, "command", map[string]string{"command": "gzip -kc 'a b'"}},
		"two":      {initFlags{commandTexts: []string{"gzip -kc f", "xz -kc f"}}, "command", map[string]string{"command": "gzip -kc f"}},
		"shell":    {initFlags{commandTexts: []string{"find /usr | wc -l"}}, "command", map[string]string{"shell": "true", "command": "find /usr | wc -l"}},
		"hostile":  {initFlags{commandTexts: []string{"echo \"# a: [b]\" '{'"}}, "command", map[string]string{"command": "echo \"# a: [b]\" '{'"}},
		"server":   {initFlags{weighFlags: weighFlags{server: "python3 -m http.server 8080", http: "8080/"}}, "service", map[string]string{"http": "8080/", "ready": "http:8080/"}},
		"load":     {initFlags{weighFlags: weighFlags{server: "redis-server", load: "redis-benchmark -h {server}", ready: "tcp:6379"}}, "service", map[string]string{"ready": "tcp:6379"}},
		"limits":   {initFlags{commandTexts: []string{"true"}, weighFlags: weighFlags{cpus: "1.5", memory: "512MiB", within: "90s"}}, "command", map[string]string{"cpu-limit": "1.5", "memory-limit": "512MiB"}},
		"workload": {initFlags{shipped: []string{"fio", "net"}}, "fio", nil},
	} {
		t.Run(name, func(t *testing.T) {
			text, said, err := initOf(t, c.f, "")
			if err != nil {
				t.Fatal(err)
			}
			st := planned(t, text)
			w := st.WorkloadOf(0)
			for k, v := range c.params {
				if w.Params[k] != v {
					t.Errorf("%s = %q, want %q", k, w.Params[k], v)
				}
			}
			if w.Kind != c.kind || st.Baseline != "process" || !strings.Contains(said, "next: tare plan ") || strings.Count(text, "#") < 6 {
				t.Errorf("%s, %s, %q in\n%s", w.Kind, st.Baseline, said, text)
			}
		})
	}
}

// TestInitShipped: each workload that is offered is one that a plan accepts as it is written.
func TestInitShipped(t *testing.T) {
	for _, name := range shippedNames() {
		text, _, err := initOf(t, initFlags{shipped: []string{name}}, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		st := planned(t, text)
		if st.WorkloadOf(0).Kind != name {
			t.Errorf("%s: %+v", name, st.WorkloadOf(0))
		}
		// The defaults that stand as comments can be written as they stand.
		for line := range strings.Lines(text) {
			if p, ok := strings.CutPrefix(line, "    # "); ok && !strings.Contains(p, `: "" #`) {
				text = strings.Replace(text, line, "    "+p, 1)
			}
		}
		planned(t, text)
	}
}

// TestInitAsks: answers have the same effect as flags; a wrong one is asked for again.
func TestInitAsks(t *testing.T) {
	for name, c := range map[string]struct {
		f        initFlags
		in, want string // equal to the flags'
		says     string
	}{
		"presets": {initFlags{}, "\ngzip -kc f\n\n\n\n", "kind: command", "a command, a server, or a workload that tare ships? [command]"},
		"again":   {initFlags{}, "x\nc\n\nls | 'wc\ngzip f\nmany\n2\nlots\n1GiB\nsoon\n30s\n", "cpu-limit: [\"2\"]\n  memory-limit: [\"1GiB\"]", "write command, server or workload"},
		"http":    {initFlags{}, "server\npython3 -m http.server 80\n80/\n\n\n\n", "http: \"80/\"", "answers HTTP at"},
		"tcp":     {initFlags{}, "s\nredis-server\n\n6379\nredis-benchmark -h {server}\n\n\n\n", "ready: \"tcp:6379\"", "loads it?"},
		"shipped": {initFlags{}, "w\nnot, net\nnet, fio\n\n\n\n", "kind: fio", "tare ships no workload \"not\""},
		"rest":    {initFlags{commandTexts: []string{"true"}, weighFlags: weighFlags{cpus: "1"}}, "\n7m\n", "budget: {time: 7m}", "how much memory"},
	} {
		t.Run(name, func(t *testing.T) {
			text, said, err := initOf(t, c.f, c.in)
			if err != nil || !strings.Contains(text, c.want) || !strings.Contains(said, c.says) {
				t.Fatalf("%v, %q in\n%s\n%s", err, c.want, text, said)
			}
			planned(t, text)
		})
	}
	if _, said, err := initOf(t, initFlags{}, "command\n"); err == nil || !strings.Contains(err.Error(), "the question has no answer") {
		t.Errorf("%v, %q", err, said)
	}
}

// FuzzInitCommand: whatever is typed is in the study as it was typed, or refused.
func FuzzInitCommand(f *testing.F) {
	for _, s := range []string{"gzip -k f", "a | b", "a: b # c", "\"", "a\nb: c", "{{}}", "é\u202e"} {
		f.Add(s)
	}
	cat, err := offered()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		flags := initFlags{commandTexts: []string{text}, weighFlags: weighFlags{within: "1m", timeout: "1m", warmup: -1, in: []string{"runc"}}}
		yaml, w, err := flags.draft([]string{"process", "runc"}, cat)
		if err != nil {
			return
		}
		st, err := study.Parse("study.yaml", []byte(yaml), cat, nil)
		if err != nil || len(st.Workloads) != 1 || st.WorkloadOf(0).Params["command"] != strings.TrimSpace(w.commands[0]) && st.WorkloadOf(0).Params["command"] != w.commands[0] {
			t.Errorf("%q: %v in\n%s", text, err, yaml)
		}
	})
}
