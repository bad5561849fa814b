package loadfile

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"go.yaml.in/yaml/v3"

	"tare/param"
)

// Bounds of one rendering: its work, and what it writes.
const (
	maxTicks    = 20_000 // passes of loops, and calls of templates
	maxRendered = 256 << 10
)

// goTemplate is a template of text/template, whose renderings are bounded and know where their lines come from.
type goTemplate struct {
	file string // "" the configuration
	pool sync.Pool
}

// rendering is one copy of a template, with the state of its functions.
type rendering struct {
	template *template.Template
	*state
}

// Names of the trees: those of files may hold anything.
const (
	mainTree  = "main"
	otherTree = "functions"
)

// The marks that tell where a line comes from stand in the rendered text as \x01LINE\x02.
var markRE = regexp.MustCompile("\x01(\\d+)\x02")

// parseTemplate reads a template, and files with functions that it may call.
func parseTemplate(file, src string, functions map[string]string, missing string) (*goTemplate, error) {
	t := &goTemplate{file: file}
	if strings.ContainsAny(src, "\x01\x02") {
		return nil, &param.FileError{Param: Param, File: file, Line: 1, Column: 1, What: "there are control characters in it", Instead: "remove them"}
	}
	root := template.New(mainTree).Option("missingkey=" + missing).Funcs(newState().functions())
	for name, text := range functions {
		if _, err := root.New(otherTree).Parse(text); err != nil {
			return nil, located(name, err, nil)
		}
	}
	if _, err := root.Parse(src); err != nil {
		return nil, located(file, err, nil)
	}
	tick := template.Must(template.New("").Funcs(newState().functions()).Parse("{{" + tickName + "}}")).Root.Nodes[0]
	for _, x := range root.Templates() {
		if x.Tree == nil || x.Root == nil {
			continue
		}
		m := &marker{tick: tick}
		if x.ParseName == mainTree {
			m.src = src
		}
		m.list(x.Root)
		x.Root.Nodes = append([]parse.Node{tick}, x.Root.Nodes...)
	}
	t.pool.New = func() any {
		s := newState()
		return &rendering{template: template.Must(root.Clone()).Funcs(s.functions()), state: s} // it has not run, so it can be cloned
	}
	return t, nil
}

// marker puts marks and ticks into a tree.
type marker struct {
	src  string // "": it gets no marks
	tick parse.Node
}

func (m *marker) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			m.text(n)
		case *parse.IfNode:
			m.list(n.List)
			m.list(n.ElseList)
		case *parse.WithNode:
			m.list(n.List)
			m.list(n.ElseList)
		case *parse.RangeNode:
			m.list(n.List)
			m.list(n.ElseList)
			n.List.Nodes = append([]parse.Node{m.tick}, n.List.Nodes...)
		}
	}
}

func (m *marker) text(n *parse.TextNode) {
	if m.src == "" {
		return
	}
	line := 1 + strings.Count(m.src[:min(int(n.Pos), len(m.src))], "\n")
	var out bytes.Buffer
	fmt.Fprintf(&out, "\x01%d\x02", line)
	for i, part := range bytes.SplitAfter(n.Text, []byte("\n")) {
		if i > 0 {
			line++
			fmt.Fprintf(&out, "\x01%d\x02", line)
		}
		out.Write(part)
	}
	n.Text = out.Bytes()
}

// render runs the template. marks are the lines of its file that the lines of the text come from. Functions that draw something
// draw the same for the same seed.
func (t *goTemplate) render(data map[string]any, seed string, env map[string]string) (text string, marks []int, err error) {
	r, _ := t.pool.Get().(*rendering) // New makes no others
	defer t.pool.Put(r)
	r.begin(seed, env)
	out := &bounded{}
	if err := r.template.Execute(out, data); err != nil {
		return "", nil, located(t.file, err, data)
	}
	last := 1
	var plain strings.Builder
	for line := range strings.Lines(out.String()) {
		first := last
		for i, m := range markRE.FindAllStringSubmatch(line, -1) {
			last, _ = strconv.Atoi(m[1]) // its own
			if i == 0 {
				first = last
			}
		}
		marks = append(marks, first)
		plain.WriteString(markRE.ReplaceAllString(line, ""))
	}
	return plain.String(), marks, nil
}

// bounded is a text that does not grow without end.
type bounded struct{ strings.Builder }

var errTooLong = fmt.Errorf("the output has more than %d bytes", maxRendered)

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxRendered {
		return 0, errTooLong
	}
	return b.Builder.Write(p) //nolint:wrapcheck // it has none
}

