// Package loadfile reads configuration files of other tools that load the API server: cluster-loader's in its three dialects, and
// kube-burner's jobs.
//
// The data path: 1. Names finds the templates that a file names, for whoever reads them; 2. Parse tells the dialect, and reads
// the file into a Plan (clusterloader.go, kubeburner.go): namespaces, and batches of requests; 3. Batch.At makes one request: it
// renders a template (parameters.go, gotemplate.go) and checks what comes out (manifest.go). Parse makes the first and the last
// request of each batch, so that a mistake is found when the study is read, and has its place in the file.
//
// What the fields mean here is told in docs/workloads/objects-files.md. References: cluster-loader.py and utils.py of
// openshift/svt; test/extended/cluster of openshift/origin; docs/reference/configuration.md of kube-burner.
package loadfile

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tare/param"
	"tare/workload/objects/pace"
)

// Param is the parameter that holds a file.
const Param = "file"

// Bounds of a file and of its load.
const (
	MaxValue    = 96 << 10 // bytes, with the templates: it travels in a command line
	MaxRequests = 1_000_000
	MaxSteps    = 100
	maxSpaces   = 10_000
	maxBatches  = 10_000
)

// Verb is what the requests of a batch do.
type Verb string

// Verbs.
const (
	Create Verb = "create"
	Delete Verb = "delete"
	Patch  Verb = "patch"
	Get    Verb = "get"
)

// Plan is what a load does.
type Plan struct {
	Spaces  []Space // the namespaces; they are there before the load begins
	Batches []Batch
	Steps   []Step
	Notes   []param.FileError // what is valid, and has no effect here
}

// Space is a namespace.
type Space struct {
	Name                string // in the file; in the cluster it has a name of the load's own
	Labels, Annotations map[string]string
	line                int // where the file makes it
}

// Batch is a number of requests that are sent in a row.
type Batch struct {
	Verb    Verb
	Count   int
	At      func(i int) (*Request, error) // the i-th, from 0; the same each time
	Pace    pace.Pace
	Group   int           // so many requests are due at the same time; 0: one
	Wait    bool          // afterwards until the pods of all batches run, or, of Delete, until the objects are gone
	Timeout time.Duration // of the wait; 0: the load's
	Pause   time.Duration // afterwards
}

// Step is a number of batches that are reported together.
type Step struct {
	Batches  int // of Plan.Batches, after those of the last step
	Requests int
	Objects  int     // that the file made and did not delete, after it
	Pods     bool    // it has pods that are waited for
	Rate     float64 // requests a second that are due; 0: none are, or with batches of several paces
	Changes  bool    // its requests do not only read
}

// Request is one request on one object.
type Request struct {
	Kind   *Kind
	Space  int // of Plan.Spaces
	Name   string
	Fields map[string]any // the object, or the change of it
	List   []any          // or the change, in the form of a JSON patch
	Type   string         // of a change: its media type
	Pods   int            // that a created object has

	file    string     // that the object or the change is from
	node    *yaml.Node // there
	selects *yaml.Node // LABEL=VALUE of the project, which its pods' nodeSelector has; nil: none
}

