// Package cluster makes a Kubernetes cluster a site: trials run in pods.
//
// The data path: 1. Discover reads the nodes and RuntimeClasses; 2. Open creates a namespace with a
// coordinator in a pod (deploy.go), forwards its port and treats it like another machine
// (site/remote); 3. the coordinator (coordinator.go) makes the trials: its sandboxes are pods,
// whose agents dial it (cluster/control, cluster/pod); 4. Close deletes the namespace.
//
// While a trial runs, no measurement passes through the user's machine or the API server.
// docs/design/0031-cluster.md gives the reasons.
package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/kubevirt"
	apiload "tare/cluster/objects"
	"tare/cluster/pod"
	"tare/record"
	"tare/sandbox"
	"tare/site"
	"tare/site/remote"
	"tare/trial"
	"tare/workload"
	"tare/workload/objects"
)

// Site is a cluster. Its fields are set before it is used.
type Site struct {
	Image     string // of tare
	Workloads map[string]workload.Workload
	Apps      map[string]string                // references of images by their names in studies
	Insecure  bool                             // also ask registries without TLS, or with any certificate, about images
	Observe   bool                             // read the pods' figures on their nodes
	AtOnce    int                              // trials on different nodes; 0: one on each machine
	Namespace string                           // an existing one for everything; "": each study creates its own
	Say       func(format string, args ...any) // tells the user
	Heard     func(string)                     // tells the user what the coordinator said: any characters
	Left      func(command string)             // receives the command that removes a study's objects, or "" when there are none

	api     *kube.Client
	qps     float32 // of it; 0: the default
	classes []pod.Class
	nodes   []corev1.Node
	ready   []*corev1.Node // those that take pods, if these tolerate their taints
	// simulated is how many pods the simulated nodes take. Nothing runs in these pods.
	simulated int
	volumes   []pod.StorageClass // nil: not known
	vms       *kubevirt.Cluster  // nil: there is no KubeVirt
	levels    map[string]string  // names of the API server's priority levels, by UID; nil: not known
}

// About implements site.Site. The flags that find the cluster are known once Reach was called.
func (s *Site) About() site.About {
	flag := "--on k8s --tare-image " + s.Image
	for _, name := range slices.Sorted(maps.Keys(s.Apps)) {
		flag += " --app " + name + "=" + s.Apps[name]
	}
	if s.Insecure {
		flag += " --insecure-registry"
	}
	if s.Namespace != "" {
		flag += " -n " + s.Namespace
	}
	if s.Observe {
		flag += " --observe"
	}
	if s.AtOnce > 0 {
		flag += fmt.Sprintf(" --at-once %d", s.AtOnce)
	}
	reach := ""
	if s.api != nil {
		reach = strings.TrimSpace(s.api.Flags)
	}
	return site.About{
		Flag: flag, Reach: reach, Suffix: "-k8s", Cannot: "the cluster cannot run",
		Nothing: "the cluster cannot run any cell of the study; the reasons are above",
	}
}

// Reach finds the cluster. The other methods need it.
func (s *Site) Reach(w kube.Where) (err error) {
	if s.api, err = kube.FromKubeconfig(w); err != nil {
		return &site.UnableError{Err: err}
	}
	s.qps = w.QPS
	return nil
}

// Server is the address of the cluster.
func (s *Site) Server() string { return s.api.Server() }

// Discover reads the cluster's RuntimeClasses, and its nodes that are ready and take pods. Preview and
// Open need it.
func (s *Site) Discover(ctx context.Context) error {
	if err := s.readClasses(ctx); err != nil {
		return &site.UnableError{Err: fmt.Errorf("cannot list the RuntimeClasses of %s: %w", s.api.Server(), explained(err, s.Namespace))}
	}
	all, err := s.readNodes(ctx)
	if err != nil {
		return &site.UnableError{Err: fmt.Errorf("cannot list the nodes of %s: %w", s.api.Server(), explained(err, s.Namespace))}
	}
	if len(s.ready) == 0 {
		return &site.UnableError{Err: fmt.Errorf("none of the %d nodes of %s is ready and takes pods; `kubectl get nodes` shows why", len(all), s.api.Server())}
	}
	if s.volumes, err = s.storage(ctx); err != nil {
		return &site.UnableError{Err: err}
	}
	if s.vms, err = kubevirt.Find(ctx, s.api); err != nil {
		return &site.UnableError{Err: err}
	}
	s.levels, _ = s.api.PriorityLevels(ctx) // without them, results show the level's UID
	return nil
}

// readClasses reads the RuntimeClasses. The default class is the first.
func (s *Site) readClasses(ctx context.Context) error {
	s.classes = []pod.Class{{Name: sandbox.Native}}
	var classes nodev1.RuntimeClassList
	if err := s.api.List(ctx, "", "", &classes); err != nil {
		return err
	}
	for _, k := range classes.Items {
		c := pod.Class{Name: k.Name, Class: k.Name, Handler: k.Handler}
		if k.Scheduling != nil {
			c.Nodes = k.Scheduling.NodeSelector
		}
		if k.Overhead != nil {
			c.Overhead = k.Overhead.PodFixed
		}
		s.classes = append(s.classes, c)
	}
	return nil
}

