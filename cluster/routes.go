package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"tare/study"
	"tare/workload/ingress/routes"
)

// routeKind is a kind of object that says what an ingress controller routes.
type routeKind struct {
	group, resource string
	versions        []string // newest first
}

func routeKinds() []routeKind {
	const gateway = "gateway.networking.k8s.io"
	return []routeKind{
		{"networking.k8s.io", "ingresses", []string{"v1"}},
		{gateway, "httproutes", []string{"v1", "v1beta1"}},
		{gateway, "tlsroutes", []string{"v1", "v1alpha3", "v1alpha2"}},
		{gateway, gateways, []string{"v1", "v1beta1"}}, // of the routes before
		{gateway, "backendtlspolicies", []string{"v1", "v1alpha3"}},
		{"route.openshift.io", "routes", []string{"v1"}},
	}
}

// RoutesOf is the prefix that tells a study's source of routes from the path of a file: cluster:NAMESPACE or cluster:NAMESPACE/LABELS. The
// namespace * stands for all namespaces.
const RoutesOf = "cluster:"

// mostRoutes bounds the objects of one kind.
const mostRoutes = 5000

// Routes reads the routes of the cluster's ingress controllers as a file of YAML (package routes). It leaves out what no route needs. from is
// what the study says after RoutesOf.
func (s *Site) Routes(ctx context.Context, from string) ([]byte, error) {
	namespace, selector, _ := strings.Cut(from, "/")
	if namespace == "*" {
		namespace = ""
	} else if err := CheckNamespace(namespace); err != nil {
		return nil, fmt.Errorf("%s%s: %w; write * for all namespaces", RoutesOf, from, err)
	}
	if _, err := labels.Parse(selector); err != nil {
		return nil, fmt.Errorf("%s%s: %q is not a selector of labels; write one as kubectl's -l takes it, such as app=shop", RoutesOf, from, selector)
	}
	var out bytes.Buffer
	var refused []error
	found, parents := 0, map[string]bool{}
	for _, k := range routeKinds() {
		in, only := namespace, selector
		switch k.resource {
		case gateways: // it may be in another namespace
			in, only = "", ""
		case "backendtlspolicies": // what routes refer to has labels of its own
			only = ""
		}
		all, err := s.routesOf(ctx, k, in, only)
		if k.resource == gateways {
			if apierrors.IsForbidden(err) && namespace != "" {
				all, err = s.routesOf(ctx, k, namespace, "")
			}
			all = slices.DeleteFunc(all, func(o unstructured.Unstructured) bool { return !parents[nameOf(&o)] })
		}
		switch {
		case apierrors.IsForbidden(err):
			refused = append(refused, err)
			continue
		case err != nil:
			return nil, fmt.Errorf("cannot list the %s of %s: %w", k.resource, s.api.Server(), explained(err, s.Namespace))
		}
		for i := range all {
			for _, name := range parentsOf(&all[i]) {
				parents[name] = true
			}
			text, err := yaml.Marshal(pruned(&all[i]))
			if err != nil {
				return nil, err
			}
			out.WriteString("---\n")
			out.Write(text)
		}
		found += len(all)
	}
	for _, err := range refused {
		if found == 0 {
			return nil, fmt.Errorf("cannot read the routes of %s: %w; `tare rbac` prints the rights", s.api.Server(), errors.Join(refused...))
		}
		s.Say("left out of the routes: %v", err)
	}
	switch {
	case found == 0:
		return nil, s.noRoutes(ctx, namespace, selector)
	case out.Len() > study.MaxFile:
		return nil, fmt.Errorf("the %d objects of %s%s have %d bytes, but a study takes at most %d; select fewer, as in %sNAMESPACE/LABELS", found, RoutesOf, from, out.Len(), study.MaxFile, RoutesOf)
	}
	return out.Bytes(), nil
}

// noRoutes returns the error for a selection without routes. The namespace "" stands for all namespaces. The error says that the namespace does
// not exist only if the user may read namespaces.
func (s *Site) noRoutes(ctx context.Context, namespace, selector string) error {
	in, instead := "in any namespace", "create one"
	if namespace != "" {
		n := &corev1.Namespace{}
		n.Name = namespace
		if apierrors.IsNotFound(s.api.Get(ctx, n)) {
			return fmt.Errorf("%s has no namespace %s; write another namespace after %s", s.api.Server(), namespace, RoutesOf)
		}
		in, instead = "in the namespace "+namespace, "write another namespace after "+RoutesOf
	}
	if selector != "" {
		in, instead = in+" with the labels "+selector, fmt.Sprintf("write other labels after the namespace, or leave /%s out", selector)
	}
	return fmt.Errorf("%s has no Ingress, HTTPRoute, TLSRoute or Route %s; %s, or name a file with such objects", s.api.Server(), in, instead)
}

// gateways is the resource of what HTTPRoutes and TLSRoutes belong to.
const gateways = "gateways"

// parentsOf are the Gateways, as NAMESPACE/NAME, that a route belongs to.
func parentsOf(o *unstructured.Unstructured) (out []string) {
	refs, _, _ := unstructured.NestedSlice(o.Object, "spec", "parentRefs")
	for _, one := range refs {
		ref, _ := one.(map[string]any)
		name, _, _ := unstructured.NestedString(ref, "name")
		in, _, _ := unstructured.NestedString(ref, "namespace")
		out = append(out, cmp.Or(in, o.GetNamespace())+"/"+name)
	}
	return out
}

// nameOf is an object's NAMESPACE/NAME.
func nameOf(o *unstructured.Unstructured) string { return o.GetNamespace() + "/" + o.GetName() }

// routesOf lists a kind in the newest version that the cluster has. It finds none if the cluster does not have the kind.
func (s *Site) routesOf(ctx context.Context, k routeKind, namespace, selector string) ([]unstructured.Unstructured, error) {
	for _, v := range k.versions {
		all, err := s.api.Untyped(ctx, schema.GroupVersionResource{Group: k.group, Version: v, Resource: k.resource}, namespace, selector, mostRoutes)
		if !apierrors.IsNotFound(err) {
			return all, err
		}
	}
	return nil, nil
}

// pruned is what package routes reads of an object. A study keeps the text, so what else objects say, such as annotations with
// passwords, stays in the cluster.
func pruned(o *unstructured.Unstructured) map[string]any {
	out := unstructured.Unstructured{Object: map[string]any{"spec": o.Object["spec"]}}
	out.SetAPIVersion(o.GetAPIVersion())
	out.SetKind(o.GetKind())
	out.SetName(o.GetName())
	out.SetNamespace(o.GetNamespace())
	some := o.GetAnnotations()
	maps.DeleteFunc(some, func(name, _ string) bool { return !slices.Contains(routes.Annotations(), name) })
	if len(some) > 0 {
		out.SetAnnotations(some)
	}
	if tls, is, _ := unstructured.NestedMap(o.Object, "spec", "tls"); is { // of an OpenShift Route: its key is secret
		_ = unstructured.SetNestedMap(out.Object, map[string]any{"termination": tls["termination"]}, "spec", "tls") // spec is a map
	}
	by, _, _ := unstructured.NestedSlice(o.Object, "status", "ingress") // of an OpenShift Route
	var routers []any
	for _, one := range by {
		r, _ := one.(map[string]any)
		if name, is, _ := unstructured.NestedString(r, "routerName"); is {
			routers = append(routers, map[string]any{"routerName": name})
		}
	}
	if len(routers) > 0 {
		out.Object["status"] = map[string]any{"ingress": routers}
	}
	return out.Object
}
