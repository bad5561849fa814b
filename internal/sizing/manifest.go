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

// ErrEmpty says that there is nothing in a manifest.
var ErrEmpty = errors.New("1:1: the manifest is empty; write a Pod")

// manifest is the part of a Kubernetes object that sizes depend on: a Pod, an
// object with a pod template in spec.template, or a CronJob with one in its jobTemplate.
type manifest struct {
	Kind     string `yaml:"kind"`
	Metadata meta   `yaml:"metadata"`
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
	Annotations map[string]yaml.Node `yaml:"annotations"`
}

type podSpec struct {
	Containers     []container `yaml:"containers"`
	InitContainers []container `yaml:"initContainers"`
}

type container struct {
	Name          string `yaml:"name"`
	RestartPolicy string `yaml:"restartPolicy"` // Always makes an init container a sidecar
	Resources     struct {
		Limits   map[string]yaml.Node `yaml:"limits"`
		Requests map[string]yaml.Node `yaml:"requests"`
	} `yaml:"resources"`
}

// FromManifest reads the first object with containers of a Kubernetes manifest,
// YAML or JSON: a Pod, or what has a pod template. Its annotations go into a copy of r.
// Errors have line and column; that of a manifest with nothing in it is ErrEmpty.
func FromManifest(in io.Reader, r Runtime) (Pod, Runtime, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	switch {
	case err != nil:
		return Pod{}, r, fmt.Errorf("1:1: reading the manifest: %w", err)
	case len(text) > maxManifest:
		return Pod{}, r, fmt.Errorf("1:1: the manifest is over %d bytes", maxManifest)
	}
	spec, at, err := find(text)
	if err != nil {
		return Pod{}, r, err
	}
	p, err := spec.pod()
	if err != nil {
		return Pod{}, r, err
	}
	if r.VCPUs, r.VCPUsAnnotated, err = annotation(at, AnnotationVCPUs, r.VCPUs); err != nil {
		return Pod{}, r, err
	}
	r.MemoryMiB, r.MemoryAnnotated, err = annotation(at, AnnotationMemory, r.MemoryMiB)
	return p, r, err
}

// find returns the pod of the first object that has containers.
func find(text []byte) (podSpec, meta, error) {
	var kinds []string
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		err := d.Decode(&m)
		switch {
		case errors.Is(err, io.EOF) && len(kinds) == 0:
			return podSpec{}, meta{}, ErrEmpty
		case errors.Is(err, io.EOF):
			return podSpec{}, meta{}, fmt.Errorf("1:1: no containers in %s; write a Pod, or what has a pod template", strings.Join(kinds, ", "))
		case err != nil:
			return podSpec{}, meta{}, fmt.Errorf("1:1: not a manifest: %w", err)
		}
		spec, at := m.Spec.podSpec, m.Metadata
		if t := cmp.Or(m.Spec.Template, m.Spec.JobTemplate.Spec.Template); t != nil {
			spec, at = t.Spec, t.Metadata
		}
		if len(spec.Containers) > 0 {
			return spec, at, nil
		}
		if len(kinds) < maxKinds {
			kinds = append(kinds, cmp.Or(m.Kind, "an object"))
		}
	}
}

// pod is what the containers ask for together, as the kubelet adds it up: the
// containers and sidecars, or a step of the start that asks for more. Each init
// container is such a step, with the sidecars that run by then
// (k8s.io/component-helpers/resource, PodLimits).
func (s podSpec) pod() (Pod, error) {
	var sidecars, start Pod
	for _, c := range s.InitContainers {
		one, err := c.pod()
		if err != nil {
			return Pod{}, err
		}
		if c.RestartPolicy == "Always" { // a sidecar lives as long as the pod
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

// and is two pods at once.
func (p Pod) and(q Pod) Pod {
	p.CPULimit += q.CPULimit
	p.CPURequest += q.CPURequest
	if p.MemoryLimit += q.MemoryLimit; p.MemoryLimit < 0 {
		p.MemoryLimit = math.MaxInt64
	}
	p.Unbounded = p.Unbounded || q.Unbounded
	return p
}

// or is one pod after the other.
func (p Pod) or(q Pod) Pod {
	return Pod{max(p.CPULimit, q.CPULimit), max(p.CPURequest, q.CPURequest), max(p.MemoryLimit, q.MemoryLimit), p.Unbounded || q.Unbounded}
}

// pod is a container alone.
func (c container) pod() (Pod, error) {
	limit, ok, err := quantity(c, c.Resources.Limits, "cpu")
	if err != nil {
		return Pod{}, err
	}
	request, asked, err := quantity(c, c.Resources.Requests, "cpu")
	if err != nil {
		return Pod{}, err
	}
	if !asked {
		request = limit // the API server's default
	}
	memory, _, err := quantity(c, c.Resources.Limits, "memory")
	if err == nil {
		if err = CheckMemory(memory); err != nil {
			n := c.Resources.Limits["memory"]
			err = fmt.Errorf("%d:%d: container %q: memory %w", n.Line, n.Column, c.Name, err)
		}
	}
	return Pod{limit.AsApproximateFloat64(), request.AsApproximateFloat64(), memory.Value(), !ok || limit.IsZero()}, err
}

// quantity reads one entry of limits or requests; false when it is not there.
func quantity(c container, from map[string]yaml.Node, name string) (resource.Quantity, bool, error) {
	n, ok := from[name]
	if !ok {
		return resource.Quantity{}, false, nil
	}
	q, err := ParseQuantity(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return q, false, fmt.Errorf("%d:%d: container %q: %s %q is not a quantity; write one as 2, 2500m or 8Gi", n.Line, n.Column, c.Name, name, n.Value)
	}
	return q, true, nil
}

// ParseQuantity reads a quantity as Kubernetes writes it: 2, 2500m, 8Gi. A
// negative one is an error, and so is one of over 32 characters.
func ParseQuantity(text string) (resource.Quantity, error) {
	if len(text) > 32 { // big decimals take long, and nobody writes them
		return resource.Quantity{}, fmt.Errorf("%q... is not a quantity", text[:32])
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() < 0 {
		return resource.Quantity{}, fmt.Errorf("%q is not a quantity; write one as 2, 2500m or 8Gi", text)
	}
	return q, nil
}

// leastMemory is the smallest memory limit that is not a slip, in bytes: a program needs more.
const leastMemory = 1 << 20

// CheckMemory refuses a memory limit that is no amount of memory: 1536m is a byte and a
// half, for the m of CPUs is a thousandth here as well.
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

// annotation is a figure, and whether the pod has it as an annotation.
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
