package loadfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// tuning is how a tuning set paces one sort of object.
type tuning struct {
	step           int // objects, or uses of a template, in a step; 0: there are no steps
	pause, timeout time.Duration
	delay          time.Duration // between two
}

// loader reads cluster-loader's files. golang tells that of openshift/origin and of kubernetes/perf-tests from that of
// openshift/svt.
type loader struct {
	*parser
	golang  bool
	tunings map[string]map[string]tuning // by set and sort
	quotas  map[string]*yaml.Node
	project *project
}

// project is the namespace under way.
type project struct {
	space  int
	node   *yaml.Node // LABEL=VALUE of the nodes that its pods run on; nil: any
	tuning map[string]tuning
}

// pythonLoader reads a file of cluster-loader.py.
func (p *parser) pythonLoader(root *yaml.Node) {
	if p.keys(root, "the file", "projects", "tuningsets", "quotas", "provider") {
		(&loader{parser: p}).read(root)
	}
}

// goLoader reads a file of the loader in Go.
func (p *parser) goLoader(root *yaml.Node) {
	body := get(root, "ClusterLoader")
	if p.keys(root, "the file", "ClusterLoader", "provider") && p.keys(body, "ClusterLoader", "projects", "tuningsets", "quotas", "cleanup", "delete", "sync") {
		l := &loader{parser: p, golang: true}
		l.read(body)
		if wait, timeout := l.sync(get(body, "sync")); wait {
			l.waits(timeout)
		}
	}
}

// oneOf says what to write instead of a name that the file does not define. If the file defines no names, it returns none.
func oneOf(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return "write one of " + strings.Join(names, ", ")
}

// waits makes the last batch one that is waited for.
func (l *loader) waits(timeout time.Duration) {
	if n := len(l.plan.Batches); l.err == nil && n > 0 {
		l.plan.Batches[n-1].Wait, l.plan.Batches[n-1].Timeout = true, timeout
	}
}

func (l *loader) read(body *yaml.Node) {
	l.tunings, l.quotas = map[string]map[string]tuning{}, map[string]*yaml.Node{}
	for _, n := range l.list(get(body, "tuningsets"), "tuningsets") {
		if !l.keys(n, "a tuning set", "name", "pods", "templates") {
			return
		}
		l.tunings[text(n, "name")] = map[string]tuning{"pods": l.tuning(get(n, "pods")), "templates": l.tuning(get(n, "templates"))}
	}
	for _, n := range l.list(get(body, "quotas"), "quotas") {
		if !l.keys(n, "a quota", "name", "file") {
			return
		}
		l.quotas[text(n, "name")] = n
	}
	projects := l.list(get(body, "projects"), "projects")
	for _, n := range projects {
		l.projects(n)
	}
}

// tuning reads the part of a tuning set for one sort of object. Some published files write rate_limit, others ratelimit.
func (l *loader) tuning(n *yaml.Node) (t tuning) {
	if n == nil || !l.keys(n, "a tuning set", "stepping", "rate_limit", "ratelimit") {
		return t
	}
	if s := get(n, "stepping"); s != nil && l.keys(s, "stepping", "stepsize", "pause", "timeout") {
		t.step = l.number(s, "stepsize", 0, MaxRequests)
		t.pause = l.duration(get(s, "pause"), "pause", time.Second)
		t.timeout = l.duration(get(s, "timeout"), "timeout", time.Second)
	}
	for _, key := range []string{"rate_limit", "ratelimit"} {
		if r := get(n, key); r != nil && l.keys(r, key, "delay") {
			t.delay = l.duration(get(r, "delay"), "delay", time.Millisecond)
		}
	}
	return t
}

