package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// RecipeFile is the recipe's name in the folder of an image.
const RecipeFile = "image.yaml"

const (
	maxRecipe = 256 << 10 // bytes of image.yaml
	maxItems  = 2000      // items of one list
)

// Recipe says what an image is made of. Its parts are put into the tree in the order of the
// fields, so a file may replace a package's file.
type Recipe struct {
	Name     string
	About    string            // one line
	Packages []string          // of the distribution, with their dependencies but not their recommendations; "a | b" is the first that exists
	Only     []string          // path.Match patterns: of all these packages, take only those whose name matches
	Programs []string          // of this host, with their libraries
	Wheels   []Wheel           // from the package index: exactly these, without dependencies
	Files    []File            // from the folder of the recipe
	Links    []Link            // symbolic links
	Run      [][]string        // commands run once in the tree, isolated
	Remove   []string          // path.Match patterns of absolute paths, removed last
	Command  []string          // for users who load the image elsewhere; tare does not use it
	Env      map[string]string // likewise
}

// Wheel is one pinned Python package.
type Wheel struct {
	Name, Version string
	// In hexadecimal. Any of them is accepted, because a wheel is another file for each
	// processor and Python. If empty, the index's hash is accepted.
	SHA256 []string
}

func (w Wheel) String() string { return w.Name + "==" + w.Version }

// File is one file of the recipe's folder.
type File struct {
	From string // slash-separated, below the folder
	To   string // absolute path in the tree
	Mode fs.FileMode
}

// Link is one symbolic link.
type Link struct{ Path, Target string }

// Error is one mistake in a recipe.
type Error struct {
	File         string
	Line, Column int // from 1; 0: not known
	Text         string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
}

var (
	nameRE    = regexp.MustCompile(`^[a-z][a-z0-9]*([-_.][a-z0-9]+)*$`)
	packageRE = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+( \| [a-z0-9][a-z0-9+.-]+)*$`)
	patternRE = regexp.MustCompile(`^([a-z0-9+.*?-]|\[([a-z0-9+](-[a-z0-9])?)+\])+$`)
	wheelRE   = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)==([0-9][A-Za-z0-9.+!_-]*)((?: sha256:[0-9a-f]{64})*)$`)
	programRE = regexp.MustCompile(`^(/[A-Za-z0-9+._/-]+|[A-Za-z0-9+._][A-Za-z0-9+._-]*)$`)
	envRE     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Parse reads a recipe. The error joins an *Error for each mistake, with its place. name is
// the folder's name, file the name of the file in errors.
func Parse(name, file string, src io.Reader) (Recipe, error) {
	p := parser{file: file, recipe: Recipe{Name: name}}
	b, err := io.ReadAll(io.LimitReader(src, maxRecipe+1))
	if err != nil {
		return Recipe{}, fmt.Errorf("%s: %w", file, err)
	}
	if len(b) > maxRecipe {
		return Recipe{}, &Error{File: file, Text: fmt.Sprintf("the file is longer than %d KiB", maxRecipe>>10)}
	}
	if !nameRE.MatchString(name) {
		p.bad(nil, "the folder's name %q must be lower-case words joined by - _ or .", name)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return Recipe{}, yamlError(file, err)
	}
	if len(doc.Content) == 0 {
		return Recipe{}, &Error{File: file, Line: 1, Column: 1, Text: "the file is empty; write about: and the parts of the image, such as packages:"}
	}
	p.document(doc.Content[0])
	if len(p.errs) > 0 {
		return Recipe{}, errors.Join(p.errs...)
	}
	return p.recipe, nil
}

// yamlError takes the place from the library's error text.
func yamlError(file string, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if n, msg, ok := strings.Cut(rest, ": "); ok {
			if line, err := strconv.Atoi(n); err == nil {
				return &Error{File: file, Line: line, Column: 1, Text: msg}
			}
		}
	}
	return &Error{File: file, Line: 1, Column: 1, Text: text}
}

