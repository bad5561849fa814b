package study

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"tare/param"
)

// MaxSource bounds a study file, in bytes, including the files that it carries.
const MaxSource = 1 << 20

const (
	maxText = 1 << 10 // bytes of one level
	maxKey  = 128     // bytes of one key
)

// reader walks YAML nodes and collects mistakes with their places.
type reader struct {
	file   string
	errs   Errors
	extra  int                   // mistakes beyond maxErrors
	said   map[string]bool       // what was reported, so that nothing is said twice
	origin map[*yaml.Node]string // nodes made by --set, to the argument
}

// bad records a mistake at n.
func (r *reader) bad(n *yaml.Node, instead, format string, args ...any) {
	e := &Error{File: r.file, What: short(fmt.Sprintf(format, args...)), Instead: instead}
	if n != nil {
		e.Line, e.Column = n.Line, n.Column
		if set, ok := r.origin[n]; ok {
			e.File, e.Line, e.Column = Argument(set), 0, 0
		}
	}
	r.add1(e)
}

// Argument is what an error in a --set argument has in place of a file.
func Argument(set string) string { return "--set " + strconv.Quote(set) }

// short cuts an error text to a bound: it may quote half a file.
func short(what string) string {
	const most = 2 * maxText
	if len(what) <= most {
		return what
	}
	return strings.ToValidUTF8(what[:most], "") + "..."
}

// add1 records a mistake, unless it was said before.
func (r *reader) add1(e *Error) {
	text := e.Error()
	switch {
	case r.said[text]:
	case len(r.errs) >= maxErrors:
		r.extra++
	default:
		r.errs = append(r.errs, e)
	}
	if len(r.said) < 1000 {
		r.said[text] = true
	}
}

// refuse records an error whose text may itself end in "; what to write".
func (r *reader) refuse(n *yaml.Node, prefix string, err error, instead string) {
	what, hint, _ := strings.Cut(err.Error(), "; ")
	r.bad(n, cmp.Or(hint, instead), "%s%s", prefix, what)
}

// err returns everything found, nil when all is well.
func (r *reader) err() error {
	if len(r.errs) == 0 {
		return nil
	}
	// By place: the checks run in the order of their dependence, which is not
	// the order a person reads the file in.
	slices.SortStableFunc(r.errs, func(a, b *Error) int {
		if (a.Line == 0) != (b.Line == 0) {
			return b.Line - a.Line // arguments after the file
		}
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	if r.extra > 0 {
		return append(r.errs, &Error{File: r.file, What: fmt.Sprintf("and %d more", r.extra), Instead: "correct the ones above first"})
	}
	return r.errs
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// document reads the one document of a study file; nil after an error.
func (r *reader) document(src []byte) *yaml.Node {
	if len(src) > MaxSource {
		r.bad(nil, "a study file has at most 1 MiB", "the file has %d bytes", len(src))
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, next yaml.Node
	if err := dec.Decode(&doc); err != nil {
		r.syntax(err)
		return nil
	}
	switch err := dec.Decode(&next); {
	case err == nil:
		r.bad(&next, "put each study into a file of its own", "a second YAML document starts here")
		return nil
	case !errors.Is(err, io.EOF):
		r.syntax(err)
		return nil
	}
	if len(doc.Content) != 1 {
		r.syntax(io.EOF)
		return nil
	}
	root := doc.Content[0]
	if !r.plain(root) {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		r.bad(root, "begin with `study: NAME`", "the file is not a mapping of keys")
		return nil
	}
	return root
}

func (r *reader) syntax(err error) {
	if errors.Is(err, io.EOF) {
		r.bad(nil, "begin with `study: NAME`", "the file is empty")
		return
	}
	at := &yaml.Node{Line: 1, Column: 1}
	text := err.Error()
	if m := yamlLine.FindStringSubmatch(strings.SplitN(text, "\n", 2)[0]); m != nil {
		text = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			at.Line = n
		}
	}
	r.bad(at, "check the indentation, brackets and quotes around here", "not YAML: %s", text)
}

// plain refuses what makes YAML surprising: aliases (which also multiply without
// bound), anchors, and types by tag.
func (r *reader) plain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		r.bad(n, "write the value out", "alias *%s is not allowed", n.Value)
	case n.Anchor != "":
		r.bad(n, "remove it, and write the value out where it is used", "anchor &%s is not allowed", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		r.bad(n, "remove it", "tag %s is not allowed", n.Tag)
	default:
		ok := true
		for _, c := range n.Content {
			ok = r.plain(c) && ok
		}
		return ok
	}
	return false
}

// pair is a key of a mapping and its value.
type pair struct{ key, val *yaml.Node }

// mapping returns the pairs of a mapping, first of equal keys only. where names
// it in messages.
func (r *reader) mapping(n *yaml.Node, where string) []pair {
	if empty(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.bad(n, "write `key: value` pairs", "%s is not a mapping", where)
		return nil
	}
	var out []pair
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			r.bad(k, "write a word", "a key of %s is not a word", where)
			continue
		}
		if len(k.Value) > maxKey {
			r.bad(k, "write a name", "a key of %s is %d bytes long", where, len(k.Value))
			continue
		}
		if line, dup := seen[k.Value]; dup {
			r.bad(k, "remove one", "key %q is in line %d already", k.Value, line)
			continue
		}
		seen[k.Value] = k.Line
		out = append(out, pair{k, n.Content[i+1]})
	}
	return out
}

