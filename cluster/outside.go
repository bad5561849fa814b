package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"tare/cluster/pod"
	"tare/ordered"
	"tare/record"
	"tare/sandbox"
	"tare/site"
	"tare/trial"
	"tare/workload"
)

// Neighbours are other users' pods that the load of a study passes through (workload.Outside), or why tare does not know them.
type Neighbours struct {
	Pods []Neighbour
	All  int    // how many such pods exist; Pods may be fewer
	Why  string // why Pods is empty; "" if it is not
}

// Neighbour is one of them.
type Neighbour struct {
	Name string // NAMESPACE/NAME
	UID  string
	Node string // by the label that nodes are chosen by
}

// mostNeighbours bounds the pods that are read of one part: each costs the observer of its node some time.
const mostNeighbours = 8

// neighbours finds the pods of others that the study's loads pass through, by workload.Outside.Key. Observers read them.
func (s *Site) neighbours(ctx context.Context, r site.Request, loads map[string]workload.Workload) (map[string]Neighbours, error) {
	keys, err := (&trial.Maker{Study: r.Study, Catalogue: r.Catalogue, Workloads: loads}).Wanted(func(role workload.Role) (out []string) {
		for _, o := range role.Outside {
			out = append(out, o.Key())
		}
		return out
	})
	if err != nil || !s.Observe {
		return nil, err
	}
	out := map[string]Neighbours{}
	for _, key := range keys {
		var o workload.Outside
		if err := json.Unmarshal([]byte(key), &o); err != nil {
			return nil, err
		}
		pods, err := s.podsOf(ctx, o)
		if err != nil && (ctx.Err() != nil || !apierrors.IsForbidden(err)) {
			return nil, fmt.Errorf("cannot find the pods of the %s: %w", o.Name, err)
		}
		n := s.watched(pods)
		switch {
		case err != nil:
			n.Why = fmt.Sprintf("you do not have the right to find its pods: %v; `tare rbac --observe` prints the rights", err)
		case len(n.Pods) == 0 && o.Given:
			return nil, fmt.Errorf("controller %s/%s: no pod with these labels runs on a node that is ready; `kubectl get pods -n %s --show-labels` shows the pods and their labels", o.Namespace, o.Labels, o.Namespace)
		case len(n.Pods) == 0:
			n.Why = "tare found no running pod of it"
			if o.Address != "" {
				n.Why = "no Service has the address " + o.Address + "; write controller: NAMESPACE/LABELS"
			}
		}
		if n.Why != "" {
			s.Say("the %s is not observed: %s", o.Name, n.Why)
		}
		out[key] = n
	}
	return out, nil
}

// watched are the pods that run on nodes where an observer can start. The first of each node come first, so that no node is left out.
func (s *Site) watched(pods []corev1.Pod) (out Neighbours) {
	nodes, nth := map[string]string{}, map[string]int{}
	for _, n := range s.ready {
		nodes[n.Name] = describe(n).Name
	}
	turn := map[string]int{}
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || nodes[p.Spec.NodeName] == "" {
			continue
		}
		n := Neighbour{p.Namespace + "/" + p.Name, string(p.UID), nodes[p.Spec.NodeName]}
		turn[n.Name] = nth[n.Node]
		nth[n.Node]++
		out.Pods = append(out.Pods, n)
	}
	slices.SortFunc(out.Pods, func(a, b Neighbour) int {
		return cmp.Or(turn[a.Name]-turn[b.Name], cmp.Compare(a.Name, b.Name))
	})
	out.All = len(out.Pods)
	out.Pods = out.Pods[:min(out.All, mostNeighbours)]
	return out
}