// projects reads an entry of the projects: so many namespaces with the same objects.
func (l *loader) projects(n *yaml.Node) {
	known := []string{"num", "basename", "ifexists", "tuning", "labels", "configmaps", "secrets", "templates", "pods"}
	if !l.golang {
		known = []string{"num", "basename", "ifexists", "tuning", "nodeselector", "quota", "templates", "services", "users", "pods", "rcs"}
	}
	if !l.keys(n, "a project", known...) {
		return
	}
	p := &project{}
	if name := text(n, "tuning"); name != "" {
		var ok bool
		if p.tuning, ok = l.tunings[name]; !ok {
			l.fail(get(n, "tuning"), oneOf(slices.Sorted(maps.Keys(l.tunings)), "add tuningsets, or remove tuning"), "the file defines no tuning set %q", name)
		}
	}
	if s := text(n, "nodeselector"); s != "" {
		if p.node = get(n, "nodeselector"); !strings.Contains(s, "=") {
			l.fail(p.node, "write LABEL=VALUE", "%q is not a label", s)
		}
	}
	count := l.number(n, "num", 0, maxSpaces)
	l.project = p
	for i := range count {
		if p.space = l.namespace(n, i, count); l.err != nil {
			return
		}
		if l.fill(n); l.err != nil {
			return
		}
	}
}

// namespace is the i-th of a project's. Nothing of the cluster's has its name, so ifexists is about those of this file.
func (l *loader) namespace(n *yaml.Node, i, count int) int {
	base, exists := text(n, "basename"), text(n, "ifexists")
	name := base + strconv.Itoa(i)
	switch exists {
	case "", "default", "delete":
	case "reuse":
		if l.golang {
			break
		}
		if name = base; count > 1 { // as cluster-loader.py names it
			l.fail(get(n, "num"), "write num: 1", "with ifexists: reuse, all %d projects are the same namespace, so their objects have the same names", count)
		}
	default:
		l.fail(get(n, "ifexists"), "write reuse, delete or default", "ifexists: %q is not a known value", exists)
	}
	if old, ok := l.spaces[name]; ok && exists != "reuse" {
		l.fail(n, "write another basename, or ifexists: reuse", "line %d already creates the project %s", l.plan.Spaces[old].line, name)
		return 0
	}
	space := l.space(n, name)
	if l.err == nil {
		l.plan.Spaces[space].Labels = l.texts(get(n, "labels"), "labels")
	}
	return space
}

// fill makes the objects of a project, in the order in which the loader makes them.
func (l *loader) fill(n *yaml.Node) {
	if users := get(n, "users"); users != nil {
		l.fail(users, "remove them", "users: plain Kubernetes has no objects for users")
	}
	l.filesOf(get(n, "configmaps"), "ConfigMap")
	l.filesOf(get(n, "secrets"), "Secret")
	if name := text(n, "quota"); name != "" {
		q := l.quotas[name]
		if q == nil {
			l.fail(get(n, "quota"), oneOf(slices.Sorted(maps.Keys(l.quotas)), "add quotas, or remove quota"), "the file defines no quota %q", name)
			return
		}
		l.plain(q, "quota", 1, tuning{}, func(o *yaml.Node, _ int) { set(o, name, "metadata", "name") })
	}
	for _, t := range l.list(get(n, "templates"), "templates") {
		l.templates(t)
	}
	for _, s := range l.list(get(n, "services"), "services") {
		if l.keys(s, "a service", "num", "file", "basename") {
			l.plain(s, "service", l.number(s, "num", 0, MaxRequests), tuning{}, numbered(text(s, "basename")))
		}
	}
	l.pods(n)
	for _, r := range l.list(get(n, "rcs"), "rcs") {
		l.controllers(r)
	}
}

