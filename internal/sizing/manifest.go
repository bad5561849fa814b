package sizing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxManifest bounds what is read of a manifest, in bytes.
const maxManifest = 1 << 20

// Annotations of a pod that Kata reads, where the runtime's configuration allows
// them (docs/how-to/how-to-set-sandbox-config-kata.md). Their values are strings.
const (
	AnnotationVCPUs  = "io.katacontainers.config.hypervisor.default_vcpus"
	AnnotationMemory = "io.katacontainers.config.hypervisor.default_memory"
)

// manifest is the part of a Kubernetes object that sizes depend on: a Pod, or
// an object with a pod template in spec.template.
type manifest struct {
	Kind     string `yaml:"kind"`
	Metadata meta   `yaml:"metadata"`
	Spec     struct {
		podSpec  `yaml:",inline"`
		Template *struct {
			Metadata meta    `yaml:"metadata"`
			Spec     podSpec `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
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

// FromManifest reads the first object of a Kubernetes manifest, YAML or JSON: a
// Pod, or what has a pod template. Its annotations go into a copy of r. Errors have line
// and column.
func FromManifest(in io.Reader, r Runtime) (Pod, Runtime, error) {
	var m manifest
	text, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	switch {
	case err != nil:
		return Pod{}, r, fmt.Errorf("1:1: reading the manifest: %w", err)
	case len(text) > maxManifest:
		return Pod{}, r, fmt.Errorf("1:1: the manifest is over %d bytes", maxManifest)
	}
	switch err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&m); {
	case errors.Is(err, io.EOF):
		return Pod{}, r, errors.New("1:1: the manifest is empty; write a Pod")
	case err != nil:
		return Pod{}, r, fmt.Errorf("1:1: not a manifest: %w", err)
	}
	spec, at := m.Spec.podSpec, m.Metadata
	if t := m.Spec.Template; t != nil {
		spec, at = t.Spec, t.Metadata
	}
	if len(spec.Containers) == 0 {
		return Pod{}, r, fmt.Errorf("1:1: the %s has no containers; write a Pod, or what has a pod template", orObject(m.Kind))
	}
	var p Pod
	all := spec.Containers
	for _, c := range spec.InitContainers {
		if c.RestartPolicy == "Always" { // a sidecar lives as long as the pod
			all = append(all, c)
		}
	}
	for _, c := range all {
		if err := p.add(c); err != nil {
			return Pod{}, r, err
		}
	}
	if r.VCPUs, err = annotation(at, AnnotationVCPUs, r.VCPUs); err != nil {
		return Pod{}, r, err
	}
	r.MemoryMiB, err = annotation(at, AnnotationMemory, r.MemoryMiB)
	return p, r, err
}

func orObject(kind string) string {
	if kind == "" {
		return "object"
	}
	return kind
}

// add adds the resources of one container.
func (p *Pod) add(c container) error {
	limit, ok, err := quantity(c, c.Resources.Limits, "cpu")
	if err != nil {
		return err
	}
	p.CPULimit += limit.AsApproximateFloat64()
	p.Unbounded = p.Unbounded || !ok
	request, ok, err := quantity(c, c.Resources.Requests, "cpu")
	if err != nil {
		return err
	}
	if !ok {
		request = limit // the API server's default
	}
	p.CPURequest += request.AsApproximateFloat64()
	memory, _, err := quantity(c, c.Resources.Limits, "memory")
	if err != nil {
		return err
	}
	p.MemoryLimit += memory.Value()
	if p.MemoryLimit < 0 {
		return errors.New("1:1: the memory limits together are over 8 EiB")
	}
	return nil
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

func annotation(m meta, name string, otherwise int) (int, error) {
	n, ok := m.Annotations[name]
	if !ok {
		return otherwise, nil
	}
	v, err := strconv.Atoi(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || n.Tag != "!!str" || v == 0 {
		return 0, fmt.Errorf("%d:%d: annotation %s: %q is not possible; write a whole number in quotes, such as \"2\"", n.Line, n.Column, name, n.Value)
	}
	return v, nil
}
