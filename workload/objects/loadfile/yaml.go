package loadfile

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tare/internal/yamlcheck"
	"tare/param"
)

// documents reads YAML, or JSON, of a file. marks are the lines of the file that its lines come from; nil: they are the same.
func documents(file, text string, marks []int) ([]*yaml.Node, error) {
	place := func(line int) int {
		if line >= 1 && line <= len(marks) {
			return marks[line-1]
		}
		return max(1, line)
	}
	return yamlcheck.Documents(param.FileError{Param: Param, File: file}, text, place, maxKinds)
}

// document reads the file itself, which may be a template.
func (p *parser) document(text string, vars map[string]string) *yaml.Node {
	var marks []int
	if strings.Contains(text, "{{") {
		text, marks, p.err = p.renderConfig(text, vars)
		if p.err != nil {
			return nil
		}
	}
	docs, err := documents("", text, marks)
	switch {
	case err != nil:
		p.err = err
	case len(docs) != 1:
		p.fail(&yaml.Node{}, "write one document", "the file has %d documents", len(docs))
	default:
		return docs[0]
	}
	return nil
}

// get is the value of a key; nil if there is none.
func get(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var found *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				found = n.Content[i+1]
			}
		}
		n = found
	}
	return n
}

// keyOf is the deepest key of a path that a node has, or the node itself. A number stands for an element of a list.
func keyOf(n *yaml.Node, path ...string) *yaml.Node {
	found := n
	for _, word := range path {
		i := -1
		switch at, err := strconv.Atoi(word); {
		case n.Kind == yaml.MappingNode:
			for k := 0; k+1 < len(n.Content); k += 2 {
				if n.Content[k].Value == word {
					i = k + 1
				}
			}
		case n.Kind == yaml.SequenceNode && err == nil && at < len(n.Content):
			i = at
		}
		if i < 0 {
			break
		}
		if found = n.Content[i]; n.Kind == yaml.MappingNode {
			found = n.Content[i-1]
		}
		n = n.Content[i]
	}
	return found
}

// lacking is the place to say that a path is missing: a misspelt form of its next key, the deepest key that exists, or the object.
func lacking(n *yaml.Node, path ...string) *yaml.Node {
	for i, key := range path {
		of := get(n, path[:i]...)
		if of == nil || of.Kind != yaml.MappingNode {
			break
		}
		if has := keyOf(of, key); has != of && (has.Line != of.Line || has.Column != of.Column) {
			continue // the file has it; set puts what it adds at the place of the mapping
		}
		for k := 0; k < len(of.Content); k += 2 {
			is := of.Content[k]
			if far := len(is.Value) - len(key); is.Value != key && far*far <= 4 && strings.HasPrefix(param.Suggest(is.Value, []string{key}), "did you mean") {
				return is
			}
		}
	}
	return keyOf(n, path...)
}

// text is the value of a key, "" if there is none.
func text(n *yaml.Node, path ...string) string {
	if v := get(n, path...); v != nil && v.Kind == yaml.ScalarNode && v.Tag != "!!null" {
		return v.Value
	}
	return ""
}

// keys refuses keys of a mapping that are not known. It returns whether it is a mapping.
func (p *parser) keys(n *yaml.Node, where string, known ...string) bool {
	if p.err != nil || n == nil {
		return false
	}
	if n.Kind != yaml.MappingNode {
		p.fail(n, "write KEY: VALUE", "%s is not a mapping", where)
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if k := n.Content[i]; !slices.Contains(known, k.Value) {
			p.fail(k, param.Suggest(k.Value, known), "%s has no key %q", where, k.Value)
			return false
		}
	}
	return true
}

// list is a sequence's elements; none if it is not there.
func (p *parser) list(n *yaml.Node, where string) []*yaml.Node {
	switch {
	case p.err != nil || n == nil || n.Tag == "!!null":
		return nil
	case n.Kind != yaml.SequenceNode:
		p.fail(n, "write a list, with - and an element on each line", "%s is not a list", where)
		return nil
	}
	return n.Content
}

// texts is a mapping of words to words.
func (p *parser) texts(n *yaml.Node, where string) map[string]string {
	if p.err != nil || n == nil || n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		p.fail(n, "write KEY: VALUE", "%s is not a mapping", where)
		return nil
	}
	out := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i+1].Kind != yaml.ScalarNode {
			p.fail(n.Content[i+1], "write a word", "%s of %s is not a word", n.Content[i].Value, where)
		}
		out[n.Content[i].Value] = n.Content[i+1].Value
	}
	return out
}

// number is a whole number from 0 to most.
func (p *parser) number(n *yaml.Node, key string, usual, most int) int {
	v := get(n, key)
	if p.err != nil || v == nil {
		return usual
	}
	x, err := strconv.Atoi(v.Value)
	if v.Kind != yaml.ScalarNode || err != nil || x < 0 || x > most {
		p.fail(v, "write a whole number from 0 to "+strconv.Itoa(most), "%s: %q is not a valid number", key, v.Value)
		return usual
	}
	return x
}

// truth is a truth value.
func (p *parser) truth(n *yaml.Node, key string, usual bool) bool {
	v := get(n, key)
	if p.err != nil || v == nil {
		return usual
	}
	var b bool
	if err := v.Decode(&b); err != nil {
		p.fail(v, "write true or false", "%s: %q is not a boolean", key, v.Value)
	}
	return b
}

// maxTime bounds a pause or a delay.
const maxTime = time.Hour

// duration is a time: a number and a unit ("250 ms", "5 s", "1 min", "1 hr"), one of Go ("1m30s"), or a whole number of units.
func (p *parser) duration(v *yaml.Node, key string, unit time.Duration) time.Duration {
	if p.err != nil || v == nil {
		return 0
	}
	d, ok := parseTime(v.Value, unit)
	if v.Kind != yaml.ScalarNode || !ok || d < 0 || d > maxTime {
		p.fail(v, `write a time of at most an hour, such as 250 ms, 5 s, 1 min or 1m30s`, "%s: %q is not a valid time", key, v.Value)
		return 0
	}
	return d
}

func parseTime(text string, unit time.Duration) (time.Duration, bool) {
	words := strings.Fields(text)
	switch len(words) {
	case 1:
		if d, err := time.ParseDuration(words[0]); err == nil && words[0] != "0" {
			return d, true
		}
	case 2:
		unit = map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "min": time.Minute, "hr": time.Hour}[words[1]]
	}
	if len(words) == 0 || unit == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(words[0])
	return time.Duration(n) * unit, err == nil && n >= 0 && n <= int(maxTime/unit)
}