// readNodes reads the nodes, and returns all that there are.
func (s *Site) readNodes(ctx context.Context) ([]corev1.Node, error) {
	var nodes corev1.NodeList
	if err := s.api.List(ctx, "", "", &nodes); err != nil {
		return nil, err
	}
	s.nodes, s.ready, s.simulated = nodes.Items, nil, 0
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if unready(n) == "" {
			s.ready = append(s.ready, n)
		}
		if n.Labels[objects.NodeType] == objects.Simulated {
			s.simulated += int(n.Status.Allocatable.Pods().Value())
		}
	}
	return nodes.Items, nil
}

// unready says why a node takes no pods. "": it does. Nodes of a simulation (https://kwok.sigs.k8s.io) run
// nothing.
func unready(n *corev1.Node) string {
	switch {
	case n.Annotations["kwok.x-k8s.io/node"] != "":
		return "simulated"
	case n.Spec.Unschedulable:
		return "cordoned"
	case !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}):
		return "not ready"
	}
	return ""
}

// describe is a node as results keep it. Its name is the label by which pods choose it.
func describe(n *corev1.Node) record.Node {
	i := n.Status.NodeInfo
	return record.Node{Name: cmp.Or(n.Labels[corev1.LabelHostname], n.Name), Machine: i.BootID, Host: record.Host{
		Hostname: n.Name, OS: i.OSImage, Kernel: i.KernelVersion, Arch: i.Architecture,
		Threads: int(n.Status.Capacity.Cpu().Value()), MemoryBytes: n.Status.Capacity.Memory().Value(),
		Tools: map[string]string{record.ToolKubelet: i.KubeletVersion, "container runtime": i.ContainerRuntimeVersion},
	}}
}

// Has is what the cluster has for the objects of loads. It needs Discover.
func (s *Site) Has() *apiload.Cluster {
	out := &apiload.Cluster{Nodes: s.nodes, Storage: s.volumes}
	for _, k := range s.classes[1:] { // the first is the default one
		out.Runtimes = append(out.Runtimes, k.Name)
	}
	return out
}

// Kinds are the sandboxes that a study can name here. They only describe; they start nothing.
func (s *Site) Kinds() []sandbox.Kind {
	return (&Brief{Classes: s.classes, KubeVirt: s.vms, Storage: s.volumes}).Kinds()
}

// Expected returns how long the trials of a study take in pods, before any has run. A pod takes more time to start and to go than a host's
// sandbox. It needs Discover, or Without.
func (s *Site) Expected(r site.Request) (func(record.Cell) time.Duration, error) {
	kinds := map[string]sandbox.Kind{}
	classes := pod.RuntimeClasses(s.classes, nil, nil, nil)
	for _, k := range slices.Concat(classes, defined(r.Study, classes[0])) {
		kinds[k.Name()] = k
	}
	for _, k := range vms(r.Study, kubevirt.New(s.vms, nil, nil, nil)) {
		kinds[k.Name()] = k
	}
	return (&trial.Maker{Study: r.Study, Catalogue: r.Catalogue, Workloads: s.Workloads, Kinds: kinds}).Expected, nil
}

// Preview implements site.Site.
func (s *Site) Preview(ctx context.Context, r site.Request) (site.Preview, error) {
	c, err := s.connect(ctx, r)
	if err != nil {
		return site.Preview{}, err
	}
	defer c.close()
	return c.coordinator.Preview(ctx, r)
}

