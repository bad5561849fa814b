package loadfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// pick is an object that an earlier job of the file has created.
type pick struct {
	c  *creation
	at int
}

// chosen reads a job that deletes, changes or reads objects of earlier jobs, which it chooses by kind and labels.
func (b *burn) chosen(verb Verb) {
	iterations := 1
	if verb != Delete {
		iterations = b.number(b.job, "jobIterations", 1, MaxRequests)
	}
	delay := b.duration(get(b.job, "jobIterationDelay"), "jobIterationDelay", time.Nanosecond)
	type target struct {
		picks []pick
		patch *patch
	}
	var targets []target
	for _, n := range b.list(get(b.job, "objects"), "objects") {
		if !b.keys(n, "an object", "kind", "apiVersion", "labelSelector", "objectTemplate", "patchType", "inputVars", "wait", "waitOptions", "replicas", "runOnce") {
			return
		}
		t := target{picks: b.pick(n, verb)}
		if verb == Patch {
			t.patch = b.patch(n)
		}
		if b.err != nil {
			return
		}
		targets = append(targets, t)
	}
	for it := range iterations {
		for _, t := range targets {
			if b.err != nil {
				return
			}
			picks := t.picks
			x := Batch{Verb: verb, Count: len(picks), Pace: b.pace(), At: func(i int) (*Request, error) {
				r, err := picks[i].request()
				if err != nil || verb != Patch {
					return r, err
				}
				return t.patch.of(r, it)
			}}
			x.Wait = verb == Delete && b.truth(b.job, "waitForDeletion", true)
			b.add(b.job, x)
		}
		if n := len(b.plan.Batches); n > 0 && len(targets) > 0 {
			b.plan.Batches[n-1].Pause += delay
		}
	}
	b.last(false)
}

// request is the object that was created.
func (p pick) request() (*Request, error) { return p.c.at(p.at) }

// pick finds the objects of an entry. Those that a job deletes are gone for later ones.
func (b *burn) pick(n *yaml.Node, verb Verb) (out []pick) {
	kind, labels := get(n, "kind"), b.texts(get(n, "labelSelector"), "labelSelector")
	if kind == nil {
		b.fail(n, "write kind: KIND", "the object has no kind")
		return nil
	}
	k := kindOf(kind.Value)
	switch {
	case b.err != nil:
		return nil
	case k == nil:
		b.fail(kind, "remove it", "%s %s", kind.Value, notKind(text(n, "apiVersion"), kind.Value))
		return nil
	case k.Name == "Secret" && verb != Delete:
		b.fail(kind, "remove it", "the load must not read secrets, and a user who can change a secret can read it")
		return nil
	}
	children := false
	for _, c := range b.made {
		for i, f := range c.refs {
			o := c.objects[f.object]
			if c.gone[i] || !b.matches(n, c, i, labels) {
				continue
			}
			if o.kind == nil || o.kind.Name != k.Name {
				children = children || k.Name == "Pod" && o.kind != nil && o.kind.Pod != nil
				continue
			}
			out = append(out, pick{c, i})
		}
	}
	if verb == Delete {
		for _, x := range out {
			x.c.gone[x.at] = true
		}
	}
	switch {
	case b.err != nil || len(out) > 0:
	case k.Name == "Pod" && verb == Delete && (children || b.anyPods(labels)):
		b.note(kind, "remove it", "controllers' pods are deleted with the controllers, so there is nothing to delete")
	default:
		b.fail(n, "write the labels of objects of an earlier job, such as "+labelJob+": NAME", "no %s of an earlier job has the labels %s", k.Name, selector(labels))
	}
	return out
}

// anyPods reports whether a job that these labels name has created something with pods.
func (b *burn) anyPods(labels map[string]string) bool {
	return slices.ContainsFunc(b.made, func(c *creation) bool {
		return c.job == labels[labelJob] && slices.ContainsFunc(c.objects, func(o *burnObject) bool { return o.kind != nil && o.kind.Pod != nil })
	})
}

// matches reports whether an object has these labels. Those of kube-burner are known; for others the object is rendered.
func (b *burn) matches(n *yaml.Node, c *creation, i int, labels map[string]string) bool {
	own, more := c.labels(c.refs[i]), false
	for name, v := range labels {
		if !strings.HasPrefix(name, burnerLabel) {
			more = true
		} else if own[name] != v {
			return false
		}
	}
	if !more || b.err != nil {
		return b.err == nil
	}
	if len(c.refs) > maxSelected {
		b.fail(n, "choose only by labels of kube-burner", "the job %s has more than %d objects, too many to search for other labels", c.job, maxSelected)
		return false
	}
	r, err := c.at(i)
	if err != nil {
		b.err = err
		return false
	}
	meta, _ := r.Fields["metadata"].(map[string]any)
	has, _ := meta["labels"].(map[string]any)
	for name, v := range labels {
		if x, ok := has[name].(string); !ok || x != v {
			return false
		}
	}
	return true
}