// keys is mapping for a fixed set of keys.
func (r *reader) keys(n *yaml.Node, where string, allowed ...string) map[string]pair {
	return r.keysOr(func(string) string { return "" }, n, where, allowed...)
}

// keysOr is keys with a hint for some of the unknown keys; "" is none.
func (r *reader) keysOr(hint func(key string) string, n *yaml.Node, where string, allowed ...string) map[string]pair {
	out := map[string]pair{}
	for _, p := range r.mapping(n, where) {
		if !slices.Contains(allowed, p.key.Value) {
			if len(r.errs) >= maxErrors { // no more are shown, and the search for the nearest key takes time
				r.extra++
				continue
			}
			instead := hint(p.key.Value)
			if instead == "" {
				instead = param.Suggest(p.key.Value, allowed)
			}
			r.bad(p.key, instead, "unknown key %q in %s", p.key.Value, where)
			continue
		}
		out[p.key.Value] = p
	}
	return out
}

// empty says whether a node is an omitted value ("key:" with nothing after).
func empty(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == ""
}

// text returns a scalar's text as written.
func (r *reader) text(n *yaml.Node, where string) (string, bool) {
	switch {
	case n == nil:
		return "", false
	case n.Kind != yaml.ScalarNode:
		r.bad(n, "write one value", "%s is a list or a mapping", where)
	case empty(n):
		r.bad(n, "write a value, or remove the key", "%s has no value", where)
	case len(n.Value) > maxText:
		r.bad(n, "write at most 1024 bytes", "%s is %d bytes long", where, len(n.Value))
	case strings.ContainsFunc(n.Value, unicode.IsControl):
		r.bad(n, "write one line of plain text", "%s has control characters in it", where)
	default:
		return n.Value, true
	}
	return "", false
}

// list returns the elements of a sequence; one scalar is a list of one.
func (r *reader) list(n *yaml.Node, where string) []*yaml.Node {
	switch {
	case empty(n):
		return nil
	case n.Kind == yaml.SequenceNode:
		return n.Content
	case n.Kind == yaml.ScalarNode:
		return []*yaml.Node{n}
	}
	r.bad(n, "write a list: [a, b]", "%s is not a list", where)
	return nil
}

// words is list for texts, duplicates refused.
func (r *reader) words(n *yaml.Node, where string) (texts []string, nodes []*yaml.Node) {
	for i, e := range r.list(n, where) {
		if i == maxEntries {
			r.bad(e, "write fewer", "%s has more than %d elements", where, maxEntries)
			break
		}
		t, ok := r.text(e, "an element of "+where)
		if !ok {
			continue
		}
		if slices.Contains(texts, t) {
			r.bad(e, "remove one", "%q is in %s twice", t, where)
			continue
		}
		texts, nodes = append(texts, t), append(nodes, e)
	}
	return texts, nodes
}
