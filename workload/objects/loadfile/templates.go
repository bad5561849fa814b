package loadfile

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/workload/objects/pace"
)

// numbered names the i-th object after a base.
func numbered(base string) func(o *yaml.Node, i int) {
	return func(o *yaml.Node, i int) { set(o, base+strconv.Itoa(i), "metadata", "name") }
}

// templates creates the objects of a template, as often as the file says.
func (l *loader) templates(n *yaml.Node) {
	if !l.keys(n, "a template", "num", "file", "parameters", "sync", "basename") || get(n, "file") == nil {
		if l.err == nil {
			l.fail(n, "write file: FILE", "the template has no file")
		}
		return
	}
	values := map[string]*yaml.Node{}
	lists := []*yaml.Node{get(n, "parameters")}
	if lists[0] != nil && lists[0].Kind == yaml.SequenceNode {
		lists = lists[0].Content
	}
	for _, m := range lists {
		for name := range l.texts(m, "parameters") {
			v := get(m, name)
			if l.golang {
				name = strings.ToUpper(name)
			}
			if name == identifier {
				l.fail(v, "remove it", "the loader itself sets %s to the number of each use of a template", identifier)
			}
			values[name] = v
		}
	}
	t := l.template(get(n, "file"), values)
	if t == nil {
		return
	}
	count := l.number(n, "num", 0, MaxRequests)
	space, node := l.project.space, l.project.node
	first := l.serials(count * len(t.objects))
	nth := func(i int) (*Request, error) {
		o, err := t.at(i/len(t.objects), i%len(t.objects))
		if err != nil {
			return nil, err
		}
		generate(o, first+i)
		return placed(t.file, o, space, node)
	}
	if l.distinct(n, count, len(t.objects), nth) {
		l.batches(n, count, len(t.objects), l.project.tuning["templates"], nth)
	}
	if wait, timeout := l.sync(get(n, "sync")); wait {
		l.waits(timeout)
	}
}

// distinct refuses objects that all have the same name.
func (l *loader) distinct(n *yaml.Node, count, each int, nth func(int) (*Request, error)) bool {
	for k := range each {
		if count < 2 || l.err != nil {
			break
		}
		a, err := nth(k)
		if err == nil {
			var b *Request
			if b, err = nth(k + each); err == nil && a.Name == b.Name {
				l.fail(get(n, "num"), "add ${IDENTIFIER} to the name, or write num: 1", "all %d objects %s %s have the same name", count, a.Kind.Name, a.Name)
			}
		}
		if err != nil {
			l.err = err
		}
	}
	return l.err == nil
}

// placed returns the request for an object in a namespace. Its pods run on nodes with a LABEL=VALUE; nil: on any.
func placed(file string, o *yaml.Node, space int, node *yaml.Node) (*Request, error) {
	if k := kindOf(text(o, "kind")); node != nil && k != nil && k.Pod != nil && get(o, k.Pod...) != nil {
		key, v, _ := strings.Cut(node.Value, "=")
		set(get(o, k.Pod...), v, "nodeSelector", key)
	}
	r, err := object(file, o)
	if err == nil {
		r.Space, r.selects = space, node
	}
	return r, err
}

// batches divides count uses of a template into batches, as a tuning set says. Each use creates the same number of objects.
func (l *loader) batches(n *yaml.Node, count, each int, t tuning, nth func(int) (*Request, error)) {
	step := t.step
	if step == 0 {
		step = max(1, count)
	}
	for from := 0; from < count && l.err == nil; from += step {
		b := Batch{Verb: Create, Count: min(step, count-from) * each, Group: each, At: func(i int) (*Request, error) { return nth(from*each + i) }}
		if t.delay > 0 {
			b.Pace = pace.Pace{How: pace.Even, PerSecond: 1 / t.delay.Seconds()}
		}
		if t.step > 0 && from+step <= count {
			b.Wait, b.Pause, b.Timeout = true, t.pause, t.timeout
		}
		l.add(n, b)
	}
}

// plain creates objects from the one object of a file, and changes each of them.
func (l *loader) plain(n *yaml.Node, sort string, count int, t tuning, change func(o *yaml.Node, i int)) {
	file := get(n, "file")
	if file == nil {
		l.fail(n, "write file: FILE", "the %s has no file", sort)
		return
	}
	name := *file
	if name.Value == usual {
		name.Value = usualFile(sort)
	}
	root := l.file(&name)
	if root == nil {
		return
	}
	space, node := l.project.space, l.project.node
	l.batches(n, count, 1, t, func(i int) (*Request, error) {
		o := clone(root)
		set(o, "", "metadata", "namespace")
		change(o, i)
		return placed(name.Value, o, space, node)
	})
}

// usual is the name that stands for the loader's own templates.
const usual = "default"

func usualFile(sort string) string { return "content/" + sort + "-default.json" }

// clone copies a node.
func clone(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out.Content[i] = clone(c)
	}
	return &out
}

// file reads the one object of a file that the configuration names.
func (p *parser) file(name *yaml.Node) *yaml.Node {
	if p.err != nil {
		return nil
	}
	if n := p.roots[name.Value]; n != nil {
		return n
	}
	src, ok := p.files[name.Value]
	if !ok {
		p.missing(name)
		return nil
	}
	docs, err := documents(name.Value, src, nil)
	if err == nil && len(docs) != 1 {
		err = at(name.Value, &yaml.Node{}, "write one object in each file", "the file has %d objects", len(docs))
	}
	if err == nil && docs[0].Kind != yaml.MappingNode {
		err = at(name.Value, docs[0], "write KEY: VALUE", "the file is not a mapping")
	}
	if err != nil {
		p.err = err
		return nil
	}
	p.roots[name.Value] = docs[0]
	return docs[0]
}

func (p *parser) missing(name *yaml.Node) {
	if name.Value != "" && len(places(name.Value)) == 0 {
		p.fail(name, "copy it into one of them, and write its path from there", "%q leads out of the folder of this file and the two folders above", name.Value)
		return
	}
	p.fail(name, "put it next to this file, into the folder content there, or into either place in one of the two folders above", "cannot find the file %s", name.Value)
}
