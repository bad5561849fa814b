package yamlcheck

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/param"
)

// maxDepth bounds the nesting of Documents.
const maxDepth = 64

// Documents reads at most so many documents of YAML, or of JSON, as other programs write them: without anchors and aliases, at most 64 levels
// deep, and with keys that are words and appear once. It leaves out empty documents. place returns the line that a line comes from; nil: it is
// the same. An error is a *param.FileError, for the parameter and the file of in.
func Documents(in param.FileError, text string, place func(line int) int, most int) ([]*yaml.Node, error) {
	if t := strings.TrimSpace(text); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		text = strings.ReplaceAll(text, "\t", " ") // JSON may be indented with tabs, and has none in texts
	}
	if place == nil {
		place = func(line int) int { return max(1, line) }
	}
	var out []*yaml.Node
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var n yaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			what, line := Unplaced(err)
			in.Line, in.Column, in.What, in.Instead = place(line), 1, "this is not YAML: "+what, "see the line and the one before"
			return nil, &in
		}
		if len(n.Content) == 0 {
			continue
		}
		root := n.Content[0]
		if err := tidy(in, root, place, 0); err != nil {
			return nil, err
		}
		if root.Tag != "!!null" {
			out = append(out, root)
		}
		if len(out) > most {
			return nil, at(in, root, "split it into several files", "the file has more than %d documents", most)
		}
	}
}

var lineRE = regexp.MustCompile(`line (\d+): `)

// Unplaced takes the line out of an error of the YAML package. The line is 0 if there is none.
func Unplaced(err error) (what string, line int) {
	what = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := lineRE.FindStringSubmatch(what); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits; 0 if too many
		what = strings.Replace(what, m[0], "", 1)
	}
	return what, line
}

// tidy refuses what Documents does not read, and puts lines right.
func tidy(in param.FileError, n *yaml.Node, place func(int) int, depth int) error {
	n.Line = place(n.Line)
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return at(in, n, "write it out", "anchors and aliases are not read")
	case depth > maxDepth:
		return at(in, n, "", "this is nested too deeply")
	}
	seen := map[string]bool{}
	for i, c := range n.Content {
		if err := tidy(in, c, place, depth+1); err != nil {
			return err
		}
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			continue
		}
		if c.Kind != yaml.ScalarNode {
			return at(in, c, "write a word", "a key is not a word")
		}
		if seen[c.Value] {
			return at(in, c, "remove one", "the key %q appears twice", c.Value)
		}
		seen[c.Value] = true
	}
	return nil
}

func at(in param.FileError, n *yaml.Node, instead, what string, args ...any) error {
	in.Line, in.Column, in.What, in.Instead = max(1, n.Line), max(1, n.Column), fmt.Sprintf(what, args...), instead
	return &in
}
