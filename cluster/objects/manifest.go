package objects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tare/cluster/pod"
	"tare/workload/objects"
	"tare/workload/objects/loadfile"
	"tare/workload/registry/app"
)

// Labels of what the load makes, beside the study's.
const (
	labelLoad   = "tare/load"   // all objects of one load
	labelObject = "tare/object" // of pods: the object that they belong to
)

// placeholder stands in a manifest for the object's name.
const placeholder = "tare-object-name"

// imagePlaceholder stands in a manifest for the image that the load builds.
const imagePlaceholder = "tare-object-image"

// maker writes the objects of a kind.
type maker struct {
	kind     string
	resource string // in paths
	group    string // path of the API's group
	text     []byte // of the object, with the placeholder

	mu     sync.Mutex
	binary map[int][]byte // the object in protobuf, by the length of its name, with a name of filler
}

// fields is a part of an object.
type fields = map[string]any

func newMaker(o *options, load string) (*maker, error) {
	m := &maker{kind: o.kind, resource: o.kind + "s", group: "/api/v1"}
	labels := labelsOf(o, load)
	obj := fields{"apiVersion": "v1", "metadata": fields{"name": placeholder, "labels": labels}}
	switch o.kind {
	case objects.Pod:
		obj["kind"], obj["spec"] = "Pod", podSpec(o)
	case objects.Deployment:
		m.group = "/apis/apps/v1"
		obj["kind"], obj["apiVersion"] = "Deployment", "apps/v1"
		obj["spec"] = fields{
			"replicas": 1, "selector": fields{"matchLabels": fields{labelLoad: load, labelObject: placeholder}},
			"template": fields{"metadata": fields{"labels": labels}, "spec": podSpec(o)},
		}
	case objects.VM:
		m.resource, m.group = "virtualmachineinstances", "/apis/kubevirt.io/v1"
		obj["kind"], obj["apiVersion"], obj["spec"] = "VirtualMachineInstance", "kubevirt.io/v1", machineSpec(o)
	case objects.Claim:
		m.resource = "persistentvolumeclaims"
		obj["kind"], obj["spec"] = "PersistentVolumeClaim", claimSpec(o)
	case objects.ConfigMap:
		obj["kind"], obj["data"] = "ConfigMap", fields{"text": string(bytes.Repeat([]byte("tare "), 50))}
	case objects.Secret:
		obj["kind"], obj["stringData"] = "Secret", fields{"text": string(bytes.Repeat([]byte("tare "), 50))}
	case objects.Service:
		obj["kind"], obj["spec"] = "Service", fields{"selector": fields{labelObject: placeholder}, "ports": []fields{{"port": 80}}}
	}
	var err error
	m.text, err = json.Marshal(obj)
	return m, err
}

func labelsOf(o *options, load string) fields {
	return fields{pod.LabelManaged: pod.Managed, pod.LabelStudy: o.study, labelLoad: load, labelObject: placeholder}
}

// podSpec is a pod that waits, in the form of the restricted Pod Security Standard.
func podSpec(o *options) fields {
	spec := fields{
		"terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false, "enableServiceLinks": false,
		"securityContext": fields{"runAsNonRoot": true, "runAsUser": pod.User, "seccompProfile": fields{"type": "RuntimeDefault"}},
		"containers": []fields{{
			"name": "pause", "image": o.image, "imagePullPolicy": "IfNotPresent", "command": []string{"/tare-pause"},
			"securityContext": fields{"allowPrivilegeEscalation": false, "capabilities": fields{"drop": []string{"ALL"}}},
		}},
	}
	if o.build != "" {
		c := spec["containers"].([]fields)[0]
		c["image"], c["command"] = imagePlaceholder, []string{app.Program}
	}
	if o.class != "" {
		spec["runtimeClassName"] = o.class
	}
	switch o.nodes {
	case objects.Own:
		spec["affinity"] = fields{"nodeAffinity": fields{"requiredDuringSchedulingIgnoredDuringExecution": fields{"nodeSelectorTerms": []fields{{
			"matchFields": []fields{{"key": "metadata.name", "operator": "In", "values": []string{o.node}}},
		}}}}}
	case objects.Simulated, objects.Any:
		spec["tolerations"] = []fields{{"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}}
	}
	if o.nodes == objects.Simulated {
		spec["nodeSelector"] = fields{objects.NodeType: objects.Simulated}
	}
	return spec
}

// object is the manifest of an object of this name.
func (m *maker) object(name string) []byte {
	return bytes.ReplaceAll(m.text, []byte(placeholder), []byte(name))
}

// filler fills the name of an object in protobuf. It is in no other text.
const filler = "~"

// body is the object of this name as it is sent, and its media type. Objects of the core API are sent in protobuf. There, texts of the same
// length can replace each other.
func (m *maker) body(name string) (body []byte, kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(name)
	if _, known := m.binary[n]; !known {
		if m.binary == nil {
			m.binary = map[int][]byte{}
		}
		m.binary[n] = m.protobuf(strings.Repeat(filler, n))
	}
	if m.binary[n] == nil {
		return m.object(name), usualType
	}
	return bytes.ReplaceAll(m.binary[n], []byte(strings.Repeat(filler, n)), []byte(name)), protoType
}

// protobuf is the object of this name in protobuf (https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding); nil: it is
// not of the core API.
func (m *maker) protobuf(name string) []byte {
	typed, is := map[string]interface{ Marshal() ([]byte, error) }{
		objects.Pod: &corev1.Pod{}, objects.Claim: &corev1.PersistentVolumeClaim{}, objects.ConfigMap: &corev1.ConfigMap{}, objects.Secret: &corev1.Secret{}, objects.Service: &corev1.Service{},
	}[m.kind]
	var of runtime.Unknown
	if !is || json.Unmarshal(m.object(name), typed) != nil || json.Unmarshal(m.object(name), &of.TypeMeta) != nil {
		return nil
	}
	raw, err := typed.Marshal()
	if err != nil {
		return nil
	}
	of.Raw = raw
	all, err := of.Marshal()
	if err != nil {
		return nil
	}
	return append([]byte(protoPrefix), all...)
}

// path is that of the objects in a namespace.
func (m *maker) path(namespace string) string {
	return m.group + "/namespaces/" + namespace + "/" + m.resource
}

// spaceName returns the name of a load's namespace. It ends with the load's id and the number.
func spaceName(study, load, number string) string {
	return fmt.Sprintf("tare-%s-%s-%s", study, load, number)
}

// labelSpace is the name that a file has for a namespace.
const labelSpace = "tare/space"

// namespace is the manifest of a namespace. It goes with the study's own.
func namespace(o *options, load, name string, s *loadfile.Space) ([]byte, error) {
	labels := fields{}
	for key, v := range s.Labels {
		labels[key] = v
	}
	if s.Name != "" {
		labels[labelSpace] = s.Name
	}
	labels[pod.LabelManaged], labels[pod.LabelStudy], labels[labelLoad] = pod.Managed, o.study, load
	meta := fields{"name": name, "labels": labels}
	if len(s.Annotations) > 0 {
		meta["annotations"] = s.Annotations
	}
	if o.owner != "" {
		meta["ownerReferences"] = []fields{{"apiVersion": "v1", "kind": "Namespace", "name": o.space, "uid": o.owner}}
	}
	return json.Marshal(fields{"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
}
