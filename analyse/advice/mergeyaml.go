package advice

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mergeYAML makes one document of several: mappings are put together, lists whose
// entries have names by these. Where two say different things clash says which is taken:
// the larger number, so that nothing is held back by less than it needs, and no limit
// before one; of words the first.
func mergeYAML(texts []string) (text string, clash []string, err error) {
	if len(texts) == 1 {
		return texts[0], nil, nil
	}
	var root *yaml.Node
	for _, text := range texts {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			return "", nil, err
		}
		if root == nil {
			root = &doc
			continue
		}
		mergeNodes(root.Content[0], doc.Content[0], nil, &clash)
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return "", nil, err
	}
	return b.String(), clash, enc.Close()
}

func mergeNodes(into, from *yaml.Node, path []string, clash *[]string) {
	switch {
	case into.Kind == yaml.MappingNode && from.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(from.Content); i += 2 {
			key := from.Content[i].Value
			if have := value(into, key); have != nil {
				mergeNodes(have, from.Content[i+1], append(slices.Clone(path), key), clash)
			} else {
				into.Content = append(into.Content, from.Content[i], from.Content[i+1])
			}
		}
	case into.Kind == yaml.SequenceNode && from.Kind == yaml.SequenceNode:
		for _, f := range from.Content {
			name := value(f, "name")
			i := slices.IndexFunc(into.Content, func(n *yaml.Node) bool {
				have := value(n, "name")
				return have != nil && name != nil && have.Value == name.Value
			})
			if i >= 0 {
				mergeNodes(into.Content[i], f, path, clash)
			} else {
				into.Content = append(into.Content, f)
			}
		}
	case into.Kind == yaml.ScalarNode && from.Kind == yaml.ScalarNode && into.Value != from.Value:
		kept, not := into.Value, from.Value
		if safer(not, kept) {
			kept, not = not, kept
			into.Value, into.Tag, into.Style = from.Value, from.Tag, from.Style
		}
		*clash = append(*clash, fmt.Sprintf("%s: %s is taken, not %s", strings.Join(path, "."), kept, not))
	}
}

// safer reports whether a value is to be taken before another.
func safer(x, than string) bool {
	if than == "null" {
		return false
	}
	return x == "null" || number(x) >= 0 && number(than) >= 0 && number(x) > number(than)
}

// value is that of a key in a mapping, nil without one.
func value(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
