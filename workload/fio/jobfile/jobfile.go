// Package jobfile reads job files of fio, and refuses what a load does not need.
//
// The data path: 1. Parse splits the text into sections, drops comments, and puts in the values of
// ${VARIABLES}; 2. Check compares each option with a list of options that only describe a load
// (options.go), and each file name with the target; 3. File.Text writes the checked options as a new
// job file. fio reads only that text, so it sees nothing that this package has not checked.
//
// Reference: fio(1), "Job file format"; fio's init.c, parse.c (substitute_vars,
// strip_blank_end).
package jobfile

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of a job file. Each job is a process with its own histograms in fio's output.
const (
	MaxText     = 64 << 10 // bytes: it travels in a command line
	MaxSections = 64
	MaxJobs     = 256
	maxOptions  = 4096
)

// Error is a mistake in a job file, and its place.
type Error struct {
	Line, Column  int // from 1
	What, Instead string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s; %s", e.Line, e.Column, e.What, e.Instead)
}

// File is a job file.
type File struct {
	Sections []Section // without [global]; each section after it has its options
}

// Section is a job of the file, which NumJobs processes run.
type Section struct {
	Name    string
	Line    int
	Options []Option // those of [global] first; the last of a name counts
}

// Option is one line of a section.
type Option struct {
	Name, Value  string
	Bare         bool // it has no value: fio takes it for true
	Line, Column int
	At           int // column of the value; Column if it is bare
}

// Parse reads a job file. lookup returns the value of a ${VARIABLE}.
func Parse(text string, lookup func(name string) (string, bool)) (*File, error) {
	if len(text) > MaxText {
		return nil, &Error{1, 1, fmt.Sprintf("the job file has %d bytes", len(text)), fmt.Sprintf("write at most %d: remove comments", MaxText)}
	}
	f := &File{}
	var global, current []Option
	in := "" // the section under way; "global" too
	end := func() {
		if n := len(f.Sections); in == globalName {
			global = append(global, current...)
		} else if in != "" {
			f.Sections[n-1].Options = append(slices.Clone(global), current...)
		}
		current = nil
	}
	count := 0
	for n, line := range strings.Split(text, "\n") {
		n++
		body, column := trim(line)
		bad := func(at int, what, instead string) (*File, error) { return nil, &Error{n, at, what, instead} }
		switch {
		case body == "":
			continue
		case body[0] == '[':
			name, ok := strings.CutSuffix(body[1:], "]")
			if !ok || name == "" || strings.ContainsAny(name, "[]") {
				return bad(column, fmt.Sprintf("%q is not the name of a section", body), "write [NAME]")
			}
			end()
			if in = name; name == globalName {
				continue
			}
			if err := nameOf(name); err != "" {
				return bad(column+1, err, "write a name of letters, digits, - and _, such as [read-4k]")
			}
			if len(f.Sections) == MaxSections {
				return bad(column, fmt.Sprintf("the job file has more than %d sections", MaxSections), "make several files of it")
			}
			for _, s := range f.Sections {
				if Word(s.Name) == Word(name) {
					return bad(column+1, fmt.Sprintf("line %d has a section of this name, so their figures would have the same names", s.Line), "rename one")
				}
			}
			f.Sections = append(f.Sections, Section{Name: name, Line: n})
			continue
		case in == "":
			return bad(column, "the option stands before the first section", "write [global] or [NAME] above it")
		}
		if count++; count > maxOptions {
			return bad(column, fmt.Sprintf("the job file has more than %d options", maxOptions), "make several files of it")
		}
		o, err := option(body, n, column, lookup)
		if err != nil {
			return nil, err
		}
		current = append(current, o)
	}
	end()
	if len(f.Sections) == 0 {
		return nil, &Error{1, 1, "the job file has no section beside [global], so nothing would run", "add [NAME] with the options of a job"}
	}
	return f, nil
}

const globalName = "global"

// trim removes the comment and the blanks from a line. column is where the rest begins. fio ends a
// line at its first ; or #.
func trim(line string) (body string, column int) {
	if i := strings.IndexAny(line, ";#"); i >= 0 {
		line = line[:i]
	}
	body = strings.TrimLeft(line, " \t\r")
	return strings.TrimRight(body, " \t\r"), len(line) - len(body) + 1
}

// nameOf says what is wrong with a section's name. Files and figures are named after the section.
func nameOf(name string) string {
	for _, r := range name {
		if !word(r) && r != '-' && r != '.' && r != ' ' {
			return fmt.Sprintf("the section's name has %q in it, and files are named after it", string(r))
		}
	}
	switch {
	case strings.Trim(name, ". -_") == "":
		return "the section's name has no letter"
	case strings.HasPrefix(name, globalName):
		return "fio takes each section whose name begins with global for [global]"
	case len(name) > 60:
		return "the section's name has more than 60 letters"
	}
	return ""
}