// podsOf are the pods of a part of what a load uses.
func (s *Site) podsOf(ctx context.Context, o workload.Outside) ([]corev1.Pod, error) {
	var pods corev1.PodList
	switch {
	case o.Namespace != "":
		if _, err := labels.Parse(o.Labels); err != nil {
			return nil, fmt.Errorf("%q is not a selector of labels (%w); write one as kubectl's -l takes it, such as app=haproxy", o.Labels, err)
		}
		err := s.api.List(ctx, o.Namespace, o.Labels, &pods)
		return pods.Items, err
	case len(o.Services) > 0:
		return s.behind(ctx, o.Services)
	}
	var services corev1.ServiceList
	if err := s.api.List(ctx, "", "", &services); err != nil {
		return nil, err
	}
	for i := range services.Items {
		v := &services.Items[i]
		at := slices.Concat(v.Spec.ClusterIPs, v.Spec.ExternalIPs)
		for _, b := range v.Status.LoadBalancer.Ingress {
			at = append(at, b.IP, b.Hostname)
		}
		if slices.Contains(at, o.Address) {
			return s.behind(ctx, []string{v.Namespace + "/" + v.Name})
		}
	}
	return nil, nil
}

// behind are the pods that serve some Services. A Service of an ingress need not select its pods: its EndpointSlices name them.
func (s *Site) behind(ctx context.Context, services []string) (out []corev1.Pod, err error) {
	wanted := map[string][]string{} // by namespace: pods
	for _, name := range services {
		in, name, _ := strings.Cut(name, "/")
		var found discoveryv1.EndpointSliceList
		if err := s.api.List(ctx, in, discoveryv1.LabelServiceName+"="+name, &found); err != nil {
			return nil, err
		}
		for i := range found.Items {
			for _, e := range found.Items[i].Endpoints {
				if t := e.TargetRef; t != nil && t.Kind == "Pod" {
					wanted[in] = ordered.Add(wanted[in], t.Name)
				}
			}
		}
	}
	for in, names := range wanted {
		var pods corev1.PodList
		if err := s.api.List(ctx, in, "", &pods); err != nil {
			return nil, err
		}
		for i := range pods.Items {
			if slices.Contains(names, pods.Items[i].Name) {
				out = append(out, pods.Items[i])
			}
		}
	}
	return out, nil
}

// besides are the nodes that only such pods run on: they get an observer, and no trial.
func (b *Brief) besides() (out []string) {
	for _, n := range b.Neighbours {
		for _, p := range n.Pods {
			if !slices.ContainsFunc(b.Nodes, func(n record.Node) bool { return n.Name == p.Node }) {
				out = ordered.Add(out, p.Node)
			}
		}
	}
	slices.Sort(out)
	return out
}

// observed are all nodes with an observer.
func (b *Brief) observed() (out []string) {
	for _, n := range b.Nodes {
		out = append(out, n.Name)
	}
	return append(out, b.besides()...)
}

// Outside implements trial.Outsider.
func (p place) Outside(ctx context.Context, o workload.Outside) (out []sandbox.LocalScope, read string, err error) {
	n, known := p.neighbours[o.Key()]
	switch {
	case p.nodes == nil:
		return nil, "", errors.New("run the study with --observe")
	case !known || n.Why != "":
		return nil, "", errors.New(cmp.Or(n.Why, "its pods were not looked for"))
	}
	var said []string
	for _, one := range n.Pods {
		f, err := p.nodes.Find(ctx, one.Node, one.UID)
		if err == nil && f.Cgroup == "" {
			err = errors.New("its control group was not found")
		}
		if err != nil {
			return nil, "", fmt.Errorf("pod %s cannot be read: %w; if it was replaced after the study began, start the study again", one.Name, err)
		}
		s := f.Scope(pod.OthersRoles())
		s.Scope, s.Outside = sandbox.Scope{Node: one.Node}, true
		out = append(out, s)
		said = append(said, one.Name+" on "+one.Node)
	}
	read = strings.Join(said, ", ")
	if n.All > len(n.Pods) {
		read += fmt.Sprintf(", and %d more that are not read", n.All-len(n.Pods))
	}
	return out, read, nil
}

var _ trial.Outsider = place{}
