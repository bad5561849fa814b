package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// RoutesOf begins what a study writes in the place of a file of routes: cluster:NAMESPACE or cluster:NAMESPACE/LABELS, and * for all
// namespaces.
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
			all = slices.DeleteFunc(all, func(o map[string]any) bool { return !parents[nameOf(o)] })
		}
		switch {
		case apierrors.IsForbidden(err):
			refused = append(refused, err)
			continue
		case err != nil:
			return nil, fmt.Errorf("cannot list the %s of %s: %w", k.resource, s.api.Server(), explained(err, s.Namespace))
		}
		for _, o := range all {
			for _, name := range parentsOf(o) {
				parents[name] = true
			}
			text, err := yaml.Marshal(pruned(o))
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
		return nil, fmt.Errorf("%s has no Ingress, HTTPRoute, TLSRoute or Route in %s; write another namespace or other labels after %s", s.api.Server(), from, RoutesOf)
	case out.Len() > study.MaxFile:
		return nil, fmt.Errorf("the %d objects of %s%s have %d bytes, but a study takes at most %d; select fewer, as in %sNAMESPACE/LABELS", found, RoutesOf, from, out.Len(), study.MaxFile, RoutesOf)
	}
	return out.Bytes(), nil
}

// gateways is the resource of what HTTPRoutes and TLSRoutes belong to.
const gateways = "gateways"

// parentsOf are the Gateways, as NAMESPACE/NAME, that a route belongs to.
func parentsOf(o map[string]any) (out []string) {
	spec, _ := o["spec"].(map[string]any)
	refs, _ := spec["parentRefs"].([]any)
	for _, one := range refs {
		r, _ := one.(map[string]any)
		name, _ := r["name"].(string)
		in, _ := r["namespace"].(string)
		if in == "" {
			in, _, _ = strings.Cut(nameOf(o), "/")
		}
		out = append(out, in+"/"+name)
	}
	return out
}

// nameOf is an object's NAMESPACE/NAME.
func nameOf(o map[string]any) string {
	meta, _ := o["metadata"].(map[string]any)
	return fmt.Sprintf("%v/%v", meta["namespace"], meta["name"])
}

// routesOf lists a kind in the newest version that the cluster has. It finds none if the cluster does not have the kind.
func (s *Site) routesOf(ctx context.Context, k routeKind, namespace, selector string) ([]map[string]any, error) {
	for _, v := range k.versions {
		all, err := s.api.ListRaw(ctx, schema.GroupVersionResource{Group: k.group, Version: v, Resource: k.resource}, namespace, selector, mostRoutes)
		if !apierrors.IsNotFound(err) {
			return all, err
		}
	}
	return nil, nil
}

// pruned is what package routes reads of an object. A study keeps the text, so what else objects say, such as annotations with
// passwords, stays in the cluster.
func pruned(o map[string]any) map[string]any {
	out := map[string]any{"apiVersion": o["apiVersion"], "kind": o["kind"], "spec": o["spec"]}
	meta, _ := o["metadata"].(map[string]any)
	kept := map[string]any{"name": meta["name"], "namespace": meta["namespace"]}
	if has, _ := meta["annotations"].(map[string]any); has != nil {
		some := map[string]any{}
		for name, value := range has {
			if slices.Contains(routes.Annotations(), name) {
				some[name] = value
			}
		}
		if len(some) > 0 {
			kept["annotations"] = some
		}
	}
	out["metadata"] = kept
	if spec, _ := o["spec"].(map[string]any); spec != nil {
		if tls, _ := spec["tls"].(map[string]any); tls != nil { // of an OpenShift Route: its key is secret
			spec["tls"] = map[string]any{"termination": tls["termination"]}
		}
	}
	status, _ := o["status"].(map[string]any)
	by, _ := status["ingress"].([]any) // of an OpenShift Route
	var routers []any
	for _, one := range by {
		if r, _ := one.(map[string]any); r["routerName"] != nil {
			routers = append(routers, map[string]any{"routerName": r["routerName"]})
		}
	}
	if len(routers) > 0 {
		out["status"] = map[string]any{"ingress": routers}
	}
	return out
}
