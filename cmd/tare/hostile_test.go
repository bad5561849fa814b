package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"tare/collect/host"
	"tare/modelled"
	"tare/plan"
	"tare/record"
	"tare/report/terminal"
	"tare/run"
	"tare/site"
	"tare/store"
	"tare/study"
)

// evil is text that controls a terminal in every way, also with sequences that tare itself
// uses, and that forges a line. EVIL follows each sequence.
const evil = "\x1b[2JEVIL\x1b[31mEVIL\x1b[0mEVIL\r\x1b[KEVIL\x1b]0;EVIL\a\u009b31mEVIL\u202eEVIL\x7f\xff\r\nFORGED"

// turned is evil text that a level of a study can be: it has no control character, but one
// that changes the direction of writing.
const turned = "a\u202eEVIL"

// harmless fails unless the output is safe for a person: graphic characters, newlines and
// tabs only, apart from tare's own sequences on a terminal.
func harmless(t *testing.T, what, out string, lines bool) {
	t.Helper()
	for _, own := range []string{"\r\x1b[K", "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\r\x1b[2A", "\r\x1b[J", "\x1b[J"} {
		if strings.Contains(out, own+"EVIL") {
			t.Errorf("%s: data forged %q", what, own)
		}
		if terminalOutput := strings.HasPrefix(what, "terminal"); terminalOutput {
			out = strings.ReplaceAll(out, own, "")
		}
	}
	for i, r := range out {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) && (r != utf8.RuneError || strings.HasPrefix(out[i:], "\ufffd")) {
			continue
		}
		t.Errorf("%s: %q at byte %d of what is printed: %q", what, r, i, out[max(0, i-60):min(len(out), i+60)])
		return
	}
	if lines && (strings.HasPrefix(out, "FORGED") || strings.Contains(out, "\nFORGED")) {
		t.Errorf("%s: data forged a line:\n%s", what, out)
	}
}

// hostileStudy has all the evil that a study can have.
const hostileStudy = `study: hostile
about: "\e[2JEVIL\e[31mEVIL\r\e[KEVIL\nFORGED"
baseline: "1"
compare: slowdown
factors:
  sandbox: [fake]
  slowdown: [1, 2, 3]
  gap: ["a\u202EEVIL", b]
stop: {fixed: 3}
workloads:
  w: {kind: noop, sleeps: 5, responses: [elapsed]}
`

// hostileRehearsal is a study that the model plays.
const hostileRehearsal = `study: played
about: "\e[2JEVIL\e[31mEVIL\r\e[KEVIL\nFORGED"
factors: {sandbox: [process, runc, vm], isolate: [server], connections: [1, 4]}
workloads:
  rr: {kind: net, mode: rr, warmup: 100ms, duration: 100ms, responses: [rate]}
stop: {fixed: 3}
`