// parser walks the YAML nodes and collects mistakes.
type parser struct {
	file   string
	recipe Recipe
	errs   []error
}

func (p *parser) bad(n *yaml.Node, format string, args ...any) {
	e := &Error{File: p.file, Text: fmt.Sprintf(format, args...)}
	if n != nil {
		e.Line, e.Column = n.Line, n.Column
	}
	if len(p.errs) < 50 {
		p.errs = append(p.errs, e)
	}
}

func (p *parser) document(n *yaml.Node) {
	r := &p.recipe
	p.fields(n, map[string]func(*yaml.Node){
		"about": func(n *yaml.Node) { r.About = p.text(n) },
		"packages": func(n *yaml.Node) {
			r.Packages = p.words(n, packageRE, "the name of a Debian package, such as redis-server, or several with | between them; the first that exists is taken")
		},
		"only": func(n *yaml.Node) {
			r.Only = p.words(n, patternRE, "a pattern of package names, such as linux-image-*")
		},
		"programs": func(n *yaml.Node) { r.Programs = p.words(n, programRE, "a program of this host, such as sysbench") },
		"wheels":   p.wheels,
		"files":    p.files,
		"links":    p.links,
		"run":      p.commands,
		"remove":   p.remove,
		"command":  func(n *yaml.Node) { r.Command = p.texts(n) },
		"env":      p.env,
	})
	if r.About == "" && len(p.errs) == 0 {
		p.bad(n, "about: is missing; say in one line what the image is for")
	}
	if strings.ContainsAny(r.About, "\n\r") {
		p.bad(n, "about: must be one line")
	}
	if len(p.errs) == 0 && len(r.Only) > 0 && len(r.Packages) == 0 {
		p.bad(n, "only: chooses among packages:, but the recipe has no packages:")
	}
	if len(p.errs) == 0 && len(r.Packages)+len(r.Programs)+len(r.Wheels)+len(r.Files) == 0 {
		p.bad(n, "the image would be empty; write packages:, programs:, wheels: or files:")
	}
}

// fields calls the function of each key of a mapping, and refuses unknown keys.
func (p *parser) fields(n *yaml.Node, known map[string]func(*yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.bad(n, "expected keys with values, such as about: TEXT")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		f, ok := known[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !ok:
			p.bad(key, "unknown field %q; the fields are %s", key.Value, names(known))
		case seen[key.Value]:
			p.bad(key, "%s: is given twice", key.Value)
		default:
			seen[key.Value] = true
			f(n.Content[i+1])
		}
	}
}

func (p *parser) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.bad(n, "expected a text")
		return ""
	}
	if strings.ContainsRune(n.Value, 0) {
		p.bad(n, "a text cannot contain a zero byte")
		return ""
	}
	return n.Value
}

// items returns the items of a list. If n is not a list, it notes a mistake and returns nil.
func (p *parser) items(n *yaml.Node) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		p.bad(n, "expected a list, such as [a, b]")
		return nil
	}
	if len(n.Content) > maxItems {
		p.bad(n, "the list has more than %d items", maxItems)
		return nil
	}
	return n.Content
}

func (p *parser) texts(n *yaml.Node) []string {
	var out []string
	for _, item := range p.items(n) {
		out = append(out, p.text(item))
	}
	return out
}

func (p *parser) words(n *yaml.Node, re *regexp.Regexp, what string) []string {
	var out []string
	seen := map[string]bool{}
	for _, item := range p.items(n) {
		s := p.text(item)
		switch {
		case s == "" || !re.MatchString(s):
			p.bad(item, "%q is not %s", s, what)
		case seen[s]:
			p.bad(item, "%s is given twice", s)
		}
		seen[s] = true
		out = append(out, s)
	}
	return out
}

