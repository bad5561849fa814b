package sizing

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"tare/internal/yamlcheck"
)

// maxManifest bounds what is read of a manifest, in bytes.
const maxManifest = 1 << 20

// maxKinds is how many objects without containers an error names.
const maxKinds = 5

// Annotations of a pod that Kata reads, where the runtime's configuration allows
// them (docs/how-to/how-to-set-sandbox-config-kata.md). Their values are strings.
const (
	AnnotationVCPUs  = "io.katacontainers.config.hypervisor.default_vcpus"
	AnnotationMemory = "io.katacontainers.config.hypervisor.default_memory"
)

// ErrEmpty means that the manifest is empty.
var ErrEmpty = errors.New("1:1: the manifest is empty; write a Pod")

// manifest is the part of a Kubernetes object that sizes depend on: a Pod, an
// object with a pod template in spec.template, or a CronJob with one in its jobTemplate.
type manifest struct {
	Kind     string     `yaml:"kind"`
	Items    []manifest `yaml:"items"` // of a List
	Metadata meta       `yaml:"metadata"`
	Spec     struct {
		podSpec     `yaml:",inline"`
		Template    *template `yaml:"template"`
		JobTemplate struct {
			Spec struct {
				Template *template `yaml:"template"`
			} `yaml:"spec"`
		} `yaml:"jobTemplate"`
	} `yaml:"spec"`
}

type template struct {
	Metadata meta    `yaml:"metadata"`
	Spec     podSpec `yaml:"spec"`
}

type meta struct {
	Name        string               `yaml:"name"`
	Annotations map[string]yaml.Node `yaml:"annotations"`
}

type podSpec struct {
	Containers     []container          `yaml:"containers"`
	InitContainers []container          `yaml:"initContainers"`
	Resources      resources            `yaml:"resources"` // of the pod as a whole (Kubernetes 1.34)
	Overhead       map[string]yaml.Node `yaml:"overhead"`  // of its RuntimeClass
	RuntimeClass   string               `yaml:"runtimeClassName"`
}

type resources struct {
	Limits   map[string]yaml.Node `yaml:"limits"`
	Requests map[string]yaml.Node `yaml:"requests"`
}

type container struct {
	Name          string    `yaml:"name"`
	RestartPolicy string    `yaml:"restartPolicy"` // Always makes an init container a sidecar
	Resources     resources `yaml:"resources"`
}

// Object is one pod of a manifest.
type Object struct {
	Kind    string // of the object, such as Deployment
	Name    string // "" if the object has no name
	Class   string // RuntimeClass; "" for the cluster's default
	Pod     Pod
	Runtime Runtime // with the pod's annotations and overhead, and the runtime that its RuntimeClass names
}

// FromManifest reads the first object with containers of a Kubernetes manifest, YAML or
// JSON: a Pod, or an object with a pod template. If that is a List, as of `kubectl get pods
// -o yaml`, it reads all of the List. It puts a pod's annotations and overhead into a copy of
// r, and if r has no flavour, that of the RuntimeClass, as far as its name tells. Errors have line and column. An empty manifest gives ErrEmpty.
func FromManifest(in io.Reader, r Runtime) ([]Object, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("1:1: cannot read the manifest: %w", err)
	case len(text) > maxManifest:
		return nil, fmt.Errorf("1:1: the manifest is over %d bytes", maxManifest)
	}
	if err := yamlcheck.Check(text); err != nil {
		return nil, fmt.Errorf("1:1: not a manifest: %w", err)
	}
	found, err := find(text)
	if err != nil {
		return nil, err
	}
	var out []Object
	for i := range found {
		o, err := found[i].object(r)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// find returns the first object with containers, or all of the first List that has some.
func find(text []byte) ([]manifest, error) {
	var kinds []string
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		err := d.Decode(&m)
		switch {
		case errors.Is(err, io.EOF) && len(kinds) == 0:
			return nil, ErrEmpty
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("1:1: no containers in %s; write a Pod, or what has a pod template", strings.Join(kinds, ", "))
		case err != nil:
			return nil, fmt.Errorf("1:1: not a manifest: %w", err)
		}
		var found []manifest
		for _, o := range append([]manifest{m}, m.Items...) {
			if spec, _ := o.inner(); len(spec.Containers) > 0 {
				found = append(found, o)
			}
		}
		if len(found) > 0 {
			return found, nil
		}
		if len(kinds) < maxKinds {
			kinds = append(kinds, cmp.Or(m.Kind, "an object"))
		}
	}
}

