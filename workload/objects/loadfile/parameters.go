package loadfile

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/param"
)

// identifier is the parameter that cluster-loader gives each use of a template: its number, from 0.
const identifier = "IDENTIFIER"

// openshiftTemplate is a Template of OpenShift, which `oc process` would make objects of.
type openshiftTemplate struct {
	file    string
	objects []*yaml.Node
	labels  map[string]string
	values  map[string]string
	drawn   map[string]string // expressions that the others are generated from
}

// template reads the file of a template, and the values of its parameters.
func (p *parser) template(file *yaml.Node, values map[string]*yaml.Node) *openshiftTemplate {
	root := p.file(file)
	if root == nil {
		return nil
	}
	t := &openshiftTemplate{file: file.Value, values: map[string]string{}, drawn: map[string]string{}}
	kind := get(root, "kind")
	if kind == nil {
		kind = get(root, "Kind") // the loader's own templates have it so
	}
	if kind == nil || kind.Value != "Template" {
		p.err = at(t.file, root, "write a Template with objects and parameters", "this is not a Template")
		return nil
	}
	t.objects = p.list(get(root, "objects"), "objects")
	if p.err == nil && (len(t.objects) == 0 || len(t.objects) > maxKinds) {
		p.err = at(t.file, root, fmt.Sprintf("write 1 to %d below objects", maxKinds), "the template has %d objects", len(t.objects))
	}
	t.labels = p.texts(get(root, "labels"), "labels")
	p.declared(t, get(root, "parameters"), values)
	if p.err != nil {
		return nil
	}
	return t
}

// declared reads the parameters that a template declares.
func (p *parser) declared(t *openshiftTemplate, list *yaml.Node, values map[string]*yaml.Node) {
	var known []string
	for _, n := range p.list(list, "parameters") {
		name := text(n, "name")
		known = append(known, name)
		v, given := values[name]
		switch {
		case name == identifier:
		case given:
			t.values[name] = v.Value
		case text(n, "value") != "":
			t.values[name] = text(n, "value")
		case text(n, "generate") == "expression":
			t.drawn[name] = text(n, "from")
			if _, err := draw(t.drawn[name], 0); err != nil {
				p.err = at(t.file, n, "write one such as [a-z0-9]{8}", "%v", err)
			}
		case text(n, "required") == "true":
			p.err = at(t.file, n, "write it below parameters of the template", "the parameter %s has no value", name)
		default:
			t.values[name] = ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			p.fail(values[name], oneOf(known, "remove it"), "the template %s has no parameter %s", t.file, name)
		}
	}
}

// at makes one object of the template for a use of it.
func (t *openshiftTemplate) at(number, object int) (*yaml.Node, error) {
	drawn := map[string]string{}
	size := 0
	n, err := t.replace(t.objects[object], func(name string) (string, bool) {
		if name == identifier {
			return strconv.Itoa(number), true
		}
		if v, ok := t.values[name]; ok {
			return v, true
		}
		from, ok := t.drawn[name]
		if ok && drawn[name] == "" {
			drawn[name], _ = draw(from, uint64(max(0, number))) // declared has tried
		}
		return drawn[name], ok
	}, &size)
	if err == nil && n.Kind == yaml.MappingNode {
		for name, v := range t.labels {
			set(n, v, "metadata", "labels", name)
		}
	}
	if name := get(n, "metadata", "name"); err == nil && name != nil {
		if m := wordRE.FindStringSubmatch(name.Value); m != nil {
			known := slices.Sorted(maps.Keys(t.values))
			known = append(append(known, slices.Sorted(maps.Keys(t.drawn))...), identifier)
			return nil, at(t.file, name, "add it below parameters of the template; "+param.Suggest(m[1], known), "the template has no parameter %q", m[1])
		}
	}
	return n, err
}

var (
	wordRE  = regexp.MustCompile(`\$\{([A-Za-z0-9_]+)\}`)
	valueRE = regexp.MustCompile(`^\$\{\{([A-Za-z0-9_]+)\}\}$`)
)