// Open implements site.Site. It returns to the session of the request's ticket, if that is still there.
func (s *Site) Open(ctx context.Context, r site.Request) (site.Session, error) {
	if r.Keep == nil {
		r.Keep = func([]byte) error { return nil }
	}
	c, err := s.reconnect(ctx, r.Ticket)
	for told := false; r.Wait && ctx.Err() == nil && errors.As(err, new(*heldError)); c, err = s.reconnect(ctx, r.Ticket) {
		if !told {
			s.Say("waiting: %v", err)
			told = true
		}
		pause(ctx)
	}
	if err == nil && c == nil {
		if len(r.Ticket) > 0 {
			_ = r.Keep(nil) // it leads nowhere
		}
		c, err = s.connect(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	c.keep = r.Keep
	open, err := c.coordinator.Open(ctx, r)
	if err != nil {
		c.close()
		return nil, err
	}
	loads, err := needsAPI(r, s.Workloads)
	if err != nil {
		c.close()
		return nil, err
	}
	return &session{Session: open, connection: c, site: s, request: r, loads: loads}, nil
}

// connection is a coordinator on the cluster, and what was made for it.
type connection struct {
	coordinator *remote.Machine
	made        deployment
	user        control.Identity
	site        *Site
	keep        func(ticket []byte) error // see site.Request; nil: nobody returns
}

// left passes to Left the command that removes a deployment, in case this process ends now. With nil, nothing is left to remove.
func (s *Site) left(d *deployment) {
	switch {
	case s.Left == nil:
	case d == nil:
		s.Left("")
	default:
		s.Left(d.clean())
	}
}

// removeWithin bounds the end of a connection, whatever state the cluster is in.
const removeWithin = time.Minute

// close ends the coordinator and deletes the study's objects. It reports those that it cannot delete, and leaves the command that
// removes them with Site.Left.
func (c *connection) close() {
	if c.keep != nil {
		defer func() { _ = c.keep(nil) }()
	}
	if c.coordinator != nil {
		_ = c.coordinator.Close() // the namespace goes in any case
	}
	if err := c.made.removeNow(context.Background()); err != nil {
		c.site.Say("%v", err)
		c.site.left(&c.made)
		return
	}
	c.site.left(nil)
}

// upWithin is how long the coordinator may take to run: its image may have to be pulled.
const upWithin = 3 * time.Minute

// connect starts a coordinator for a study and connects to it.
func (s *Site) connect(ctx context.Context, r site.Request) (_ *connection, err error) {
	if s.Namespace != "" {
		if err := s.missing(ctx); err != nil {
			return nil, &site.UnableError{Err: err}
		}
	}
	on, err := s.choose(r.Study)
	if err != nil {
		return nil, &site.UnableError{Err: err}
	}
	copies, err := s.lookUp(ctx, on.processors())
	if err != nil {
		return nil, &site.UnableError{Err: err}
	}
	images, err := s.images(ctx, r, on.processors())
	if err != nil {
		if ctx.Err() != nil {
			return nil, site.ErrInterrupted
		}
		return nil, &site.UnableError{Err: err}
	}
	bound, err := s.fits(ctx, r, s.Workloads, &on)
	if err != nil {
		if ctx.Err() != nil {
			return nil, site.ErrInterrupted
		}
		return nil, &site.UnableError{Err: err}
	}
	near, err := s.neighbours(ctx, r, s.Workloads)
	if err != nil {
		if ctx.Err() != nil {
			return nil, site.ErrInterrupted
		}
		return nil, &site.UnableError{Err: err}
	}
	for _, n := range bound.notes {
		s.Say("%s", n)
	}
	c := &connection{site: s, keep: r.Keep, made: deployment{api: s.api, nodes: on.names(), hosts: on.hosts}}
	coordinator, agents, user, err := control.NewStudy()
	if err != nil {
		return nil, err
	}
	c.user = user
	c.made.name(newID(), s.Namespace)
	taken := false
	defer func() {
		switch {
		case err == nil:
			return
		case taken:
			c.close()
		case c.keep != nil: // nothing is left of the claim
			_ = c.keep(nil)
		}
		if err = error(&site.UnableError{Err: err}); ctx.Err() != nil {
			err = site.ErrInterrupted
		}
	}()
	b := Brief{VMs: needsVMs(r.Study)}
	if err = s.take(ctx, &c.made, b.admits(), r.Wait, func() error { return c.promise() }); err != nil {
		return nil, err
	}
	taken = true
	s.left(&c.made)
	limited, cancel := context.WithTimeoutCause(ctx, upWithin, fmt.Errorf("the coordinator was not ready within %s", minutes(upWithin)))
	defer cancel()
	id := c.made.id
	b = Brief{ID: id, Namespace: c.made.namespace, Image: s.Image, Classes: s.classes, Nodes: on.nodes, Pods: on.pods, Tolerations: on.tolerations, Agents: agentSecret(id), KubeVirt: s.vms, VMs: b.VMs, Simulated: s.simulated, Copies: copies, Images: images, Storage: s.volumes, Levels: s.levels, AtOnce: s.AtOnce, AtMost: bound.atMost, Skips: bound.skips, Alone: bound.alone, QPS: s.qps}
	if b.API, err = needsAPI(r, s.Workloads); err != nil {
		return nil, err
	}
	if !c.made.shared {
		b.UID = string(c.made.uid)
	}
	if s.Observe {
		b.Observers, b.Neighbours = rand.Text(), near
	}
	if err = c.made.create(limited, b, coordinator, agents); err != nil {
		return nil, err
	}
	return c, s.dial(limited, c)
}

// dial connects to a coordinator that runs.
func (s *Site) dial(ctx context.Context, c *connection) error {
	raw, err := s.api.Forward(c.made.namespace, coordinatorName(c.made.id), port)
	if err != nil {
		return err
	}
	conn, err := control.Join(ctx, c.user, raw)
	if err != nil {
		return errors.Join(err, raw.Close())
	}
	c.coordinator, err = remote.Connect(conn, conn, way{conn}, remote.Setup{
		Name: "the coordinator in " + c.made.namespace, Takes: s.Expected, Heard: remote.Bounded(s.Heard),
	})
	return err
}

// way is a forwarded connection as remote.Way.
type way struct{ io.Closer }

func (w way) Kill()           { _ = w.Close() }
func (way) Why(e error) error { return e }
