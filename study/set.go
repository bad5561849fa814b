package study

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/param"
)

// settable are the keys outside factors and workloads that --set reaches.
func settable() []string {
	return []string{"seed", "compare", "baseline", "retries", "turns", "timeout", "limits", "sentinel", "calls", "published",
		"stop.fixed", "stop.looks", "stop.confidence", "stop.width", "stop.margin", "stop.tune", "stop.factors", "stop.objective", "stop.mix", "stop.rule",
		"budget.blocks", "budget.time", "collect.use", "collect.rate"}
}

// override edits the tree as a --set argument says, before anything is checked:
// one path of checks serves both, and the nodes made here are positioned as the
// argument. It returns what it gave levels to: a factor, "workload", or a
// workload's parameter as "LABEL.parameter"; "" for other settings.
func (r *reader) override(root *yaml.Node, cat Catalogue, set string) (changed string) {
	arg := r.made(set, set)
	key, value, ok := strings.Cut(set, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		r.bad(arg, "write factor=level,level", "no factor and level")
		return ""
	}
	values := splitLevels(value)
	// Parameters have no dots; names of workloads may: http.node.connections=1.
	section, name, dotted := key, "", false
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		section, name, dotted = key[:i], key[i+1:], true
	}
	if key == "stop" && strings.TrimSpace(value) == StopAdaptive { // the short form, as in a file
		return r.override(root, cat, "stop.rule="+StopAdaptive)
	}
	of := slices.DeleteFunc(settable(), func(s string) bool { return !strings.HasPrefix(s, key+".") })
	switch {
	case len(of) > 0:
		r.bad(arg, "write one of "+strings.Join(of, ", "), "%q has several settings", key)
		return ""
	case key == "tables":
		if strings.TrimSpace(value) != "none" {
			r.bad(arg, "write tables=none, or change the study file", "tables cannot be written as an argument")
		}
		remove(root, "tables")
		return ""
	case slices.Contains(settable(), key):
		target := root
		if dotted {
			target = r.child(root, section, set)
		} else {
			name = key
		}
		switch key {
		case "collect.use", "stop.looks", "stop.factors":
			r.assign(target, name, r.sequence(set, values), set)
		case "stop.mix":
			r.assign(target, name, r.weights(set, values), set)
		default:
			r.assign(target, name, r.made(set, value), set)
		}
		exclude(target, key)
		return ""
	case key == FactorWorkload:
		r.choose(root, arg, values)
		return key
	case dotted:
		w := find(find(root, "workloads"), section)
		if w == nil {
			r.bad(arg, param.Suggest(key, slices.Concat(settable(), labels(root))), "%q is neither a setting nor a workload of this study and its parameter", key)
			return ""
		}
		if empty(w) {
			*w = yaml.Node{Kind: yaml.MappingNode, Line: w.Line, Column: w.Column}
		}
		if w.Kind == yaml.MappingNode {
			r.assign(w, name, r.levels(set, values), set)
		}
		return key
	}
	if !cat.Stored && !slices.Contains(cat.factorNames(), key) && find(find(root, "factors"), key) == nil { // it may be of a sandbox that the study defines
		r.bad(arg, param.Suggest(key, slices.Concat([]string{FactorWorkload}, settable(), cat.factorNames())), "there is no factor %q", key)
		return ""
	}
	r.assign(r.child(root, "factors", set), key, r.sequence(set, values), set)
	// What a workload says itself wins over factors, and the argument over both.
	if ws := find(root, "workloads"); ws != nil && ws.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(ws.Content); i += 2 {
			info := cat.Workloads[kindText(ws.Content[i], ws.Content[i+1])]
			if _, has := param.Find(info.Params, key); has {
				remove(ws.Content[i+1], key)
			}
		}
	}
	return key
}