// hostileFolder is a results folder in which an enemy wrote every text.
func hostileFolder(t *testing.T, dir string, overrides ...string) string {
	t.Helper()
	host := record.Host{Hostname: evil, OS: evil, Kernel: evil + filepath.Base(dir), Arch: evil, CPUModel: evil, Cores: 2, Threads: 4, MemoryBytes: 1 << 30, Governor: evil,
		Clocksource: evil, Virtualization: evil, KVM: evil, Cgroups: evil, Mitigations: map[string]string{evil: evil},
		Tools: map[string]string{evil: evil + dir}, Warnings: []record.Warning{{Code: evil, Text: evil}}}
	source := strings.Replace(hostileStudy, "  gap: [\"a\\u202EEVIL\", b]\n", "", 1) // a factor that noop has not
	db, err := store.Create(dir, store.Meta{StudySource: []byte(source), StudyFile: evil, Overrides: overrides, TareVersion: evil, Host: host, Started: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	seq := 0
	for block := range 4 {
		for level := range 3 {
			seq++
			cell := record.Cell{{Factor: "workload", Value: "w"}, {Factor: "sandbox", Value: "fake"}, {Factor: "slowdown", Value: fmt.Sprint(level + 1)}}
			if block == 3 {
				cell = append(cell, record.Level{Factor: evil, Value: evil})
			}
			tr := &record.Trial{Seq: seq, Block: block + 1, Attempt: 1, Status: record.OK, Start: time.Unix(int64(seq), int64(filepath.Base(dir)[0])), Duration: time.Second, Cell: cell,
				Samples: []record.Sample{{Name: "elapsed", Unit: record.Second, Value: float64(level+1) * (1 + 0.01*float64(block))},
					{Name: evil, Unit: record.Unit(evil), Kind: record.SampleType(evil), Labels: record.MakeLabels(evil, evil), Value: 1}},
				Warnings: []record.Warning{{Code: evil, Text: evil}},
				Facts:    map[string]string{"fake.accelerator": evil, evil: evil}}
			if level == 2 {
				tr.Status, tr.Samples = record.Failed, nil
				tr.Failure = &record.Failure{Phase: evil, Kind: evil, Reason: evil}
			}
			if err := db.Append(t.Context(), tr, record.Evidence{Raw: []record.Raw{{Name: "client.stdout", Data: []byte(evil)}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	skipped := record.Cell{{Factor: "workload", Value: "w"}, {Factor: "sandbox", Value: evil}}
	if err := errors.Join(db.SetSkips(t.Context(), []record.Skip{{Cell: skipped, Reason: evil}}), db.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// call is one use of tare. text: lines count; an HTML page may break them anywhere.
type call struct {
	args []string
	text bool
	in   string
}

// calls use every verb and every format on evil input.
func calls(t *testing.T) []call {
	t.Helper()
	a, b := hostileFolder(t, "a"+strings.ReplaceAll(evil, "/", "")), hostileFolder(t, "b")
	broken := hostileFolder(t, "broken", "slowdown="+evil)
	write := func(name, text string) string {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good, bad := write("good.yaml", hostileRehearsal), write("bad"+evil+".yaml", hostileStudy+"\""+turned+"\": 1\n\"\\e[2J\\nFORGED\": 1\n")
	list := write("list.csv", "s,r,v,u\n"+turned+",\""+evil+"\",1,"+turned+"\n")
	mapping := write("map"+evil+".yaml", "\"\\e[2JEVIL\\nFORGED\": 1\nbetter: {x: \"\\e[2J\"}\n")
	ok := []call{}
	say := func(args ...string) { ok = append(ok, call{args: args, text: true}) }
	data := func(args ...string) { ok = append(ok, call{args: args}) }
	for _, dir := range []string{a, "nowhere" + evil, broken} {
		say("report", dir)
		say("report", dir, "--json")
		for _, more := range []string{"", "--trials", "--tables", "--cpu", "--causes"} {
			say(slices.DeleteFunc([]string{"report", dir, "--csv", more}, func(s string) bool { return s == "" })...)
		}
		for _, f := range formats(nil) {
			if !f.binary {
				say("export", dir, "--format", f.name)
			}
		}
		say("export", dir, "--format", "opensearch", "--index", evil)
		data("report", dir, "--html")
		say("advise", dir)
		say("advise", dir, "--json")
		say("advise", dir, "--patch", "shell")
		say("advise", dir, "--only", evil)
		say("compare", dir, b)
		say("compare", b, dir, "--all", "--gate", "worse than 5%")
		say("compare", dir, b, "--json")
		say("compare", dir, b, "--csv")
		say("compare", dir, b, "--gate", evil)
		say("compare", dir, b, "--only", evil)
		say("plot", dir, "-o", "plots"+evil)
		say("plot", dir, "-o", "more", "--json")
		say("plot", dir, "--by", evil)
		say("bundle", dir, "-o", "x"+evil+".tar.zst")
		say("bundle", dir, "-o", "y.tar.zst", "--json")
		say("run", dir, "--on", "model")
		say("run", dir, "--set", "a="+evil)
		say("serve", dir, "--listen", evil)
		say("__complete", "plot", dir, "--by", "")
		say("__complete", "advise", dir, "--only", "")
	}
	for _, file := range []string{good, bad, "no" + evil} {
		say("plan", file, "--no-check") // else it boots a machine of this host
		say("plan", file, "--no-check", "--json")
		say("plan", file, "--on", "model")
		say("plan", file, "--set", evil)
		say("run", file, "--on", "model", "-o", "r"+evil)
		say("run", file, "--on", "model", "-o", "j", "--json")
		say("bundle", "--check", file)
		say("import", "clusterbuster", file, "--results", "i"+evil)
		say("import", "pbench", evil+"="+file, "--results", "i")
		say("import", "pbench", file, "--map", mapping, "--results", "i")
	}
	say("report", "r"+evil)
	say("advise", "r"+evil)
	say("report", "r"+evil, "--csv", "--causes")
	say("bundle", "--check", "x"+evil+".tar.zst")
	say("report", "x"+evil+".tar.zst")
	say("bundle", "--unpack", "x"+evil+".tar.zst", "-o", "u"+evil)
	say("import", "csv", list, "--map", mapping, "--results", "i")
	say("import", "csv", list, "--map", "sandbox=s,response=r,value=v,unit="+evil, "--results", "i")
	say("import", "csv", list, "--map", "sandbox=s,response=r,value=v,unit=u", "--results", "i")
	say("import", "csv", list, "--map", "sandbox=s,value=v", "--const", "response=elapsed,unit=s", "--study", turned, "--results", "i")
	say("import", "csv", write("plain.csv", "r,v,u\nx,1,s\n"), "--map", "response=r,value=v,unit=u", "--const", "sandbox=runc,workload=w", "--results", "ok"+evil)
	say("import", evil)
	say("rbac", "-n", evil)
	say("doctor", "--on", "k8s", "--kubeconfig", "nowhere"+evil)
	say("size", "--cpu-limit", evil)
	ok = append(ok, call{[]string{"size", "-"}, true, "kind: Pod\nmetadata: {name: \"\\e[2JEVIL\"}\nspec: {containers: [{name: \"\\e[2J\", resources: {limits: {cpu: \"\\e[2JEVIL\\nFORGED\"}}}]}\n"},
		call{[]string{"size", "-"}, true, "kind: List\nitems:\n" + strings.Repeat("- {kind: \"\\e[2JEVIL\\nFORGED\", metadata: {name: \"\\e[2JEVIL\\nFORGED\"}, spec: {containers: [{name: x}]}}\n", 2)},
		call{[]string{"size", "-"}, true, evil})
	say("image", evil)
	for _, verb := range []string{"list", "build", "prune", "export", "push"} {
		say("image", verb, evil, "x", "--cache", "cache"+evil)
		say("image", verb, "--cache", "cache"+evil, "--limit", evil)
	}
	say("image", "list", "--cache", "cache"+evil)
	for _, verb := range []string{"doctor", "clean", "schema", "version", "list", "completion", "help"} { // they read nothing of others, or see TestHostileDoctor
		say(verb, evil)
		say(verb, "--"+evil)
	}
	say("schema")
	say("version", "--json")
	say("list", "--json")
	say("completion", "bash")
	say("weigh", "--in", evil, "--", evil)
	say("init", "--command", evil, "--in", "runc"+evil, "-o", "study"+evil)
	say("weigh", "--figure", evil, "--mount", evil, evil)
	say(evil)
	say("--" + evil)
	say("run", "--on", evil, good)
	say("tune", good, "--factor", evil, "--on", "model")
	say("tune", evil, "--factor", "a="+evil)
	return ok
}

// TestHostileOutput runs every verb and format with names, messages and files of an enemy:
// tare prints nothing that controls a terminal, and no line is forged.
func TestHostileOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	used, shown := map[string]bool{}, map[string]bool{}
	for _, c := range calls(t) {
		what := fmt.Sprintf("tare %q", c.args)
		used[c.args[0]] = true
		var out, errs bytes.Buffer
		a := newApp(&out, &errs)
		root := newRoot(a)
		root.SetArgs(c.args)
		root.SetOut(a.stdout)
		root.SetErr(a.stderr)
		root.SetIn(strings.NewReader(c.in))
		if c.in == "" {
			root.SetIn(strings.NewReader(""))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		code := exitCode(root.ExecuteContext(ctx), a.stderr)
		cancel()
		if err := errors.Join(a.stdout.Flush(), a.stderr.Flush()); err != nil {
			t.Fatal(err)
		}
		if out.Len()+errs.Len() == 0 {
			t.Errorf("%s printed nothing, exit code %d", what, code)
		}
		shown[c.args[0]] = shown[c.args[0]] || code == exitOK && strings.Contains(out.String(), "EVIL")
		harmless(t, what, out.String(), c.text)
		harmless(t, what+", standard error", errs.String(), true)
	}
	for _, verb := range newRoot(newApp(io.Discard, io.Discard)).Commands() {
		if !used[verb.Name()] {
			t.Errorf("no call of tare %s; add one", verb.Name())
		}
	}
	// TestHostileWeigh does so for weigh, which needs the host.
	for _, verb := range []string{"report", "compare", "export", "plot", "bundle", "plan", "run", "size", "import"} {
		if !shown[verb] { // it would be no test of what the verb prints
			t.Errorf("no call of tare %s went well and printed what an enemy wrote", verb)
		}
	}
}

// TestHostileTerminal does so on a terminal, where tare uses its own sequences.
func TestHostileTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	t.Chdir(t.TempDir())
	a, b := hostileFolder(t, "a"), hostileFolder(t, "b")
	if err := os.WriteFile("good.yaml", []byte(hostileRehearsal), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"report", a}, {"advise", a}, {"compare", a, b, "--all"}, {"plot", a}, {"run", "good.yaml", "--on", "model"}, {"report", evil}} {
		out := onTerminal(t, args...)
		if own := strings.Contains(out, "\x1b[0m") || strings.Contains(out, "\r\x1b[K"); !own && args[1] != evil && args[0] != "advise" {
			t.Errorf("tare %q has no colour and no line of progress on a terminal:\n%q", args, out)
		}
		harmless(t, fmt.Sprintf("terminal: tare %q", args), out, true)
	}
}

// onTerminal returns what a command prints on a terminal.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	return atTerminal(t, func(tty *os.File) { execute(t.Context(), tty, tty, args) })
}

// atTerminal returns what run prints on the terminal that it gets.
func atTerminal(t *testing.T, run func(*os.File)) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine gives no terminals: %v", err)
	}
	defer func() { _ = master.Close() }()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := term.MakeRaw(int(slave.Fd())); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		b, _ := io.ReadAll(master) // EIO once nobody has the terminal open
		read <- string(b)
	}()
	run(slave)
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	return <-read
}

// TestHostileWeigh weighs a command that prints evil and fails in one sandbox only, so that its words
// are part of the answer. A sandbox has a PID namespace of its own.
func TestHostileWeigh(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: control groups and namespaces")
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	native, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, b := range []byte(evil + "\n" + strings.TrimSuffix(evil, "\r\nFORGED")) { // the last line is told
		said += fmt.Sprintf("\\%03o", b)
	}
	script := fmt.Sprintf("test $(readlink /proc/self/ns/pid) = %s || { for to in 1 2; do printf '%s' >&$to; done; exit 9; }", native, said)
	args := []string{"weigh", "--wait", "--shell", "--for", "1s", "--in", "runc", script}
	for what, more := range map[string][]string{"piped": nil, "as JSON": {"--json"}, "as Markdown": {"--markdown"}} {
		cmd := exec.CommandContext(t.Context(), bin, slices.Insert(slices.Clone(args), 1, more...)...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if cmd.ProcessState.ExitCode() == exitHost {
			t.Skipf("this host has no runc: %s", &errs)
		}
		if cmd.ProcessState.ExitCode() != exitTrials || !strings.Contains(out.String(), "EVIL") {
			t.Errorf("%s: %v, and what the command says must be printed:\n%s\n%s", what, err, &out, &errs)
		}
		harmless(t, what, out.String(), true)
		harmless(t, what+", standard error", errs.String(), true)
	}
	out := atTerminal(t, func(tty *os.File) {
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Stdout, cmd.Stderr = tty, tty
		_ = cmd.Run()
	})
	if !strings.Contains(out, "\x1b[") || !strings.Contains(out, "EVIL") {
		t.Errorf("on a terminal: %q", out)
	}
	harmless(t, "terminal: weigh", out, true)
}

// told is a session that only says what it knows.
type told struct {
	site.Session
	known site.Preview
}

func (s told) Preview() site.Preview            { return s.known }
func (told) Expected(record.Cell) time.Duration { return time.Second }

// Nodes are two names of one machine, of which announce tells.
func (told) Nodes() []record.Node {
	return []record.Node{{Name: evil, Machine: "m"}, {Name: "b", Machine: "m"}}
}

// TestHostileRun: what a run prints of the output of tools, in the reasons for failures.
func TestHostileRun(t *testing.T) {
	cell := record.Cell{{Factor: "workload", Value: "w"}, {Factor: "sandbox", Value: evil}}
	st := &study.Study{Name: "x", Workloads: []study.Workload{{Label: "w"}}, Strata: []study.Stratum{{Cells: []record.Cell{cell}}}, Sentinel: &study.Sentinel{Cell: cell}}
	skips := []record.Skip{{Cell: cell, Reason: evil}}
	for _, asJSON := range []bool{false, true} {
		for _, terminals := range []bool{false, true} {
			var out bytes.Buffer
			a := newApp(&out, &out)
			p := plan.New(st, nil, nil)
			a.announce(st, modelled.Site{}.About(), told{known: site.Preview{Skips: skips, Pace: time.Second}}, p, evil, 0)
			prog := newProgress(a.stderr, asJSON, 0, func(record.Cell) time.Duration { return time.Second })
			prog.terminal = terminals
			next := plan.Next{Cell: cell}
			prog.observe(run.Event{Kind: run.TrialStarts, Next: next, Plan: p})
			prog.observe(run.Event{Kind: run.TrialEnds, Next: next, Plan: p, Trial: &record.Trial{Cell: cell, Status: record.Failed, Failure: &record.Failure{Phase: evil, Kind: evil, Reason: evil}}})
			prog.finish()
			a.printSkips(skips)
			what := "progress"
			if terminals {
				what = "terminal: progress"
			}
			harmless(t, what, out.String(), true)
		}
	}
}

// TestHostileDoctor: what the doctor prints about tools and sandboxes.
func TestHostileDoctor(t *testing.T) {
	var out, errs bytes.Buffer
	a := newApp(&out, &errs)
	h := host.Describe(t.Context(), t.TempDir(), nil)
	h.OS, h.CPUModel, h.Tools, h.Warnings = evil, evil, map[string]string{evil: evil}, []record.Warning{{Code: evil, Text: evil}}
	a.printFindings([]finding{{Area: "sandbox", Name: evil, Detail: evil}, {Area: evil, Name: "x", Problem: evil}}, h)
	if err := a.printJSON(map[string]any{"host": h}); err != nil {
		t.Fatal(err)
	}
	a.say("removed %s", evil)
	exitCode(fmt.Errorf("%s: %w", evil, errors.Join(errors.New(evil), errors.New(evil))), a.stderr)
	exitCode(study.Errors{{File: evil, What: evil, Instead: evil}, {File: evil, What: evil}}, a.stderr)
	harmless(t, "doctor", out.String(), true)
	harmless(t, "errors", errs.String(), true)
	if n := strings.Count(errs.String(), "\n"); n != 2+5+2 {
		t.Errorf("%d lines:\n%s", n, errs.String())
	}
	if want := terminal.Message("tare: removed " + evil); !strings.HasPrefix(errs.String(), want) {
		t.Errorf("%q, want %q", errs.String(), want)
	}
}