func (p *parser) wheels(n *yaml.Node) {
	for _, s := range p.words(n, wheelRE, "a wheel with its version, such as numpy==2.3.4, optionally followed by one or more sha256:HASH, separated by spaces") {
		if m := wheelRE.FindStringSubmatch(s); m != nil {
			w := Wheel{Name: m[1], Version: m[2]}
			for h := range strings.FieldsSeq(m[3]) {
				w.SHA256 = append(w.SHA256, strings.TrimPrefix(h, "sha256:"))
			}
			p.recipe.Wheels = append(p.recipe.Wheels, w)
		}
	}
}

func (p *parser) files(n *yaml.Node) {
	for _, item := range p.items(n) {
		f := File{Mode: 0o644}
		p.fields(item, map[string]func(*yaml.Node){
			"from": func(n *yaml.Node) {
				f.From = p.text(n)
				if !fs.ValidPath(f.From) || f.From == "." || f.From == RecipeFile {
					p.bad(n, "from: %q is not a file beside %s", f.From, RecipeFile)
				}
			},
			"to":   func(n *yaml.Node) { f.To = p.path(n) },
			"mode": func(n *yaml.Node) { f.Mode = p.mode(n) },
		})
		if f.From == "" || f.To == "" {
			p.bad(item, "a file needs from: and to:")
		}
		p.recipe.Files = append(p.recipe.Files, f)
	}
}

func (p *parser) mode(n *yaml.Node) fs.FileMode {
	v, err := strconv.ParseUint(p.text(n), 8, 32)
	if err != nil || v > 0o777 || v&0o400 == 0 {
		p.bad(n, "mode: %q is not an octal mode from \"0400\" to \"0777\" that its owner can read", n.Value)
		return 0o644
	}
	return fs.FileMode(v)
}

// path reads an absolute, clean path of the tree.
func (p *parser) path(n *yaml.Node) string {
	s := p.text(n)
	if why := badPath(s); why != "" {
		p.bad(n, "%q %s", s, why)
	}
	return s
}

func badPath(s string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(s, "/"), "/")
	switch {
	case !strings.HasPrefix(s, "/") || path.Clean(s) != s || s == "/":
		return "is not a clean absolute path, such as /app/app.js"
	case strings.HasPrefix(first, "tare"):
		return "is reserved for tare; choose another name"
	case first == "proc" || first == "sys" || first == "dev":
		return "is below a mount point and would be hidden"
	}
	return ""
}

func (p *parser) links(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.bad(n, "expected paths with targets, such as /usr/bin/x: y")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		l := Link{Path: p.path(n.Content[i]), Target: p.text(n.Content[i+1])}
		if seen[l.Path] {
			p.bad(n.Content[i], "%s is given twice", l.Path)
		}
		seen[l.Path] = true
		if l.Target == "" {
			p.bad(n.Content[i+1], "the link %s has no target", l.Path)
		}
		p.recipe.Links = append(p.recipe.Links, l)
	}
}

func (p *parser) commands(n *yaml.Node) {
	for _, item := range p.items(n) {
		args := p.texts(item)
		if len(args) == 0 || args[0] == "" {
			p.bad(item, "a command is a list of words, such as [python3, -m, compileall, /app]")
			continue
		}
		p.recipe.Run = append(p.recipe.Run, args)
	}
}

func (p *parser) remove(n *yaml.Node) {
	for _, item := range p.items(n) {
		s := p.text(item)
		if why := badPath(s); why != "" {
			p.bad(item, "%q %s", s, why)
		} else if _, err := path.Match(s, ""); err != nil {
			p.bad(item, "%q is not a pattern; see https://pkg.go.dev/path#Match", s)
		}
		p.recipe.Remove = append(p.recipe.Remove, s)
	}
}

func (p *parser) env(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.bad(n, "expected names with values, such as LANG: C.UTF-8")
		return
	}
	p.recipe.Env = map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if _, twice := p.recipe.Env[key.Value]; twice || !envRE.MatchString(key.Value) {
			p.bad(key, "%q is not a valid variable name, or is given twice", key.Value)
		}
		p.recipe.Env[key.Value] = p.text(n.Content[i+1])
	}
}