func word(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_'
}

// Word is a section's name, as a figure's name contains it.
func Word(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || !word(r) }), "_")
}

func option(body string, line, column int, lookup func(string) (string, bool)) (Option, error) {
	name, value, has := strings.Cut(body, "=")
	o := Option{Name: strings.TrimRight(name, " \t"), Bare: !has, Line: line, Column: column, At: column}
	if first, _, more := strings.Cut(o.Name, " "); more && first == "include" || o.Name == "include" {
		return o, &Error{line, column, "tare does not read a second file", "put the text of that file here"}
	}
	for _, r := range o.Name {
		if !word(r) && r != '-' {
			return o, &Error{line, column, fmt.Sprintf("%q is not the name of an option", o.Name), "write NAME=VALUE"}
		}
	}
	if o.Name == "" {
		return o, &Error{line, column, "the option has no name", "write NAME=VALUE"}
	}
	if !has {
		return o, nil
	}
	o.At = column + len(body) - len(strings.TrimLeft(value, " \t"))
	var err error
	o.Value, err = fill(strings.TrimLeft(value, " \t"), o.Line, o.At, lookup)
	return o, err
}

// fill puts in the values of ${VARIABLES}, as fio does with its environment. fio gives other words
// after a $ ($ncpus, $pagesize, $mb_memory) to a shell that runs bc.
func fill(value string, line, column int, lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for rest := value; rest != ""; {
		before, after, found := strings.Cut(rest, "$")
		b.WriteString(before)
		if !found {
			break
		}
		at := column + len(value) - len(after) - 1
		name, more, closed := strings.Cut(after, "}")
		if !strings.HasPrefix(name, "{") || !closed {
			if keyword(after) {
				b.WriteByte('$')
				rest = after
				continue
			}
			return "", &Error{line, at, "only ${NAME} is replaced here", "write ${NAME}, and give NAME in vars"}
		}
		text, ok := lookup(name[1:])
		if !ok {
			return "", &Error{line, at, fmt.Sprintf("nothing is called ${%s}", printable(name[1:])), "give it in vars, such as vars: \"" + printable(name[1:]) + "=4\", or use a parameter of the workload in capitals: ${BS}, ${IODEPTH}"}
		}
		b.WriteString(text)
		rest = more
	}
	return b.String(), nil
}

// keyword reports whether a text begins with one of fio's own words for filename_format.
func keyword(text string) bool {
	return slices.ContainsFunc([]string{"jobname", "jobnum", "filenum"}, func(k string) bool { return strings.HasPrefix(text, k) })
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if word(r) {
			return r
		}
		return '?'
	}, s[:min(len(s), 40)])
}

// Get returns the option with this name. Of several, the last counts.
func (s *Section) Get(names ...string) (Option, bool) {
	for i := len(s.Options) - 1; i >= 0; i-- {
		if slices.Contains(names, s.Options[i].Name) {
			return s.Options[i], true
		}
	}
	return Option{}, false
}

// on reports whether a truth value is set.
func (s *Section) on(names ...string) bool {
	o, ok := s.Get(names...)
	return ok && (o.Bare || o.Value != "0")
}

// Waits reports whether a section begins only after the sections before it have ended.
func (s *Section) Waits() bool { return s.on("stonewall", "wait_for_previous") }

// Groups returns the indexes of the sections that run at the same time.
func (f *File) Groups() [][]int {
	var out [][]int
	for i := range f.Sections {
		if _, after := f.Sections[i].Get("wait_for"); i == 0 || f.Sections[i].Waits() || after {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], i)
	}
	return out
}

// Text returns the job file that fio reads: base, as options of [global], and the sections. It leaves
// out options that only shape fio's report, because tare sets its own. Each section has all its options,
// so the text needs no other [global].
func (f *File) Text(base ...string) string {
	var b strings.Builder
	b.WriteString("[global]\n" + strings.Join(base, "\n") + "\n")
	for i := range f.Sections {
		s := &f.Sections[i]
		b.WriteString("[" + s.Name + "]\n")
		for _, o := range s.Options {
			switch {
			case options()[o.Name] == report:
			case o.Bare:
				b.WriteString(o.Name + "\n")
			default:
				b.WriteString(o.Name + "=" + o.Value + "\n")
			}
		}
	}
	return b.String()
}