// inner returns the pod of an object or of its template.
func (m *manifest) inner() (podSpec, meta) {
	if t := cmp.Or(m.Spec.Template, m.Spec.JobTemplate.Spec.Template); t != nil {
		return t.Spec, t.Metadata
	}
	return m.Spec.podSpec, m.Metadata
}

func (m *manifest) object(r Runtime) (Object, error) {
	spec, at := m.inner()
	o := Object{Kind: cmp.Or(m.Kind, "Pod"), Name: m.Metadata.Name, Class: spec.RuntimeClass, Runtime: r}
	if r.Flavour == "" {
		o.Runtime.Flavour = FlavourOf(spec.RuntimeClass) // kata-deploy's classes are named as their handlers
	}
	var err error
	if o.Pod, err = spec.pod(); err != nil {
		return o, err
	}
	if o.Pod, err = spec.whole(o.Pod); err != nil {
		return o, err
	}
	if spec.Overhead != nil {
		over, _, err := quantity("the overhead", spec.Overhead, "cpu")
		if err != nil {
			return o, err
		}
		o.Runtime.Overhead, o.Runtime.OverheadGiven = over.AsApproximateFloat64(), true
	}
	if o.Runtime.VCPUs, o.Runtime.VCPUsAnnotated, err = annotation(at, AnnotationVCPUs, r.VCPUs); err != nil {
		return o, err
	}
	o.Runtime.MemoryMiB, o.Runtime.MemoryAnnotated, err = annotation(at, AnnotationMemory, r.MemoryMiB)
	return o, err
}

// whole replaces the sums over the containers with the limits and the request of the whole
// pod, if it has them, as the kubelet does (k8s.io/component-helpers/resource, PodLimits;
// Kubernetes 1.34, PodLevelResources).
func (s podSpec) whole(p Pod) (Pod, error) {
	const who = "the pod"
	limit, bounded, err := quantity(who, s.Resources.Limits, "cpu")
	if err != nil {
		return p, err
	}
	request, asked, err := quantity(who, s.Resources.Requests, "cpu")
	if err != nil {
		return p, err
	}
	memory, sized, err := memoryOf(who, s.Resources.Limits)
	if bounded {
		p.CPULimit, p.Unbounded = limit.AsApproximateFloat64(), limit.IsZero()
	}
	if asked {
		p.CPURequest = request.AsApproximateFloat64()
	}
	if sized {
		p.MemoryLimit = memory.Value()
	}
	return p, err
}

// pod returns what the containers request together, as the kubelet computes it: the sum of
// the containers and sidecars, or a step of the start that needs more. Each init container is
// such a step, with the sidecars that run by then (k8s.io/component-helpers/resource,
// PodLimits).
func (s podSpec) pod() (Pod, error) {
	var sidecars, start Pod
	for _, c := range s.InitContainers {
		one, err := c.pod()
		if err != nil {
			return Pod{}, err
		}
		if c.RestartPolicy == "Always" { // a sidecar runs as long as the pod
			sidecars = sidecars.and(one)
			continue
		}
		start = start.or(sidecars.and(one))
	}
	all := sidecars
	for _, c := range s.Containers {
		one, err := c.pod()
		if err != nil {
			return Pod{}, err
		}
		all = all.and(one)
	}
	all = all.or(start)
	if all.MemoryLimit == math.MaxInt64 {
		return Pod{}, errors.New("1:1: the memory limits together are over 8 EiB")
	}
	return all, nil
}

// and returns the sum of two pods that run at once.
func (p Pod) and(q Pod) Pod {
	p.CPULimit += q.CPULimit
	p.CPURequest += q.CPURequest
	if p.MemoryLimit += q.MemoryLimit; p.MemoryLimit < 0 {
		p.MemoryLimit = math.MaxInt64
	}
	p.Unbounded = p.Unbounded || q.Unbounded
	return p
}

