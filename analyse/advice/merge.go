package advice

import (
	"fmt"
	"slices"
	"strings"

	"tare/ordered"
)

// Document is what is to be written into one file: the patches of several items for it,
// as one.
type Document struct {
	Of    string   `json:"of"`    // level of the compared factor that it is for; "" of all
	File  string   `json:"file"`  // Patch.File
	About []string `json:"about"` // a line for each item in it
	Text  string   `json:"text"`
	YAML  bool     `json:"yaml,omitempty"`
	Clash []string `json:"clash,omitempty"` // fields that two items want differently, and what was taken
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
			texts[n] = ordered.Add(texts[n], p.Text)
			about := x.Treatment + ": " + x.Rule
			docs[n].About = ordered.Add(docs[n].About, about)
			if warning := "take care: " + x.Warning; x.Warning != "" && !slices.Contains(docs[n].About, warning) {
				docs[n].About = append(docs[n].About, warning)
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
			if d.Text, d.Clash, err = mergeYAML(texts[n]); err != nil {
				return nil, nil, fmt.Errorf("patches of %s: %w", strings.Join(d.About, ", "), err)
			}
		case strings.Contains(d.File, ".toml"):
			d.Text, d.Clash = mergeTOML(texts[n])
		default:
			d.Text = strings.Join(texts[n], "")
		}
	}
	return docs, left, nil
}

// Together returns the items that may be set together, in their order, and says of each
// other one, by index, why it may not stand beside an earlier one: it is for the same level
// of the compared factor.
func Together(items []Item, compare string) (kept []Item, left map[int]string) {
	left = make(map[int]string)
	with := make(map[string][]Item)
	for i := range items {
		x := &items[i]
		of := ""
		if len(x.Cells) > 0 {
			of, _ = x.Cells[0].Get(compare)
		}
		sets := !x.Contradicted && (len(x.Sets) > 0 || len(x.Patches) > 0)
		if by := barred(x, with[of]); sets && by != "" {
			left[i] = by
			continue
		}
		if sets {
			with[of] = append(with[of], *x)
		}
		kept = append(kept, *x)
	}
	return kept, left
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

// mergeTOML puts the lines of each table together; of a key that is there twice the
// first stays, and clash says so. The rules' patches are simple lines.
func mergeTOML(texts []string) (text string, clash []string) {
	var order []string
	lines := make(map[string][]string)
	keys := make(map[string]string)
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
			k, said := table+key, strings.TrimSpace(line)
			switch have, ok := keys[k]; {
			case key == "" || have == said:
			case ok:
				clash = append(clash, fmt.Sprintf("%s: %s stays, not %s", table, have, said))
			default:
				keys[k] = said
				lines[table] = append(lines[table], line)
			}
		}
	}
	var b strings.Builder
	for _, t := range order {
		b.WriteString(t + "\n" + strings.Join(lines[t], ""))
	}
	return b.String(), clash
}
