package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"tare/report/terminal"
)

// questions are those of `tare init`. Each one that a flag has answered is left out.
type questions struct {
	app   *app
	flags initFlags
	in    io.Reader // nil: there is nobody to ask
	make  func(initFlags) (string, *weighing, error)
	lines *bufio.Scanner
}

// what asks for what is weighed.
func (q *questions) what() error {
	f := &q.flags
	if len(f.commandTexts) > 0 || f.server != "" || len(f.shipped) > 0 {
		return nil
	}
	if q.in == nil {
		return coded(exitUsage, "without a terminal, say what to weigh: --command, --server or --workload; see `tare init --help`")
	}
	kind := ""
	err := q.ask("What is to be weighed: a command, a server, or a workload that tare ships?", "command", func(_ *initFlags, text string) error {
		for _, k := range []string{"command", "server", "workload"} {
			if strings.HasPrefix(k, strings.ToLower(text)) {
				kind = k
				return nil
			}
		}
		return fmt.Errorf("write command, server or workload")
	})
	if err != nil {
		return err
	}
	switch kind {
	case "server":
		return q.server()
	case "workload":
		for _, w := range shippedWorkloads() {
			q.app.note("  %-14s %s", w.Name(), w.About())
		}
		return q.checked("Which, such as net,fio?", "", func(f *initFlags, text string) { f.shipped = strings.Split(strings.ReplaceAll(text, " ", ""), ",") })
	}
	return q.checked("The command, as you type it?", "", func(f *initFlags, text string) { f.commandTexts = []string{text} })
}

func (q *questions) server() error {
	err := q.ask("The server, as you type it? It stays in the foreground.", "", func(f *initFlags, text string) error { f.server = text; return nil })
	if err != nil {
		return err
	}
	const other = "no HTTP"
	err = q.ask("The port and path that it answers HTTP at, such as 8080/?", other, func(f *initFlags, text string) error {
		if text == other {
			return nil
		}
		f.http = text
		_, _, err := q.make(*f)
		return err
	})
	if err != nil || q.flags.http != "" {
		return err
	}
	err = q.ask("The TCP port that it listens on?", "", func(f *initFlags, text string) error { f.ready = "tcp:" + text; return nil })
	if err != nil {
		return err
	}
	return q.checked("The command that loads it? {server} in it is its address.", "", func(f *initFlags, text string) { f.load = text })
}

// how asks for the rest, if anybody is there.
func (q *questions) how() error {
	f := &q.flags
	if q.in == nil {
		return nil
	}
	for _, x := range []struct {
		flag, question, preset string
		set                    func(*initFlags, string)
	}{
		{"in", "In which sandboxes, beside native processes?", strings.Join(f.in, ","), func(f *initFlags, text string) { f.in = strings.Split(text, ",") }},
		{"cpus", "With how many cores at most, such as 1.5?", noLimit, func(f *initFlags, text string) { f.cpus = limit(text) }},
		{"memory", "With how much memory at most, such as 512MiB?", noLimit, func(f *initFlags, text string) { f.memory = limit(text) }},
		{"budget", "For how long at most?", f.within, func(f *initFlags, text string) { f.within = text }},
	} {
		if f.given(x.flag) {
			continue
		}
		if err := q.checked(x.question, x.preset, x.set); err != nil {
			return err
		}
	}
	return nil
}

const noLimit = "no limit"

func limit(text string) string {
	if text == noLimit {
		return ""
	}
	return text
}

// checked is ask for an answer that a study can be made with.
func (q *questions) checked(question, preset string, set func(*initFlags, string)) error {
	return q.ask(question, preset, func(f *initFlags, text string) error {
		set(f, text)
		_, _, err := q.make(*f)
		return err
	})
}

// maxReply bounds an answer, in bytes.
const maxReply = 64 << 10

// ask asks until take accepts the answer. An empty one is the preset; without a preset there must
// be one.
func (q *questions) ask(question, preset string, take func(*initFlags, string) error) error {
	if q.lines == nil {
		q.lines = bufio.NewScanner(q.in)
		q.lines.Buffer(nil, maxReply)
	}
	for {
		fmt.Fprint(q.app.stderr, terminal.Line(question), " ")
		if preset != "" {
			fmt.Fprintf(q.app.stderr, "[%s] ", terminal.Line(preset))
		}
		if !q.lines.Scan() {
			fmt.Fprintln(q.app.stderr)
			return coded(exitUsage, "the question has no answer; give it as a flag, see `tare init --help`")
		}
		text := strings.TrimSpace(q.lines.Text())
		if text == "" {
			text = preset
		}
		if text == "" {
			continue
		}
		f := q.flags
		err := take(&f, text)
		if err == nil {
			q.flags = f
			return nil
		}
		q.app.say("%v", err)
	}
}