// pods makes the pods of a project: in Python so many percent of a total.
func (l *loader) pods(n *yaml.Node) {
	list := l.list(get(n, "pods"), "pods")
	if len(list) == 0 {
		return
	}
	total := -1
	if !l.golang {
		if get(list[0], "total") == nil || get(list[0], "num") != nil {
			l.fail(list[0], "write - total: NUMBER first", "the pods have no total, but each num is a percentage of it")
			return
		}
		total = l.number(list[0], "total", 0, MaxRequests)
		list = list[1:]
	}
	for _, e := range list {
		if !l.keys(e, "pods", "num", "image", "basename", "file", "storage", "total", "sync", "parameters") {
			return
		}
		l.storage(get(e, "storage"))
		if v := get(e, "parameters"); v != nil {
			l.fail(v, "write them into the file of the pod", "tare does not read parameters of pods, which set environment variables from a ConfigMap")
		}
		base := text(e, "basename")
		if !l.golang {
			l.plain(e, "pod", min(MaxRequests+1, l.number(e, "num", 0, 10_000)*total/100), l.project.tuning["pods"], numbered(base))
			continue
		}
		l.plain(e, "pod", l.number(e, "num", 0, MaxRequests), l.project.tuning["pods"], func(o *yaml.Node, i int) {
			remove(o, "metadata") // the loader takes the specification alone
			set(o, fmt.Sprintf("%s-pod-%d", base, i), "metadata", "name")
			set(o, "test", "metadata", "labels", "purpose")
		})
		if wait, timeout := l.sync(get(e, "sync")); wait {
			l.waits(timeout)
		}
	}
	if !l.golang {
		l.waits(l.project.tuning["pods"].timeout)
	}
}

// storage refuses volumes that the loader would make outside of Kubernetes.
func (l *loader) storage(n *yaml.Node) {
	for _, s := range l.list(n, "storage") {
		if t := strings.ToLower(text(s, "type")); t != "none" && t != "n" {
			l.fail(s, "write type: none, and put a claim into a template", "the loader creates storage of the type %q outside of Kubernetes", t)
		}
	}
}

// controllers makes replication controllers.
func (l *loader) controllers(n *yaml.Node) {
	if !l.keys(n, "a replication controller", "num", "replicas", "file", "basename", "image") {
		return
	}
	replicas, image, base := l.number(n, "replicas", 1, maxPods), text(n, "image"), text(n, "basename")
	l.plain(n, "rc", l.number(n, "num", 0, MaxRequests), tuning{}, func(o *yaml.Node, i int) {
		name := base + strconv.Itoa(i)
		set(o, name, "metadata", "name")
		set(o, strconv.Itoa(replicas), "spec", "replicas")
		if count := get(o, "spec", "replicas"); count != nil {
			count.Tag, count.Style = "!!int", 0
		}
		set(o, name, "spec", "selector", "name")
		set(o, name, "spec", "template", "metadata", "labels", "name")
		if c := get(o, "spec", "template", "spec", "containers"); image != "" && c != nil && len(c.Content) > 0 && c.Content[0].Kind == yaml.MappingNode {
			set(c.Content[0], image, "image")
		}
	})
}

// sync reads whether pods are waited for.
func (l *loader) sync(n *yaml.Node) (wait bool, timeout time.Duration) {
	if n == nil || !l.keys(n, "sync", "server", "running", "succeeded", "selectors", "timeout") {
		return false, 0
	}
	if l.truth(get(n, "server"), "enabled", false) {
		l.fail(get(n, "server"), "remove it", "sync: tare has no web server that pods can ask")
	}
	if l.truth(n, "succeeded", false) {
		l.fail(get(n, "succeeded"), "write running: true", "the load waits until pods run, not until they end")
	}
	if s := get(n, "selectors"); s != nil {
		l.note(s, "remove it", "selectors have no effect: the load waits for all pods that it has created")
	}
	return l.truth(n, "running", false), l.duration(get(n, "timeout"), "timeout", time.Second)
}

// filesOf makes a ConfigMap or a Secret of each file.
func (l *loader) filesOf(n *yaml.Node, kind string) {
	all := l.texts(n, strings.ToLower(kind)+"s")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path, file := get(n, name), all[name]
		data, ok := l.files[file]
		if !ok {
			l.missing(path)
			return
		}
		o := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: path.Line, Column: path.Column}
		set(o, "v1", "apiVersion")
		set(o, kind, "kind")
		set(o, name, "metadata", "name")
		set(o, data, map[string]string{"ConfigMap": "data", "Secret": "stringData"}[kind], name)
		space := l.project.space
		l.add(path, Batch{Verb: Create, Count: 1, At: func(int) (*Request, error) { return placed("", clone(o), space, nil) }})
	}
}