// Parse reads a file: the value of the parameter, a param.Bundle. vars are values of a file that is itself a template. An error in a
// file is a *param.FileError.
func Parse(value string, vars map[string]string) (*Plan, error) {
	b, err := param.ReadBundle(value)
	if err != nil {
		return nil, err
	}
	p := &parser{files: b.Files, plan: &Plan{}, spaces: map[string]int{}, roots: map[string]*yaml.Node{}}
	root := p.document(b.Text, vars)
	if p.err == nil {
		p.read(root, vars)
	}
	if p.err == nil {
		p.finish(root)
	}
	if p.err == nil && len(value) > MaxValue {
		p.fail(root, fmt.Sprintf("split it into files of at most %d bytes", MaxValue), "the file and its templates together have %d bytes", len(value))
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.plan, nil
}

// parser reads a file. After its first error it does nothing more.
type parser struct {
	files  map[string]string
	plan   *Plan
	spaces map[string]int        // of Plan.Spaces, by name
	roots  map[string]*yaml.Node // of files that were read
	serial int                   // of the next object, for names that are generated
	err    error
}

// read reads the file by its dialect, which its outermost keys tell.
func (p *parser) read(root *yaml.Node, vars map[string]string) {
	if root.Kind != yaml.MappingNode {
		p.fail(root, "write a file of cluster-loader (projects, or ClusterLoader) or of kube-burner (jobs)", "the file is not a mapping")
		return
	}
	keys := outermost(root)
	if !slices.Contains(keys, "jobs") && len(vars) > 0 {
		p.err = &param.ValueError{Param: "vars", Err: fmt.Errorf("vars have no effect on a file of cluster-loader; leave vars out")}
		return
	}
	switch {
	case slices.Contains(keys, "ClusterLoader"):
		p.goLoader(root)
	case slices.Contains(keys, "projects"):
		p.pythonLoader(root)
	case slices.Contains(keys, "jobs"):
		p.burner(root)
	case slices.Contains(keys, "tuningSets"):
		p.fail(root, "write the parameters of the workload objects; clusterloader2's tuning sets are values of rate (docs/workloads/objects-files.md)", "tare does not read files of clusterloader2")
	default:
		p.fail(root, "write a file of cluster-loader (projects, or ClusterLoader) or of kube-burner (jobs)", "the file has none of the keys projects, ClusterLoader and jobs")
	}
}

func outermost(root *yaml.Node) (keys []string) {
	for i := 0; i < len(root.Content); i += 2 {
		keys = append(keys, root.Content[i].Value)
	}
	return keys
}

// fail notes the first error, at a place in the file.
func (p *parser) fail(n *yaml.Node, instead, what string, args ...any) {
	if p.err == nil {
		p.err = at("", n, instead, what, args...)
	}
}

// at is a mistake at a place in a file, "" the file itself.
func at(file string, n *yaml.Node, instead, what string, args ...any) error {
	return &param.FileError{Param: Param, File: file, Line: max(1, n.Line), Column: max(1, n.Column), What: fmt.Sprintf(what, args...), Instead: instead}
}

// note warns of something that is valid, and has no effect.
func (p *parser) note(n *yaml.Node, instead, what string, args ...any) {
	p.plan.Notes = append(p.plan.Notes, param.FileError{Param: Param, Line: n.Line, Column: n.Column, What: fmt.Sprintf(what, args...), Instead: instead})
}

// space is the namespace of this name, which is made if it is new.
func (p *parser) space(n *yaml.Node, name string) int {
	i, ok := p.spaces[name]
	switch {
	case ok:
		return i
	case len(name) > 63 || !labelRE.MatchString(name):
		p.fail(n, "write at most 63 lower-case letters, digits and hyphens", "%q is not the name of a namespace", name)
	case len(p.plan.Spaces) == maxSpaces:
		p.fail(n, "create fewer namespaces", "the file creates more than %d namespaces", maxSpaces)
	}
	i = len(p.plan.Spaces)
	p.plan.Spaces, p.spaces[name] = append(p.plan.Spaces, Space{Name: name, line: n.Line}), i
	return i
}

// serials returns the first of so many numbers that no other objects have.
func (p *parser) serials(count int) (first int) {
	first = p.serial
	p.serial += count
	return first
}

var labelRE = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// add adds a batch, whose first and last request must be possible.
func (p *parser) add(n *yaml.Node, b Batch) {
	if p.err != nil || b.Count == 0 {
		return
	}
	if len(p.plan.Batches) == maxBatches {
		p.fail(n, "write larger steps", "the file has more than %d steps", maxBatches)
		return
	}
	for _, i := range []int{0, b.Count - 1} {
		if _, err := b.At(i); err != nil {
			p.err = err
			return
		}
	}
	p.plan.Batches = append(p.plan.Batches, b)
}

// finish makes steps of the batches: a step ends when pods are waited for, and with the load. A load with more steps than are
// reported has several of these in one.
func (p *parser) finish(root *yaml.Node) {
	all := p.plan.Batches
	if len(all) == 0 {
		p.fail(root, "write a number above 0", "the file creates nothing")
		return
	}
	ends, requests := 0, 0
	for i := range all {
		if all[i].Verb == Create && all[i].ends(all, i) {
			all[i].Wait = true // a step's pods are read when they run
		}
		if requests += all[i].Count; ends == 0 || all[i].ends(all, i) {
			ends++
		}
	}
	if requests > MaxRequests {
		p.fail(root, "write smaller numbers", "the file has %d requests, but at most %d are possible", requests, MaxRequests)
		return
	}
	each := (ends + MaxSteps - 1) / MaxSteps
	var s Step
	n, objects := 0, 0
	for i := range all {
		b := &all[i]
		s.Batches++
		s.Requests += b.Count
		s.Changes = s.Changes || b.Verb != Get
		switch b.Verb {
		case Create:
			objects += b.Count
			s.Pods = s.Pods || p.pods(b)
		case Delete:
			objects -= b.Count
		}
		if !b.ends(all, i) {
			continue
		}
		if n++; n%each == 0 || i == len(all)-1 {
			s.Objects = objects
			if s.Batches == 1 {
				s.Rate = b.Pace.Rate(b.Count) * float64(max(1, b.Group))
			}
			p.plan.Steps = append(p.plan.Steps, s)
			s = Step{}
		}
	}
}

// ends reports whether the i-th batch, b, ends a step.
func (b *Batch) ends(all []Batch, i int) bool {
	return b.Wait || i == len(all)-1 || all[i+1].Verb != b.Verb
}

// pods reports whether one of a batch's objects has pods. Objects that follow each other may be of several kinds.
func (p *parser) pods(b *Batch) bool {
	for i := range min(b.Count, maxKinds) {
		r, err := b.At(i)
		if err != nil {
			p.err = err
			return false
		}
		if r.Pods > 0 {
			return true
		}
	}
	return false
}

// maxKinds bounds the objects of a template.
const maxKinds = 64

// HasPods reports whether the plan has pods that are waited for.
func (p *Plan) HasPods() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Pods })
}

