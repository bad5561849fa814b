package advice

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is what is to be written into one file: the patches of several items for it,
// as one.
type Document struct {
	Of    string   `json:"of"`    // level of the compared factor that it is for; "" of all
	File  string   `json:"file"`  // Patch.File
	About []string `json:"about"` // a line for each item in it
	Text  string   `json:"text"`
	YAML  bool     `json:"yaml,omitempty"`
}

// Documents puts the patches of one kind together, a document for each level of the
// compared factor and file. left says of items that may not stand beside an earlier one,
// by index, why. Commands that measure exclude nothing, and stay apart.
func Documents(items []Item, compare, kind string) (docs []Document, left map[int]string, err error) {
	left = make(map[int]string)
	at := make(map[[2]string]int)
	texts := make(map[int][]string)
	with := make(map[string][]Item) // those taken, by level of the compared factor
	for i := range items {
		x := &items[i]
		for _, p := range x.Patches {
			if p.For != kind {
				continue
			}
			of := ""
			if len(x.Cells) > 0 {
				of, _ = x.Cells[0].Get(compare)
			}
			if by := barred(x, with[of]); by != "" && kind != "study" {
				left[i] = by
				break
			}
			k := [2]string{of, p.File}
			n, ok := at[k]
			if !ok {
				n = len(docs)
				at[k] = n
				docs = append(docs, Document{Of: of, File: p.File, YAML: kind == "pod" || kind == "kubevirt" || strings.Contains(p.File, "kubelet")})
			}
			if !slices.Contains(texts[n], p.Text) {
				texts[n] = append(texts[n], p.Text)
			}
			about := x.Treatment + ": " + x.Rule
			if !slices.Contains(docs[n].About, about) {
				docs[n].About = append(docs[n].About, about)
			}
		}
		if _, out := left[i]; !out && len(x.Cells) > 0 && len(x.Patches) > 0 {
			of, _ := x.Cells[0].Get(compare)
			with[of] = append(with[of], *x)
		}
	}
	for n := range docs {
		switch d := &docs[n]; {
		case d.YAML:
			if d.Text, err = mergeYAML(texts[n]); err != nil {
				return nil, nil, fmt.Errorf("patches of %s: %w", strings.Join(d.About, ", "), err)
			}
		case kind == "runtime":
			d.Text = mergeTOML(texts[n])
		default:
			d.Text = strings.Join(texts[n], "")
		}
	}
	return docs, left, nil
}

// barred says why an item must not stand beside those taken; "" if it may.
func barred(x *Item, taken []Item) string {
	for i := range taken {
		if why := excludes(x, &taken[i]); why != "" {
			return why
		}
	}
	return ""
}

// excludes says why an item must not be set together with another: their rules say so,
// or both change one factor, and differently.
func excludes(x, y *Item) string {
	if slices.Contains(x.NotWith, y.Rule) || slices.Contains(y.NotWith, x.Rule) {
		return "must not be set beside " + y.Rule
	}
	for _, l := range x.Sets {
		if v, ok := y.Sets.Get(l.Factor); ok && v != l.Value {
			return fmt.Sprintf("sets %s to %s, and %s, which costs more, to %s", l.Factor, l.Value, y.Treatment, v)
		}
	}
	return ""
}

// mergeYAML makes one document of several: mappings are put together, lists whose
// entries have names by these, and where two say different things the first stays.
func mergeYAML(texts []string) (string, error) {
	if len(texts) == 1 {
		return texts[0], nil
	}
	var root *yaml.Node
	for _, text := range texts {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			return "", err
		}
		if root == nil {
			root = &doc
			continue
		}
		mergeNodes(root.Content[0], doc.Content[0])
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return "", err
	}
	return b.String(), enc.Close()
}

func mergeNodes(into, from *yaml.Node) {
	switch {
	case into.Kind == yaml.MappingNode && from.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(from.Content); i += 2 {
			if have := value(into, from.Content[i].Value); have != nil {
				mergeNodes(have, from.Content[i+1])
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
				mergeNodes(into.Content[i], f)
			} else {
				into.Content = append(into.Content, f)
			}
		}
	}
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

// mergeTOML puts the lines of each table together; of a key that is there twice the
// first stays. The rules' patches are simple lines.
func mergeTOML(texts []string) string {
	var order []string
	lines := make(map[string][]string)
	keys := make(map[string]bool)
	for _, text := range texts {
		table := ""
		for line := range strings.Lines(text) {
			if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "[") {
				if table = trimmed; !slices.Contains(order, table) {
					order = append(order, table)
				}
				continue
			}
			key, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if k := table + key; key != "" && !keys[k] {
				keys[k] = true
				lines[table] = append(lines[table], line)
			}
		}
	}
	var b strings.Builder
	for _, t := range order {
		b.WriteString(t + "\n" + strings.Join(lines[t], ""))
	}
	return b.String()
}