// exclude removes what a setting of the stopping rule cannot be together with: the argument wins.
func exclude(target *yaml.Node, key string) {
	switch key {
	case "stop.fixed":
		remove(target, "looks", "width", "tune", "factors", "mix", "objective", "rule")
	case "stop.tune":
		remove(target, "fixed", "looks", "width", "objective", "rule")
	case "stop.objective":
		remove(target, "fixed", "looks", "width", "tune", "factors", "mix", "rule")
	case "stop.rule":
		remove(target, "fixed", "looks", "width", "tune", "factors", "mix", "objective")
	case "stop.looks":
		remove(target, "fixed", "tune", "factors", "mix", "objective")
	case "stop.width":
		remove(target, "fixed", "tune", "factors", "mix", "objective", "rule")
	}
}

// choose keeps only the named workloads.
func (r *reader) choose(root, arg *yaml.Node, names []string) {
	ws := find(root, "workloads")
	if ws == nil || ws.Kind != yaml.MappingNode {
		return // reported when workloads is read
	}
	all := labels(root)
	for _, n := range names {
		if !slices.Contains(all, n) {
			r.bad(arg, param.Suggest(n, all), "there is no workload %q in this study", n)
			return
		}
	}
	var kept []*yaml.Node
	for i := 0; i+1 < len(ws.Content); i += 2 {
		if slices.Contains(names, ws.Content[i].Value) {
			kept = append(kept, ws.Content[i], ws.Content[i+1])
		}
	}
	ws.Content = kept
}

// made is a scalar node that stands for a part of a --set argument.
func (r *reader) made(set, value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.TrimSpace(value)}
	r.origin[n] = set
	return n
}

func (r *reader) sequence(set string, values []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, v := range values {
		n.Content = append(n.Content, r.made(set, v))
	}
	r.origin[n] = set
	return n
}

// weights is a mapping, from name=weight,name=weight.
func (r *reader) weights(set string, values []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	r.origin[n] = set
	for _, v := range values {
		name, weight, _ := strings.Cut(v, "=")
		n.Content = append(n.Content, r.made(set, name), r.made(set, weight))
	}
	return n
}

// levels is a scalar for one value, a sequence for several: one value fixes a
// workload's parameter, several make it a factor.
func (r *reader) levels(set string, values []string) *yaml.Node {
	if len(values) == 1 {
		return r.made(set, values[0])
	}
	return r.sequence(set, values)
}

// child returns the mapping at key, made when it is missing.
func (r *reader) child(n *yaml.Node, key, set string) *yaml.Node {
	if c := find(n, key); c != nil && !empty(c) {
		return c
	}
	c := &yaml.Node{Kind: yaml.MappingNode}
	r.origin[c] = set
	r.assign(n, key, c, set)
	return c
}

// assign sets a key of a mapping, in its old place if it has one.
func (r *reader) assign(n *yaml.Node, key string, val *yaml.Node, set string) {
	if n.Kind != yaml.MappingNode {
		return // reported when it is read
	}
	k := r.made(set, key)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i], n.Content[i+1] = k, val
			return
		}
	}
	n.Content = append(n.Content, k, val)
}

func remove(n *yaml.Node, keys ...string) {
	if n.Kind != yaml.MappingNode {
		return
	}
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !slices.Contains(keys, n.Content[i].Value) {
			kept = append(kept, n.Content[i], n.Content[i+1])
		}
	}
	n.Content = kept
}

func find(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func labels(root *yaml.Node) []string {
	var out []string
	if ws := find(root, "workloads"); ws != nil && ws.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(ws.Content); i += 2 {
			out = append(out, ws.Content[i].Value)
		}
	}
	return out
}

// kindText is a workload's kind: its key "kind", or else its label.
func kindText(label, body *yaml.Node) string {
	if k := find(body, "kind"); k != nil {
		return k.Value
	}
	return label.Value
}

// splitLevels splits at commas; a comma that belongs to a level ("0-1,3") is
// preceded by a backslash, as in record.Cell.Key.
func splitLevels(s string) []string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	var out []string
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == ',' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		case s[i] == ',':
			out = append(out, strings.TrimSpace(b.String()))
			b.Reset()
		default:
			b.WriteByte(s[i])
		}
	}
	return append(out, strings.TrimSpace(b.String()))
}