// patch is a change of objects.
type patch struct {
	object *burnObject
	kind   string
	job    string
}

// patch reads the change of an entry.
func (b *burn) patch(n *yaml.Node) *patch {
	t := get(n, "patchType")
	if t == nil || !slices.Contains(patchTypes(), t.Value) {
		if t == nil {
			t = n
		}
		b.fail(t, "write patchType: one of "+strings.Join(patchTypes(), ", "), "the type of the patch is missing or unknown")
		return nil
	}
	o := b.object(n)
	if o == nil {
		return nil
	}
	return &patch{object: o, kind: t.Value, job: b.name}
}

// of is the change of an object.
func (p *patch) of(r *Request, iteration int) (*Request, error) {
	o := *p.object // which counts its documents
	n, err := o.render(p.job, iteration, 0)
	if err != nil {
		return nil, err
	}
	list := p.kind == "application/json-patch+json"
	if list != (n.Kind == yaml.SequenceNode) {
		return nil, at(o.file, n, "write a list for application/json-patch+json, and KEY: VALUE for the other types", "the patch does not have the form of %s", p.kind)
	}
	out := &Request{Kind: r.Kind, Space: r.Space, Name: r.Name, Type: p.kind, file: o.file, node: n}
	if list {
		if err := harmless(o.file, n); err != nil {
			return nil, err
		}
		v, err := value(o.file, n)
		out.List, _ = v.([]any) // n is a list
		return out, err
	}
	if err := harmlessMeta(o.file, get(n, "metadata"), r.Name); err != nil {
		return nil, err
	}
	if p.kind == applyType {
		set(n, r.Name, "metadata", "name")
		set(n, r.Kind.APIVersion(), "apiVersion")
		set(n, r.Kind.Name, "kind")
	}
	if what, where := privileged(n); where != nil && r.Kind.Pod != nil {
		return nil, at(o.file, where, "remove it", "%s: pods of the load have no access to their node", what)
	}
	if ips := get(n, "spec", "externalIPs"); ips != nil {
		return nil, at(o.file, ips, "remove it", "external addresses take traffic of others")
	}
	v, err := value(o.file, n)
	out.Fields, _ = v.(map[string]any) // n is a mapping
	return out, err
}

// Change is the body of a request that changes an object.
func (r *Request) Change() ([]byte, error) {
	var v any = r.Fields
	if r.List != nil {
		v = r.List
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the patch of %s %s: %w", r.Kind.Name, r.Name, err)
	}
	return b, nil
}

// Query is what such a request has behind its path.
func (r *Request) Query() string {
	if r.Type == applyType {
		return "?fieldManager=tare&force=true"
	}
	return ""
}

// harmlessMeta refuses changes of an object's name and of what removes it.
func harmlessMeta(file string, meta *yaml.Node, name string) error {
	for _, key := range []string{"finalizers", "ownerReferences", "namespace"} {
		if v := get(meta, key); v != nil {
			return at(file, v, "remove it", "with a patch of %s the object could outlive its namespace", key)
		}
	}
	if v := get(meta, "name"); v != nil && v.Value != name {
		return at(file, v, "remove it", "a patch cannot rename an object")
	}
	return nil
}

// harmless refuses operations of a JSON patch that no object of a load may have.
func harmless(file string, list *yaml.Node) error {
	for _, op := range list.Content {
		where := get(op, "path")
		if where == nil || where.Kind != yaml.ScalarNode {
			return at(file, op, "write op, path and value", "this is not an operation of a JSON patch")
		}
		words := strings.Split(where.Value, "/")
		last := &yaml.Node{Kind: yaml.ScalarNode, Value: words[len(words)-1]}
		if len(words) > 1 && last.Value == "-" {
			last.Value = words[len(words)-2]
		}
		v := get(op, "value")
		if v == nil {
			v = &yaml.Node{Kind: yaml.ScalarNode}
		}
		for _, w := range words {
			if slices.Contains([]string{"finalizers", "ownerReferences", "externalIPs", "securityContext", "hostPath", "hostNetwork", "hostPID", "hostIPC", "nodeName", "capabilities"}, w) {
				return at(file, where, "remove it", "a change of %s is not made", w)
			}
		}
		if what, _ := privileged(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{last, v}}); what != "" {
			return at(file, where, "remove it", "%s: pods of the load have no access to their node", what)
		}
		for _, key := range []string{"finalizers", "ownerReferences", "externalIPs"} {
			if get(v, key) != nil || get(v, "metadata", key) != nil || get(v, "spec", key) != nil {
				return at(file, where, "remove it", "a change of %s is not made", key)
			}
		}
	}
	return nil
}
