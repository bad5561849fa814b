package kube

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// KindOf returns Kubernetes' name for an object's type.
func KindOf(obj Object) (schema.GroupVersionKind, error) {
	s, err := newScheme()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	kinds, _, err := s.ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("an object of an unknown type: %w", err)
	}
	return kinds[0], nil
}

// YAML returns an object as a manifest, without its status.
func YAML(obj Object) ([]byte, error) {
	kind, err := KindOf(obj)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	m["apiVersion"], m["kind"] = kind.GroupVersion().String(), kind.Kind
	delete(m, "status")
	if meta, is := m["metadata"].(map[string]any); is && meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	return yaml.Marshal(m)
}