// Names finds the files that a file names, and where they may be: cluster-loader's configurations stand in a folder beside or
// below the one that the loader runs in, which has the templates in the folder content. A name leads to no place outside of these folders:
// a study keeps the text of the files, and their mistakes are shown.
func Names(text string) []param.Named {
	var out []param.Named
	seen := map[string]bool{}
	for _, name := range named(text) {
		if name = strings.TrimSpace(name); seen[name] || strings.Contains(name, "://") || strings.Contains(name, "{{") {
			continue
		}
		seen[name] = true
		if at := places(name); len(at) > 0 {
			out = append(out, param.Named{Name: name, Places: at})
		}
	}
	return out
}

// places are those where a file that is named may be: below the folder that is highest above the configuration.
func places(name string) (out []string) {
	if name == "" || path.IsAbs(name) {
		return nil
	}
	const highest = "../.."
	for _, dir := range []string{"", "..", highest} {
		for _, content := range []string{"", "content"} {
			if at := path.Join(dir, content, name); !slices.Contains(out, at) && !strings.HasPrefix(at, highest+"/..") {
				out = append(out, at)
			}
		}
	}
	return out
}

// Takes is about how long it takes until the last request of a batch is due.
func (b *Batch) Takes() time.Duration { return b.Pace.Takes(b.Count / max(1, b.Group)) }

// Due says when the requests of a batch are due, from the first one's moment on; nil: none is.
func (b *Batch) Due(seed int) func(i int) time.Duration {
	group := max(1, b.Group)
	due := b.Pace.Due((b.Count+group-1)/group, seed)
	if due == nil {
		return nil
	}
	return func(i int) time.Duration { return due(i / group) }
}