var _ io.Writer = (*bounded)(nil)

var (
	placeRE    = regexp.MustCompile(`template: (\w*):(\d+):(?:(\d+):)? `)
	executesRE = regexp.MustCompile(`executing "\w*" at <[^>]*>: |error calling \w+: `)
	missingRE  = regexp.MustCompile(`^map has no entry for key "(.*)"$`)
	functionRE = regexp.MustCompile(`^function "(.*)" not defined$`)
	variableRE = regexp.MustCompile(`(?:^|[^\w.\])])\.([A-Za-z_]\w*)`) // of the data, not a part of another
)

// located gives an error of text/template its place in a file. data has the variables.
func located(file string, err error, data map[string]any) error {
	e := &param.FileError{Param: Param, File: file, Line: 1, Column: 1, What: err.Error(), Instead: "see docs/workloads/objects-files.md for what templates may do"}
	if m := placeRE.FindStringSubmatchIndex(e.What); m != nil {
		e.Line, _ = strconv.Atoi(e.What[m[4]:m[5]]) // digits
		if m[6] >= 0 {
			e.Column, _ = strconv.Atoi(e.What[m[6]:m[7]])
			e.Column++ // text/template counts from 0
		}
		e.What = e.What[m[1]:]
	}
	var exec template.ExecError
	if errors.As(err, &exec) {
		e.What = executesRE.ReplaceAllString(e.What, "")
	}
	e.Line, e.Column = max(1, e.Line), max(1, e.Column)
	if m := missingRE.FindStringSubmatch(e.What); m != nil {
		e.What, e.Instead = fmt.Sprintf("the variable %.100q has no value", m[1]), fmt.Sprintf("add %.100s: VALUE below inputVars of the object; %s", m[1], param.Suggest(m[1], slices.Sorted(maps.Keys(data))))
		return e
	}
	if m := functionRE.FindStringSubmatch(e.What); m != nil {
		if near := param.Suggest(m[1], slices.Sorted(maps.Keys(newState().functions()))); strings.HasPrefix(near, "did you mean") {
			e.Instead = near // instead of all
		}
	}
	e.What = "the template: " + strings.ToValidUTF8(e.What[:min(len(e.What), 300)], "")
	return e
}

// state is that of the functions during a rendering.
type state struct {
	ticks int
	draw  *rand.Rand
	env   map[string]string // for the function env: never that of this process
}

func newState() *state { return &state{} }

func (s *state) begin(seed string, env map[string]string) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed))
	s.ticks, s.env, s.draw = 0, env, rand.New(rand.NewPCG(h.Sum64(), 2)) //nolint:gosec // a load, no secret
}

// renderConfig renders a configuration that is a template, with the values of its variables.
func (p *parser) renderConfig(src string, vars map[string]string) (string, []int, error) {
	data := map[string]any{}
	for name, v := range vars {
		var x any
		if err := yaml.Unmarshal([]byte(v), &x); err != nil {
			x = v
		}
		data[name] = x
	}
	data["UUID"], data["RunID"] = uuid, uuid
	t, err := parseTemplate("", src, nil, "zero")
	if err != nil {
		return "", nil, err
	}
	text, marks, err := t.render(data, "config", vars)
	if err != nil {
		return "", nil, err
	}
	n := 0
	for line := range strings.Lines(text) {
		if n++; strings.Contains(line, "<no value>") {
			return "", nil, unset(src, marks[n-1], data)
		}
	}
	return text, marks, nil
}

// unset names the variable of a line of the file that has no value.
func unset(src string, line int, data map[string]any) error {
	e := &param.FileError{Param: Param, Line: line, Column: 1, What: "a variable of this line has no value", Instead: "write it below the workload, as vars: NAME=VALUE"}
	text := strings.Split(src, "\n")[line-1]
	for _, action := range actionRE.FindAllStringIndex(text, -1) {
		for _, m := range variableRE.FindAllStringSubmatchIndex(text[:action[1]], -1) {
			name := text[m[2]:m[3]]
			if _, has := data[name]; has || m[0] < action[0] {
				continue
			}
			e.Column, e.What = m[2], fmt.Sprintf("the variable %.100q has no value", name)
			e.Instead = fmt.Sprintf("write vars: %.100s=VALUE below the workload; %s", name, param.Suggest(name, slices.Sorted(maps.Keys(data))))
			return e
		}
	}
	return e
}
