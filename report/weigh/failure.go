package weigh

import (
	"strings"

	"tare/record"
)

// Failure says how a command failed, such as "ended with exit code 2", and what it printed last.
// The program that ran it (package timed) says the first on the line above the second.
func Failure(f *record.Failure) (how, said string) {
	how, said = f.Reason, strings.TrimSpace(f.Tail)
	if _, figure, ok := strings.Cut(how, " cannot be read: run "); ok {
		if _, figure, ok = strings.Cut(figure, ": "); ok {
			figure, _, _ = strings.Cut(figure, "; its output ") // which follows
			return figure, said
		}
	}
	// The built-in client says it by itself.
	if _, text, ok := strings.Cut(how, "tare http: "); ok {
		return text, ""
	}
	first, rest, _ := strings.Cut(said, "\n")
	if text, ok := strings.CutPrefix(first, "timed: "); ok {
		how, said = text, strings.TrimSpace(rest)
		if run, is := strings.CutPrefix(text, "run "); is {
			_, how, _ = strings.Cut(run, " ")
		}
		return inFlags(how), said
	}
	// A line of the output that a reason quotes stands below it.
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" {
			how = strings.TrimSuffix(strings.Replace(how, " ("+line+")", "", 1), ": "+line)
		}
	}
	return inFlags(how), said
}

// inFlags names flags where a reason names parameters of a study.
func inFlags(how string) string {
	return strings.NewReplacer("give more with timeout", "give more with --timeout", "set PATH in env", "--env PATH=...", "to write to with mounts", "to write to with --mount DIR:PATH",
		"set writable: true where the workload has that", "give --writable",
		"write shell: true for a script without", "--shell for a script without",
		"main was killed", "was killed", "raise the memory limit", "raise --memory").Replace(how)
}
