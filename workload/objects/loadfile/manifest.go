package loadfile

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/internal/yamlcheck"
)

// Objects are small, and there are many of them.
const (
	maxObject = 64 << 10 // bytes of one, as text
	maxPods   = 5000     // of one object
)

var nameRE = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)

// object reads an object that a template makes, and refuses what a load must not create.
func object(file string, n *yaml.Node) (*Request, error) {
	version, kind := get(n, "apiVersion"), get(n, "kind")
	switch {
	case n.Kind != yaml.MappingNode || kind == nil || kind.Kind != yaml.ScalarNode:
		return nil, at(file, lacking(n, "kind"), "write apiVersion, kind, metadata and spec", "this is not a Kubernetes object")
	case version == nil || version.Kind != yaml.ScalarNode:
		return nil, at(file, lacking(n, "apiVersion"), "write the version of its API, such as apiVersion: v1", "the %s has no apiVersion", kind.Value)
	}
	k := kindOf(kind.Value)
	if k == nil {
		return nil, at(file, kind, "remove it; docs/workloads/objects-files.md has the kinds that the load creates", "%s %s", kind.Value, notKind(version.Value, kind.Value))
	}
	if version.Value != k.APIVersion() {
		return nil, at(file, version, "write "+k.APIVersion(), "the API %s does not have the kind %s, or no longer has it", version.Value, k.Name)
	}
	r := &Request{Kind: k, file: file, node: n}
	if err := r.meta(file, n); err != nil {
		return nil, err
	}
	if err := r.pods(file, n); err != nil {
		return nil, err
	}
	if k.Name == "Service" {
		if ips := get(n, "spec", "externalIPs"); ips != nil && len(ips.Content) > 0 {
			return nil, at(file, ips, "remove it", "external addresses take traffic of others")
		}
	}
	fields, err := value(file, n)
	if err != nil {
		return nil, err
	}
	r.Fields, _ = fields.(map[string]any) // n is a mapping
	return r, nil
}

// The name that Kubernetes generates has a suffix of so many characters, and at most maxBase of generateName before it.
const (
	suffix  = 5
	maxBase = 63 - suffix
)

// generate names an object after its generateName, if it has no name. Kubernetes would draw a suffix, but the load knows the name before it
// creates the object, and each trial has the same. serial is a number that no other object has.
func generate(o *yaml.Node, serial int) {
	from := get(o, "metadata", "generateName")
	if from == nil || text(o, "metadata", "generateName") == "" || text(o, "metadata", "name") != "" {
		return
	}
	s := strconv.FormatInt(int64(serial), 36)
	set(o, from.Value[:min(len(from.Value), maxBase)]+strings.Repeat("0", max(0, suffix-len(s)))+s, "metadata", "name")
	name := get(o, "metadata", "name")
	name.Line, name.Column = from.Line, from.Column
}

// meta reads the name.
func (r *Request) meta(file string, n *yaml.Node) error {
	meta, name := get(n, "metadata"), get(n, "metadata", "name")
	switch {
	case meta != nil && meta.Kind != yaml.MappingNode:
		return at(file, keyOf(n, "metadata"), "write metadata: and below it name: NAME", "metadata of the %s is not a mapping", r.Kind.Name)
	case name == nil || name.Kind != yaml.ScalarNode:
		return at(file, lacking(n, "metadata", "name"), "write metadata: and below it name: NAME", "the %s has no name", r.Kind.Name)
	case len(name.Value) > 253 || !nameRE.MatchString(name.Value):
		return at(file, name, "write lower-case letters, digits, - and .", "%q is not a valid name of an object", name.Value)
	}
	r.Name = name.Value
	for _, key := range []string{"finalizers", "ownerReferences"} {
		if v := get(meta, key); v != nil && len(v.Content) > 0 {
			return at(file, v, "remove it", "with %s the object could outlive its namespace", key)
		}
	}
	if v := get(meta, "namespace"); v != nil && v.Value != "" {
		return at(file, v, "remove it", "the load creates objects only in namespaces of its own")
	}
	for _, key := range []string{"labels", "annotations"} {
		if v := get(meta, key); v != nil && v.Tag != "!!null" && v.Kind != yaml.MappingNode {
			return at(file, keyOf(meta, key), "write KEY: VALUE", "%s are not a mapping", key)
		}
	}
	return nil
}

// pods counts the pods of an object, and refuses privileged ones.
func (r *Request) pods(file string, n *yaml.Node) error {
	if r.Kind.Pod == nil {
		return nil
	}
	spec := get(n, r.Kind.Pod...)
	if c := get(spec, "containers"); c == nil || c.Kind != yaml.SequenceNode || len(c.Content) == 0 {
		path := append(slices.Clone(r.Kind.Pod), "containers")
		return at(file, lacking(n, path...), "write "+strings.Join(path, ".")+", a list", "the %s has no container", r.Kind.Name)
	}
	if what, where := privileged(spec); where != nil {
		return at(file, where, "remove it", "%s: pods of the load have no access to their node", what)
	}
	meta := append(slices.Clone(r.Kind.Pod[:len(r.Kind.Pod)-1]), "metadata")
	if v := get(n, meta...); v != nil && v.Tag != "!!null" && v.Kind != yaml.MappingNode {
		return at(file, keyOf(n, meta...), "write KEY: VALUE", "metadata of the pods is not a mapping")
	}
	for _, key := range []string{"labels", "annotations"} {
		path := append(slices.Clone(meta), key)
		if v := get(n, path...); v != nil && v.Tag != "!!null" && v.Kind != yaml.MappingNode {
			return at(file, keyOf(n, path...), "write KEY: VALUE", "%s of the pods are not a mapping", key)
		}
	}
	r.Pods = 1
	if r.Kind.Replicas == "" {
		return nil
	}
	if v := get(n, strings.Split(r.Kind.Replicas, ".")...); v != nil && v.Tag != "!!null" {
		count, err := strconv.Atoi(v.Value)
		if v.Kind != yaml.ScalarNode || err != nil || count < 0 || count > maxPods {
			return at(file, v, "write a whole number up to "+strconv.Itoa(maxPods), "%s: %q is not a valid number", r.Kind.Replicas, v.Value)
		}
		r.Pods = count
	}
	return nil
}

// privileged finds what gives a pod access to its node.
func privileged(n *yaml.Node) (what string, where *yaml.Node) {
	if n == nil {
		return "", nil
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			key := n.Content[i-1]
			switch {
			case slices.Contains([]string{"hostNetwork", "hostPID", "hostIPC", "privileged"}, key.Value) && c.Value != "false" && c.Tag != "!!null",
				key.Value == "hostPath", key.Value == "nodeName" && c.Value != "",
				key.Value == "hostPort" && c.Value != "0",
				key.Value == "add" && c.Kind == yaml.SequenceNode && len(c.Content) > 0:
				return key.Value, key
			}
		}
		if what, where := privileged(c); where != nil {
			return what, where
		}
	}
	return "", nil
}

// value is a node as JSON has it.
func value(file string, n *yaml.Node) (any, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		what, _ := yamlcheck.Unplaced(err)
		return nil, at(file, n, "", "this is not YAML: %s", what)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, at(file, n, "write keys that are strings", "this cannot be converted to JSON: %v", err)
	}
	if len(b) > maxObject {
		return nil, at(file, n, "make it smaller", "the object has %d bytes, more than %d", len(b), maxObject)
	}
	return v, nil
}
