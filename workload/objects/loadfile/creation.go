package loadfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// creation is what one job has created.
type creation struct {
	job     string
	objects []*burnObject
	refs    []ref
	space   func(iteration int) int
	gone    []bool
	serial  int // of the first
}

// ref is one object of a creation.
type ref struct{ iteration, object, replica int32 }

// burnObject is a document of a template that a job uses.
type burnObject struct {
	file     string
	template *goTemplate
	vars     map[string]any
	document int
	count    int // documents of the template
	kind     *Kind
	replicas int
	once     bool
	every    int  // so many iterations share one
	churn    bool // it is deleted and created again
}

// at makes an object of a creation.
func (c *creation) at(i int) (*Request, error) {
	f := c.refs[i]
	o := c.objects[f.object]
	n, err := o.render(c.job, int(f.iteration)/o.every, int(f.replica))
	if err != nil {
		return nil, err
	}
	generate(n, c.serial+i)
	for name, v := range c.labels(f) {
		for _, path := range o.labelled() {
			if get(n, append(slices.Clone(path), name)...) == nil {
				set(n, v, append(slices.Clone(path), name)...)
			}
		}
	}
	return placed(o.file, n, c.space(int(f.iteration)), nil)
}

// labels are those that kube-burner adds.
func (c *creation) labels(f ref) map[string]string {
	return map[string]string{
		labelJob: c.job, labelUUID: uuid, labelRun: uuid, labelIndex: strconv.Itoa(int(f.object)), labelIteration: strconv.Itoa(int(f.iteration)), labelReplica: strconv.Itoa(int(f.replica)),
	}
}

// labelled are the paths of labels: of the object, and of its pods.
func (o *burnObject) labelled() [][]string {
	out := [][]string{{"metadata", "labels"}}
	if o.kind != nil && len(o.kind.Pod) > 1 {
		out = append(out, append(slices.Clone(o.kind.Pod[:len(o.kind.Pod)-1]), "metadata", "labels"))
	}
	return out
}

// render makes a document of the template.
func (o *burnObject) render(job string, iteration, replica int) (*yaml.Node, error) {
	data := map[string]any{"Iteration": iteration, "Replica": replica, "JobName": job, "UUID": uuid, "RunID": uuid}
	maps.Copy(data, o.vars)
	src, marks, err := o.template.render(data, fmt.Sprintf("%s %d %d %s", job, iteration, replica, o.file), nil)
	if err != nil {
		return nil, err
	}
	docs, err := documents(o.file, src, marks)
	switch {
	case err != nil:
		return nil, err
	case o.count == 0:
		o.count = len(docs) // the first time
	}
	if len(docs) != o.count || o.document >= len(docs) {
		return nil, at(o.file, &yaml.Node{}, "write a template with the same number in each iteration", "the template renders to %d objects, but the first time to %d", len(docs), o.count)
	}
	if o.document == 0 && len(docs) == 1 && docs[0].Kind != yaml.MappingNode && docs[0].Kind != yaml.SequenceNode {
		return nil, at(o.file, docs[0], "write KEY: VALUE", "the template does not render to a mapping")
	}
	return docs[o.document], nil
}

// objects reads the templates of a job that creates.
func (b *burn) objects() (out []*burnObject) {
	for _, n := range b.list(get(b.job, "objects"), "objects") {
		if !b.keys(n, "an object", "objectTemplate", "replicas", "inputVars", "wait", "waitOptions", "runOnce", "group", "repeatEveryNIterations", "churn", "kind", "apiVersion") {
			return nil
		}
		if v := get(n, "group"); v != nil && len(v.Content) > 0 {
			b.fail(v, "write a job for each group", "tare does not support groups")
		}
		if v := get(n, "waitOptions"); v != nil && len(v.Content) > 0 {
			b.note(v, "remove them", "waitOptions have no effect: the load waits until pods run")
		}
		o := b.object(n)
		if o == nil {
			return nil
		}
		o.replicas = b.number(n, "replicas", defaultReplicas, MaxRequests)
		o.once, o.churn = b.truth(n, "runOnce", false), b.truth(n, "churn", true)
		o.every = max(1, b.number(n, "repeatEveryNIterations", 1, MaxRequests))
		first, err := o.render(b.name, 0, 1)
		if err != nil {
			b.err = err
			return nil
		}
		for d := range o.count {
			x := *o
			if x.document = d; d > 0 {
				first, err = x.render(b.name, 0, 1)
			}
			if b.err == nil {
				b.err = err
			}
			x.kind = kindOf(text(first, "kind"))
			out = append(out, &x)
		}
	}
	return out
}

// object reads the template of an entry.
func (b *burn) object(n *yaml.Node) *burnObject {
	file := get(n, "objectTemplate")
	if b.err != nil {
		return nil
	}
	if file == nil {
		b.fail(n, "write objectTemplate: FILE", "the object has no template")
		return nil
	}
	src, ok := b.files[file.Value]
	if !ok {
		b.missing(file)
		return nil
	}
	o := &burnObject{file: file.Value, vars: map[string]any{}, every: 1}
	if v := get(n, "inputVars"); v != nil && v.Tag != "!!null" {
		if err := v.Decode(&o.vars); err != nil {
			b.fail(v, "write NAME: VALUE", "inputVars are not a mapping")
			return nil
		}
	}
	missing := "error"
	if b.truth(b.job, "defaultMissingKeysWithZero", false) {
		missing = "zero"
	}
	var err error
	if o.template, err = parseTemplate(o.file, src, b.functions, missing); err != nil {
		b.err = err
		return nil
	}
	return o
}