// or returns the maximum of two pods that run one after the other.
func (p Pod) or(q Pod) Pod {
	return Pod{max(p.CPULimit, q.CPULimit), max(p.CPURequest, q.CPURequest), max(p.MemoryLimit, q.MemoryLimit), p.Unbounded || q.Unbounded}
}

// pod returns the pod of one container.
func (c container) pod() (Pod, error) {
	who := fmt.Sprintf("container %q", c.Name)
	limit, ok, err := quantity(who, c.Resources.Limits, "cpu")
	if err != nil {
		return Pod{}, err
	}
	request, asked, err := quantity(who, c.Resources.Requests, "cpu")
	if err != nil {
		return Pod{}, err
	}
	if !asked {
		request = limit // the API server's default
	}
	memory, _, err := memoryOf(who, c.Resources.Limits)
	return Pod{limit.AsApproximateFloat64(), request.AsApproximateFloat64(), memory.Value(), !ok || limit.IsZero()}, err
}

// memoryOf reads a memory limit, false if there is no limit. who is the container's name, for
// the error.
func memoryOf(who string, limits map[string]yaml.Node) (resource.Quantity, bool, error) {
	q, ok, err := quantity(who, limits, "memory")
	if err != nil {
		return q, false, err
	}
	if err := CheckMemory(q); err != nil {
		n := limits["memory"]
		return q, false, fmt.Errorf("%d:%d: %s: memory %w", n.Line, n.Column, who, err)
	}
	return q, ok, nil
}

// quantity reads one entry of limits or requests, false if it is missing. who is the
// container's name, for the error.
func quantity(who string, from map[string]yaml.Node, name string) (resource.Quantity, bool, error) {
	n, ok := from[name]
	if !ok {
		return resource.Quantity{}, false, nil
	}
	q, err := ParseQuantity(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return q, false, fmt.Errorf("%d:%d: %s: %s %q is not a quantity; write one as 2, 2500m or 8Gi", n.Line, n.Column, who, name, n.Value)
	}
	return q, true, nil
}

// ParseQuantity reads a quantity as Kubernetes writes it: 2, 2500m, 8Gi. A
// negative one is an error, and so is one of over 32 characters.
func ParseQuantity(text string) (resource.Quantity, error) {
	if len(text) > 32 { // long decimals take much time to parse
		return resource.Quantity{}, fmt.Errorf("%q... is not a quantity", text[:32])
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return resource.Quantity{}, fmt.Errorf("%q is not a quantity; write one as 2, 2500m or 8Gi", text)
	case q.Sign() < 0:
		return resource.Quantity{}, fmt.Errorf("%q is negative; write a quantity as 2, 2500m or 8Gi", text)
	}
	return q, nil
}

// leastMemory is the smallest memory limit, in bytes, that is not taken for a mistake.
const leastMemory = 1 << 20

// CheckMemory refuses a memory limit that is too small to be meant: 1536m is 1.5 bytes,
// because m is a thousandth here too, as for CPUs.
func CheckMemory(q resource.Quantity) error {
	if q.IsZero() || q.Value() >= leastMemory {
		return nil
	}
	text := q.String()
	if cut, ok := strings.CutSuffix(text, "m"); ok {
		return fmt.Errorf("%q is thousandths of a byte; write %sMi or %sM", text, cut, cut)
	}
	return fmt.Errorf("%q is under 1Mi, in which nothing runs; write it as 512Mi or 8Gi", text)
}

// annotation returns a figure, and whether the pod has an annotation for it.
func annotation(m meta, name string, otherwise int) (int, bool, error) {
	n, ok := m.Annotations[name]
	if !ok {
		return otherwise, false, nil
	}
	v, err := strconv.Atoi(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || n.Tag != "!!str" || v == 0 {
		return 0, false, fmt.Errorf("%d:%d: annotation %s: %q is not possible; write a whole number in quotes, such as \"2\"", n.Line, n.Column, name, n.Value)
	}
	return v, true, nil
}