// replace copies a node with the values of parameters in it: ${NAME} in a text, ${{NAME}} for one. size counts the bytes.
func (t *openshiftTemplate) replace(n *yaml.Node, lookup func(string) (string, bool), size *int) (*yaml.Node, error) {
	out := *n
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "${") {
		if m := valueRE.FindStringSubmatch(n.Value); m != nil {
			if v, ok := lookup(m[1]); ok {
				var doc yaml.Node
				if err := yaml.Unmarshal([]byte(v), &doc); err != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.ScalarNode {
					return nil, at(t.file, n, "write a number, true, false or a word", "the value of %s has another type", m[1])
				}
				out.Value, out.Tag, out.Style = doc.Content[0].Value, doc.Content[0].Tag, doc.Content[0].Style
			}
		} else {
			out.Value = wordRE.ReplaceAllStringFunc(n.Value, func(m string) string {
				if v, ok := lookup(m[2 : len(m)-1]); ok {
					return v
				}
				return m
			})
		}
	}
	if *size += len(out.Value); *size > maxObject {
		return nil, at(t.file, n, "make it smaller", "the object has more than %d bytes", maxObject)
	}
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		var err error
		if out.Content[i], err = t.replace(c, lookup, size); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// set puts a text at a path of a mapping. If another value is in the way, set does nothing, and the checks of the object refuse it.
func set(n *yaml.Node, v string, path ...string) {
	for i, key := range path {
		next := get(n, key)
		if n.Kind != yaml.MappingNode || i < len(path)-1 && next != nil && next.Kind != yaml.MappingNode && next.Tag != "!!null" {
			return
		}
		if next == nil || i < len(path)-1 && next.Kind != yaml.MappingNode {
			next = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
			remove(n, key)
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: n.Line, Column: n.Column}, next)
		}
		if i == len(path)-1 {
			*next = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v, Style: yaml.DoubleQuotedStyle, Line: next.Line, Column: next.Column}
		}
		n = next
	}
}

// remove takes a key out of a mapping.
func remove(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}

// maxDrawn bounds a generated value, in characters.
const maxDrawn = 255

var drawRE = regexp.MustCompile(`\[((?:[^\]\\]|\\.)+)\]\{(\d{1,3})\}`)

// draw generates a value of an expression such as [A-Za-z0-9]{8}.
func draw(from string, seed uint64) (string, error) {
	r := rand.New(rand.NewPCG(seed, uint64(len(from)))) //nolint:gosec // a load, no secret
	var out strings.Builder
	rest := 0
	for _, m := range drawRE.FindAllStringSubmatchIndex(from, -1) {
		out.WriteString(from[rest:m[0]])
		rest = m[1]
		set, err := characters(from[m[2]:m[3]])
		if err != nil {
			return "", err
		}
		count, _ := strconv.Atoi(from[m[4]:m[5]]) // three digits
		if out.Len()+count > maxDrawn {
			return "", fmt.Errorf("the expression %q generates more than %d characters", from, maxDrawn)
		}
		for range count {
			out.WriteByte(set[r.IntN(len(set))])
		}
	}
	out.WriteString(from[rest:])
	return out.String(), nil
}

// characters are those of a set such as A-Za-z0-9 or \w.
func characters(set string) (string, error) {
	const digits, small, large = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	var out strings.Builder
	for i := 0; i < len(set); i++ {
		switch c := set[i]; {
		case c == '\\' && i+1 < len(set):
			i++
			known := map[byte]string{'w': small + large + digits + "_", 'd': digits, 'a': small + large, 'A': "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"}
			out.WriteString(known[set[i]])
		case i+2 < len(set) && set[i+1] == '-':
			for x := c; x <= set[i+2]; x++ {
				if out.WriteByte(x); x == set[i+2] {
					break // before it begins again at 0
				}
			}
			i += 2
		default:
			out.WriteByte(c)
		}
	}
	if out.Len() == 0 {
		return "", fmt.Errorf("the set %q has no characters", set)
	}
	return out.String(), nil
}
