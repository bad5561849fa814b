package weigh

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/analyse/stat"
	"tare/record"
	"tare/report/terminal"
)

func estimate(ratio, lo, hi float64) stat.Estimate {
	return stat.Estimate{Ratio: ratio, Lo: lo, Hi: hi, N: 4}
}

// TestCost: more is always worse, and no sentence says more than the verdict.
func TestCost(t *testing.T) {
	for want, f := range map[string]Figure{
		"2.90 × the cost (2.80 to 3.00)":            {Estimate: estimate(2.9, 2.8, 3), Verdict: stat.Slower, Called: true},
		"3.00 × the cost (2.50 to 4.00)":            {Estimate: estimate(1/3., 0.25, 0.4), Verdict: stat.Slower, Called: true, Response: record.Response{Better: record.Higher}},
		"1.25 × faster (1.11 to 1.43)":              {Estimate: estimate(0.8, 0.7, 0.9), Verdict: stat.Faster, Called: true},
		"1.50 × faster (1.40 to 1.60)":              {Estimate: estimate(1.5, 1.4, 1.6), Verdict: stat.Faster, Called: true, Response: record.Response{Better: record.Higher}},
		"1.50 × natively (1.40 to 1.60)":            {Estimate: estimate(1.5, 1.4, 1.6), Verdict: stat.Higher, Called: true, Response: record.Response{Better: record.Neither}},
		"free: no cost above 3 %":                   {Estimate: estimate(1.001, 0.98, 1.021), Verdict: stat.Equivalent},
		"no cost above 8 %":                         {Estimate: stat.Estimate{Ratio: 1.01, Lo: 0.9, Hi: 1.08, Bound: 0.08, N: 4}, Verdict: stat.Undecided},
		"free: no cost above 0.4 %":                 {Estimate: estimate(1.001, 0.998, 1.0031), Verdict: stat.Equivalent},
		"free":                                      {Estimate: estimate(0.99, 0.98, 0.999), Verdict: stat.Equivalent},
		"too noisy to say: between 0.70 and 1.53 ×": {Estimate: estimate(1.03, 0.7, 1.53), Verdict: stat.Undecided},
		"perhaps 1.30 × the cost (1.05 to 1.60): too few blocks to be sure": {Estimate: estimate(1.3, 1.05, 1.6), Verdict: stat.Undecided},
		"perhaps 1.30 × faster (1.05 to 1.60): too few blocks to be sure":   {Estimate: estimate(1.3, 1.05, 1.6), Verdict: stat.Undecided, Response: record.Response{Better: record.Higher}},
		"about 1.40 × the cost; an interval takes 3 blocks":                 {Estimate: stat.Estimate{Ratio: 1.4, N: 2}, Verdict: stat.Undecided},
		"about 1.41 × faster; an interval takes 3 blocks":                   {Estimate: stat.Estimate{Ratio: 0.71, N: 2}, Verdict: stat.Undecided},
		"not measured": {},
	} {
		if f.Response.Better == "" {
			f.Response.Better = record.Lower
		}
		if got := f.Cost(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// comparisons are those of one command in a sandbox.
func comparisons(command, sandbox string, e stat.Estimate, verdict stat.Verdict) []analyse.Comparison {
	cell := record.Cell{{Factor: "command", Value: command}, {Factor: "sandbox", Value: sandbox}}
	var out []analyse.Comparison
	for i, name := range []string{"wall", "user", "system", "peak_memory"} {
		out = append(out, analyse.Comparison{Cell: cell, Shared: cell[:1], Baseline: sandbox == "process", First: i == 0,
			Response: record.Response{Name: name, Unit: record.Second, Better: record.Lower}, Level: analyse.Level{N: 4, Typical: 0.0123}, Estimate: e, Verdict: verdict})
	}
	return out
}

// TestLines: six sandboxes fit in 15 lines of 80 columns with the line of the results, and what a
// command printed cannot change a terminal or the table.
func TestLines(t *testing.T) {
	r := &analyse.Result{}
	for i, k := range []string{"process", "runc", "crun", "runsc-systrap", "runsc-ptrace", "vm"} {
		e, v := estimate(1+float64(i), 0.9+float64(i), 1.1+float64(i)), stat.Slower
		if k == "process" {
			e, v = stat.Estimate{}, ""
		}
		r.Compared = append(r.Compared, comparisons("a|b \x1b[2J", k, e, v)...)
	}
	failing := &r.Compared[len(r.Compared)-4]
	failing.Level = analyse.Level{}
	failing.Failures = []analyse.Reason{{Text: "main ended"}}
	r.Failures = []analyse.FailedTrial{{Cell: failing.Cell, Failure: record.Failure{Reason: "main ended",
		Tail: "timed: run 1 ended with exit code 3\nfirst\n\x1b[2Jlast " + strings.Repeat("words ", 30)}}}
	r.Causes = []cause.Finding{{CellKey: record.CellKey{Cell: r.Compared[12].Cell}, Costs: true, Cause: cause.Interception}}
	rows := Of(r)
	lines := Text(rows, nil, nil, terminal.Ink{})
	all := strings.Join(lines, "\n")
	if len(lines) > 14 {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range append(lines, Live(rows)...) {
		if utf8.RuneCountInString(l) > Width || strings.Contains(l, "\x1b") {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(l), l)
		}
	}
	for _, want := range []string{"does not work: ended with exit code 3:\n  \\x1b[2Jlast words", "4.00 × the cost (3.90 to 4.10): system calls cost more"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	md := strings.Join(Markdown(rows), "\n")
	if !strings.Contains(md, `| `+"`a\\|b \\x1b[2J`"+` | crun | 12.3 ms |`) || strings.Count(md, "\n") != 7 {
		t.Errorf("%s", md)
	}
}

// TestManySandboxes: whatever the number of sandboxes, the answer has 15 lines at most, and each
// sandbox its cost and its start.
func TestManySandboxes(t *testing.T) {
	for n := 2; n <= 12; n++ {
		r := &analyse.Result{Compared: comparisons("a", "process", stat.Estimate{}, "")}
		for i := 1; i < n; i++ {
			kind := fmt.Sprintf("runsc-kind-%d", i)
			r.Compared = append(r.Compared, comparisons("a", kind, estimate(float64(i)+1, float64(i)+0.9, float64(i)+1.1), stat.Slower)...)
			r.Overheads = append(r.Overheads, analyse.Overhead{Sandbox: kind, Start: time.Duration(i) * time.Second})
		}
		lines := Text(Of(r), nil, nil, terminal.Ink{})
		all := strings.Join(lines, "\n")
		if len(lines) > mostLines {
			t.Errorf("%d sandboxes have %d lines:\n%s", n, len(lines), all)
		}
		for i := 1; i < min(n, 9); i++ {
			if !strings.Contains(all, fmt.Sprintf("  %d.00 × the cost (%d.90 to %d.10)", i+1, i, i+1)) || !strings.Contains(all, fmt.Sprintf(" %d.00 s", i)) {
				t.Errorf("of %d sandboxes the cost or the start of number %d is missing:\n%s", n, i, all)
			}
		}
	}
}

// TestGoesOn: that more is measured where a cost looks like none is told, of the widest interval.
func TestGoesOn(t *testing.T) {
	row := func(sandbox string, f Figure) Row { return Row{Sandbox: sandbox, Figures: []Figure{f}} }
	free := row("runc", Figure{Estimate: estimate(1.001, 0.976, 1.027), Verdict: stat.Equivalent})
	dear := row("vm", Figure{Estimate: estimate(2, 1.5, 2.7), Verdict: stat.Slower, Called: true})
	if got := GoesOn([]Row{dear, free}, 0.02); got != "goes on until costs are known to ±2 %; runc: ±2.6 %" {
		t.Errorf("%q", got)
	}
	if got := GoesOn([]Row{dear, {Sandbox: "process", Baseline: true}, free}, 0.03); got != "" {
		t.Errorf("narrow enough: %q", got)
	}
}

// TestStarts: the start of a sandbox has its interval, and its ratio to the native one of the same
// block; with two blocks nothing can be said.
func TestStarts(t *testing.T) {
	rows := []Row{{Sandbox: "process", Baseline: true}, {Sandbox: "runc"}, {Command: "b", Sandbox: "process", Baseline: true}, {Command: "b", Sandbox: "runc"}}
	var trials []record.Trial
	for block := 1; block <= 4; block++ {
		for sandbox, start := range map[string]float64{"process": 0.01, "runc": 0.04} {
			trials = append(trials, record.Trial{Block: block, Status: record.OK, Cell: record.Cell{{Factor: "sandbox", Value: sandbox}},
				Samples: []record.Sample{{Name: "sandbox_start", Labels: record.MakeLabels("sandbox", sandbox), Unit: record.Second, Value: start * (1 + 0.01*float64(block))}}})
		}
	}
	got := Starts(rows, trials)
	if len(got) != 1 || !strings.HasPrefix(got[0], "runc starts in 41.0 ms ±2 %") || !strings.HasSuffix(got[0], ": 4.00 × natively (4.00 to 4.00)") {
		t.Errorf("%q", got)
	}
	for i := range trials {
		whole := trials[i].Samples[0]
		whole.Name, whole.Value = record.SandboxLife, whole.Value/2
		trials[i].Samples = append(trials[i].Samples, whole)
	}
	if got := Starts(rows, trials); len(got) != 1 || !strings.HasPrefix(got[0], "runc starts and ends in 20.5 ms ±2 %: 4.00 × natively") {
		t.Errorf("a whole life: %q", got)
	}
	for i := range trials {
		trials[i].Samples = trials[i].Samples[:1]
		trials[i].Samples[0].Value *= 1 + float64(i%4)
	}
	if got := Starts(rows, trials); len(got) != 1 || strings.Contains(got[0], "±") || !strings.Contains(got[0], " ms (") {
		t.Errorf("noisy: %q", got)
	}
	rows[1].Sandbox = strings.Repeat("r", 30) // no room for both intervals: neither is cut
	for i := range trials {
		if sandbox, _ := trials[i].Cell.Get("sandbox"); sandbox == "runc" {
			trials[i].Cell = record.Cell{{Factor: "sandbox", Value: rows[1].Sandbox}}
			trials[i].Samples[0].Labels = record.MakeLabels("sandbox", rows[1].Sandbox)
		}
	}
	if got := Starts(rows, trials); len(got) != 1 || !strings.HasSuffix(got[0], " ms)") || strings.Contains(got[0], "natively") {
		t.Errorf("long: %q", got)
	}
	if got := Starts(rows, trials[:4]); got != nil {
		t.Errorf("of two blocks: %q", got)
	}
}

// TestBecause: every cause of a cost is said in so few words that it fits behind the cost.
func TestBecause(t *testing.T) {
	for want, f := range map[string]cause.Finding{
		"system calls cost more":                       {Cause: cause.Interception},
		"a thread of the sandbox is full: gofer":       {Cause: cause.Helper, Role: "gofer"},
		"its processors are full, or the host is busy": {Cause: cause.Untold, Among: []cause.Name{cause.Guest, cause.None, cause.Host}},
		"the sandbox's own work":                       {Cause: cause.Untold, Among: []cause.Name{cause.None, cause.Other}},
		"cause unknown, no readings":                   {Cause: cause.Unknown},
	} {
		if got := because(&f); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
	if because(&cause.Finding{Cause: cause.None}) != itself || because(&cause.Finding{Cause: cause.Other}) != itself {
		t.Error("no resource is full, and nothing is said")
	}
}

// TestTicks: what a clock of 10 ms cannot tell is said to be less, not to be missing.
func TestTicks(t *testing.T) {
	for wall, want := range map[float64]string{0.005: "<10 ms", 0.5: "<100 ms"} {
		list := comparisons("a", "runsc", estimate(2, 1.9, 2.1), stat.Slower)
		list[0].Level.Typical = wall
		list[1].Level = analyse.Level{Missing: 4, BelowNoise: 4}
		if got := Text(Of(&analyse.Result{Compared: list}), nil, nil, terminal.Ink{})[1]; !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNotes: a busy host and an emulated processor are told, a line each; nothing else is.
func TestNotes(t *testing.T) {
	busy := record.Host{Warnings: []record.Warning{{Code: "turbo", Text: "turbo"}, {Code: "load", Text: "the load average is 10.25 on 2 processors before anything was started; stop the other work"}}}
	r := &analyse.Result{Accelerators: []analyse.Accelerator{
		{Sandbox: "vm", Trials: map[string]int{record.AcceleratorTCG: 2}}, {Sandbox: "other", Trials: map[string]int{record.AcceleratorKVM: 2}}}}
	want := []string{"busy host: the load average is 10.25 on 2 processors at the start", "without KVM: the processor of vm is emulated, which is most of the cost"}
	if got := Notes(r, []record.Host{busy, busy}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Notes(&analyse.Result{}, []record.Host{{}}); got != nil {
		t.Errorf("of a quiet host: %q", got)
	}
}

// TestBeside: commands are compared natively by the blocks that both have.
func TestBeside(t *testing.T) {
	r := &analyse.Result{Compared: append(comparisons("a", "process", stat.Estimate{}, ""), comparisons("b", "process", stat.Estimate{}, "")...)}
	var trials []record.Trial
	for block := 1; block <= 6; block++ {
		drift := float64(block)
		for command, x := range map[string]float64{"a": 2, "b": 1 + 0.001*float64(block%2)} {
			if command == "b" && block == 3 {
				continue
			}
			trials = append(trials, record.Trial{Block: block, Status: record.OK, Cell: record.Cell{{Factor: "command", Value: command}, {Factor: "sandbox", Value: "process"}},
				Samples: []record.Sample{{Name: "wall", Unit: record.Second, Kind: record.Value, Value: x * drift}}})
		}
	}
	rows := Of(r)
	got := Beside(stat.NewRule(0.95, 0.02, 0.03, []int{3, 6}, 0), rows, trials)
	if len(got) != 1 || !strings.HasPrefix(got[0], "b natively, beside the first: 2.00 × faster (") {
		t.Errorf("%q", got)
	}
	for i := range rows {
		rows[i].Command = strings.Repeat(rows[i].Command, 30)
	}
	for i := range trials {
		c := &trials[i].Cell[0]
		c.Value = strings.Repeat(c.Value, 30)
	}
	if got := Beside(stat.NewRule(0.95, 0.02, 0.03, []int{3, 6}, 0), rows, trials[:4]); len(got) != 1 || !strings.HasSuffix(got[0], ": about 2.00 × faster") {
		t.Errorf("of two blocks: %q", got)
	}
	if got := Beside(stat.Rule{}, rows[:1], trials); got != nil {
		t.Errorf("of one command: %q", got)
	}
}

func TestFailure(t *testing.T) {
	for in, want := range map[record.Failure]string{
		{Reason: "main did not end", Tail: ""}:                                                                                                                                        "main did not end//",
		{Reason: "x", Tail: "timed: run 2 was killed by SIGSEGV\n"}:                                                                                                                   "was killed by SIGSEGV//",
		{Reason: "x", Tail: "timed: run 12 ended with exit code 2\na\nb\n"}:                                                                                                           "ended with exit code 2//a\nb",
		{Reason: "x", Tail: "timed: the command that prepares run 1 ended with exit 1\nq"}:                                                                                            "the command that prepares run 1 ended with exit 1//q",
		{Reason: "x", Tail: "timed: run 1 did not end within 3 s and printed nothing; give more with timeout"}:                                                                        "did not end within 3 s and printed nothing; give more with --timeout//",
		{Reason: "x", Tail: "timed: run 1 cannot start a: it is not in PATH, which is /bin; write its path, or set PATH in env"}:                                                      "cannot start a: it is not in PATH, which is /bin; write its path, or --env PATH=...//",
		{Reason: "the output of main cannot be read: run 3: figure x: the output is not JSON; its output ends with: hi", Tail: "hi\n"}:                                                "figure x: the output is not JSON//hi",
		{Reason: "client ended with exit code 1: tare http: no answer to GET / within 200ms; measure for longer", Tail: "tare http: no answer"}:                                       "no answer to GET / within 200ms; measure for longer//",
		{Reason: "server ended with exit code 1: the file system is read-only (b: Read-only); give it a directory to write to with mounts", Tail: "a\nb: Read-only\n"}:                "server ended with exit code 1: the file system is read-only; give it a directory to write to with --mount DIR:PATH//a\nb: Read-only",
		{Reason: "main was killed: out of memory (its limit is 64MiB); raise the memory limit or ask for less"}:                                                                       "was killed: out of memory (its limit is 64MiB); raise --memory or ask for less//",
		{Reason: "x", Tail: "timed: run 1 cannot start a: exec format error: it is neither a program of this processor nor a script with #!; write shell: true for a script without"}: "cannot start a: exec format error: it is neither a program of this processor nor a script with #!; --shell for a script without//",
		{Reason: "x", Tail: "sh: timed: out"}: "x//sh: timed: out",
	} {
		how, said := Failure(&in)
		if got := fmt.Sprintf("%s//%s", how, said); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNoEnd: a command that ends natively and hangs in a sandbox does not end there, and its last words
// follow.
func TestNoEnd(t *testing.T) {
	r := &analyse.Result{Compared: append(comparisons("a", "process", stat.Estimate{}, ""), comparisons("a", "runsc-systrap", stat.Estimate{}, "")...)}
	failing := &r.Compared[4]
	failing.Level = analyse.Level{}
	r.Failures = []analyse.FailedTrial{{Cell: failing.Cell, Failure: record.Failure{Kind: "died", Reason: "main ended with exit code 124",
		Tail: "timed: run 1 did not end within 10 s; give more with timeout\nfirst\nwaiting for a lock\n"}}}
	all := strings.Join(Text(Of(r), nil, nil, terminal.Ink{}), "\n")
	if want := "runsc-systrap  does not end there within 10 s; give more with --timeout:\n  waiting for a lock"; !strings.HasSuffix(all, want) {
		t.Errorf("no %q in\n%s", want, all)
	}
	r.Failures[0].Failure.Tail = "timed: run 1 did not end within 10 s and printed nothing; give more with timeout\n"
	if got := Live(Of(r))[2]; !strings.Contains(got, "does not end there within 10 s and printed nothing") {
		t.Errorf("%q", got)
	}
}
