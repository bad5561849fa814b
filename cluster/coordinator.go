package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/kubevirt"
	"tare/cluster/observer"
	"tare/cluster/pod"
	"tare/collect"
	"tare/record"
	"tare/sandbox"
	"tare/site"
	"tare/site/ahead"
	"tare/trial"
	"tare/workload"
)

// Brief is the user's instructions to the coordinator: a file in its Secret.
type Brief struct {
	ID, Namespace string
	Image         string
	Classes       []pod.Class
	KubeVirt      *kubevirt.Cluster // nil: there is none
	VMs           bool              // the study defines some
	API           bool              // a role of the study uses the cluster's API
	UID           string            // of the namespace; "": studies share it
	Nodes         []record.Node
	Pods          map[string]int // that each of them takes (allocatable)
	Simulated     int            // how many pods the cluster's simulated nodes take
	Tolerations   []corev1.Toleration
	Images        map[string]Image      // by name
	Copies        map[string][]string   // references of copies of tare's own image, by processor, for cold starts
	Storage       []pod.StorageClass    // nil: not known
	Levels        map[string]string     // names of the API server's priority levels, by UID; nil: not known
	Agents        string                // name of the Secret with their identity
	Observers     string                // the token of the observers on the nodes; "": no observers run
	AtOnce        int                   // trials on different nodes; 0: one on each machine
	AtMost        int                   // of those that a quota of the namespace has room for; 0: all
	Skips         []record.Skip         // cells whose pods a quota refuses
	Alone         []string              // keys of strata whose trials take no turns, for lack of room on a node
	Neighbours    map[string]Neighbours // other users' pods that loads pass through, by workload.Outside.Key; nil: no observers run
	QPS           float32               // the most requests per second to the API server; 0: the default
}

// Coordinator makes a study's trials, in a pod of the cluster.
type Coordinator struct {
	Workloads  map[string]workload.Workload
	Collectors func(names []string) []collect.Collector
	// Answer serves a user's connection with the site until the connection ends.
	Answer func(ctx context.Context, conn net.Conn, b Brief, s func(say func(string, ...any)) site.Site) error
}

// Where the coordinator finds what it was given, and listens.
const (
	briefFile = "brief.json"
	port      = 7777
	holdPort  = 7778 // for the readiness probe: the pod is ready while it holds the study's nodes
)

// lonely is how long a coordinator waits for a user to connect or reconnect. If it has trials that the user has not fetched, it
// waits for lonelyAfter; it then gives up its nodes after lonely, and keeps only the trials.
const (
	lonely      = 3 * time.Minute
	lonelyAfter = 24 * time.Hour
)

// keptDir is where it keeps such trials: in the pod's /tmp, which is a directory of the node.
const keptDir = "/tmp/trials"

// Run coordinates the study until the user has left.
func (c *Coordinator) Run(ctx context.Context) error {
	var b Brief
	text, err := os.ReadFile(filepath.Join(pod.IdentityDir, briefFile))
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil {
		return fmt.Errorf("cannot read the study's brief: %w", err)
	}
	id, err := control.ReadIdentity(pod.IdentityDir)
	if err != nil {
		return err
	}
	api, err := kube.Inside(b.Namespace, b.QPS)
	if err != nil {
		return err
	}
	self, err := c.self(ctx, api)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := os.MkdirAll(keptDir, 0o700); err != nil {
		return err
	}
	s := &insideSite{brief: b, api: api, loads: c.Workloads, collectors: c.Collectors, owner: self}
	users := make(chan net.Conn)
	s.hub, err = control.NewHub(id, func(conn net.Conn) {
		select {
		case users <- conn:
		case <-ctx.Done():
			_ = conn.Close()
		}
	})
	if err != nil {
		return err
	}
	s.hub.Tree = kubevirt.Tree
	if b.Observers != "" {
		s.nodes = observer.Nodes{}
		for _, node := range b.observed() {
			s.nodes[node] = s.hub.Await(observer.Name(node), b.Observers, observer.Waiting)
		}
	}
	go func() {
		if err := s.steps.Watch(ctx, api, b.Namespace); err != nil && ctx.Err() == nil {
			cancel(fmt.Errorf("cannot watch the events of the study's pods: %w", err))
		}
	}()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	told, err := lc.Listen(ctx, "tcp", fmt.Sprintf(":%d", holdPort))
	if err != nil {
		return errors.Join(err, l.Close())
	}
	context.AfterFunc(ctx, func() { _, _ = l.Close(), told.Close() })
	go func() { cancel(fmt.Errorf("cannot answer the readiness probe: %w", s.tellHold(told))) }()
	go func() { cancel(c.serve(ctx, s, users)) }()
	err = s.hub.Serve(l)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errLeft) {
		return cause
	} else if cause == nil {
		return err
	}
	return nil
}

var errLeft = errors.New("the user has left")

// serve serves one user's connection after another until a user closes the session, or none comes for
// too long. A new connection ends the one before: its user may not know yet that it is lost.
func (c *Coordinator) serve(ctx context.Context, s *insideSite, users <-chan net.Conn) error {
	patience := lonely
	for {
		conn, err := s.await(ctx, users, patience)
		if err != nil {
			return err
		}
		ended := make(chan error, 1)
		for conn != nil {
			now := conn
			go func() {
				err := c.Answer(ctx, now, s.brief, func(say func(string, ...any)) site.Site { s.say = say; return s })
				ended <- errors.Join(err, now.Close())
			}()
			select {
			case conn = <-users:
				_ = now.Close()
				err = <-ended
			case err = <-ended:
				conn = nil
			}
		}
		if s.open == nil {
			return errors.Join(errLeft, err)
		}
		if making, _ := s.open.Making(); making {
			patience = lonelyAfter
		}
	}
}

// tellHold answers the kubelet's readiness probe: the pod is ready while the study holds its nodes.
func (s *insideSite) tellHold(l net.Listener) error {
	answer := func(w http.ResponseWriter, _ *http.Request) {
		if s.resting.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	return (&http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 10 * time.Second}).Serve(l)
}

// await waits for a user's connection while trials run, and for patience afterwards. It gives up the nodes after lonely, and takes
// them again when the user returns. Before that, the user's tare checks that no other study holds them (Site.rejoin).
func (s *insideSite) await(ctx context.Context, users <-chan net.Conn, patience time.Duration) (net.Conn, error) {
	defer s.resting.Store(false)
	for left := patience; ; {
		var changed <-chan struct{}
		making := false
		if s.open != nil {
			making, changed = s.open.Making()
		}
		wait := left
		if !s.resting.Load() {
			wait = min(lonely, patience)
		}
		var late <-chan time.Time
		if !making {
			late = time.After(wait)
		}
		select {
		case conn := <-users:
			return conn, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-late:
			if wait < left {
				s.resting.Store(true)
				left -= wait
				continue
			}
			if s.open != nil {
				s.open.Close()
			}
			return nil, fmt.Errorf("no user connected within %s", minutes(patience))
		case <-changed:
		}
	}
}

// self reads the coordinator's own pod, once it has an address.
func (c *Coordinator) self(ctx context.Context, api *kube.Client) (*corev1.Pod, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	var out *corev1.Pod
	err = api.WatchPod(ctx, api.Namespace, name, func(p *corev1.Pod) (bool, error) {
		if p == nil {
			return true, fmt.Errorf("cannot find the coordinator's own pod, %s", name)
		}
		out = p
		return p.Status.PodIP != "", nil
	})
	return out, err
}

// insideSite is the cluster as a site, seen from a pod in it.
type insideSite struct {
	brief      Brief
	api        *kube.Client
	hub        *control.Hub
	nodes      observer.Nodes // nil: there are no observers
	loads      map[string]workload.Workload
	collectors func(names []string) []collect.Collector
	owner      *corev1.Pod
	steps      pod.Steps
	say        func(string, ...any)
	resting    atomic.Bool // it has given up its nodes, and only keeps trials for the user

	open   *ahead.Session // nil: none is
	source string         // of its study, with the overrides
}

// About implements site.Site. The user's tare describes the site.
func (*insideSite) About() site.About { return site.About{} }

// study is what the study's pods have in common.
func (s *insideSite) study() *pod.Study {
	yes := true
	return &pod.Study{
		ID: s.brief.ID, Namespace: s.brief.Namespace, UID: s.brief.UID, Image: s.brief.Image, Secret: s.brief.Agents, Images: ofPods(s.brief.Images), Storage: s.brief.Storage,
		Coordinator: net.JoinHostPort(s.owner.Status.PodIP, fmt.Sprint(port)),
		Tolerations: s.brief.Tolerations, Machines: s.brief.Nodes, Levels: s.brief.Levels,
		Owner: &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: s.owner.Name, UID: s.owner.UID, BlockOwnerDeletion: &yes},
	}
}

func (s *insideSite) session(ctx context.Context, r site.Request) *insideSession {
	s.users(ctx)
	st := s.study()
	classes := pod.RuntimeClasses(s.brief.Classes, s.api, s.hub, st)
	kinds := map[string]sandbox.Kind{}
	for _, k := range classes {
		k.Nodes, k.Steps = s.nodes, &s.steps
		kinds[k.Name()] = k
	}
	for _, k := range defined(r.Study, classes[0]) {
		kinds[k.Name()] = k
	}
	base := kubevirt.New(s.brief.KubeVirt, s.api, s.hub, st)
	base.Nodes = s.nodes
	for _, k := range vms(r.Study, base) {
		kinds[k.Name()] = k
	}
	var collectors []collect.Collector
	if s.nodes != nil {
		for _, c := range s.collectors(r.Study.Collect.Names) {
			if !slices.Contains([]string{"guest", "link"}, c.Name()) { // a guest's stream and a bridge do not belong to a node
				collectors = append(collectors, s.nodes.Collector(c, r.Study.Collect.Interval))
			}
		}
	}
	fill := newFillers(s.api, st, &s.steps, s.brief.Pods)
	cold := s.copies(st)
	at := place{
		nodes: s.nodes, images: s.brief.Images, claims: &claims{api: s.api, study: st, trials: map[string]bool{}}, at: s.brief.Nodes, fill: fill, cold: cold, shared: s.brief.UID == "",
		simulated: s.brief.Simulated, observed: s.nodes != nil, neighbours: s.brief.Neighbours, storage: s.brief.Storage, inside: true,
	}
	return &insideSession{pods: st, fill: fill, cold: cold, nodes: slices.Clone(s.brief.Nodes), Maker: trial.Maker{
		ID: s.brief.ID, Study: r.Study, Catalogue: r.Catalogue, Workloads: s.loads, Kinds: kinds, Collectors: collectors, Place: at, Nodes: at.names(), Alone: s.brief.Alone, Trying: r.Trying,
	}}
}

// copies returns the images for cold starts that the user has pushed.
func (s *insideSite) copies(st *pod.Study) *copies {
	of := map[string]map[string][]string{"": s.brief.Copies}
	for name, img := range s.brief.Images {
		of[name] = img.Copies
	}
	return &copies{api: s.api, study: st, steps: &s.steps, of: of, left: map[imageOn]*unused{}}
}

// Preview implements site.Site.
func (s *insideSite) Preview(ctx context.Context, r site.Request) (out site.Preview, err error) {
	out.Skips, err = s.skips(ctx, s.session(ctx, r))
	return out, err
}

// skips are the cells that the cluster cannot run, with those that the user's tare has found.
func (s *insideSite) skips(ctx context.Context, h *insideSession) ([]record.Skip, error) {
	found, err := h.Skips(ctx)
	err = errors.Join(err, h.pods.Tried()) // nothing is measured beside a pod that goes
	for _, k := range s.brief.Skips {
		if !slices.ContainsFunc(found, func(f record.Skip) bool { return f.Cell.Key() == k.Cell.Key() }) {
			found = append(found, k)
		}
	}
	return found, err
}

// Open implements site.Site. If a session is already open, Open returns to it.
func (s *insideSite) Open(ctx context.Context, r site.Request) (site.Session, error) {
	source := fmt.Sprintf("%s\n%q", r.Study.Source, r.Study.Overrides)
	switch {
	case s.open == nil:
	case s.source != source:
		return nil, &site.UnableError{Err: errors.New("another study is open here; end it with `tare clean --on k8s`")}
	default:
		return openSession{s.open, s}, nil
	}
	h := s.session(ctx, r)
	var err error
	if h.skips, err = s.skips(ctx, h); err != nil {
		return nil, err
	}
	for i := range h.nodes {
		if s.nodes != nil {
			if err := s.describe(ctx, &h.nodes[i]); err != nil {
				return nil, &site.UnableError{Err: err}
			}
		}
	}
	if s.nodes == nil {
		s.say("without --observe, tare does not read the nodes, so the report names no causes (docs/cluster.md)")
	}
	need, err := h.cold.need(&h.Maker, h.nodes)
	if err != nil {
		return nil, err
	}
	for _, line := range need {
		s.say("%s", line)
	}
	s.open, s.source = ahead.New(h, r.Study, keptDir, s.brief.AtOnce), source
	s.open.AtMost = s.brief.AtMost
	return openSession{s.open, s}, nil
}

// openSession is the open session, until it is closed.
type openSession struct {
	*ahead.Session
	site *insideSite
}

// Close implements site.Session.
func (o openSession) Close() {
	o.Session.Close()
	if o.site.api.HeldUp() {
		o.site.say("%s", o.site.api.Rate())
	}
	o.site.open = nil
}

// describe adds to what the API server says of a node what its observer sees.
func (s *insideSite) describe(ctx context.Context, n *record.Node) error {
	seen, err := s.nodes.Host(ctx, n.Name)
	if err != nil {
		return fmt.Errorf("cannot read node %s: %w", n.Name, err)
	}
	seen.Hostname, seen.OS, seen.Tools = n.Host.Hostname, n.Host.OS, n.Host.Tools
	n.Host = seen
	return nil
}

// insideSession is an open study. Its maker makes the trials.
type insideSession struct {
	trial.Maker
	pods  *pod.Study
	fill  *fillers
	cold  *copies
	nodes []record.Node
	skips []record.Skip
}

// Nodes implements site.Session.
func (h *insideSession) Nodes() []record.Node { return h.nodes }

// Preview implements site.Session.
func (h *insideSession) Preview() site.Preview { return site.Preview{Skips: h.skips} }

// Close implements site.Session. Each trial has deleted its pods, but for the fillers.
func (h *insideSession) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
	defer cancel()
	h.fill.end(ctx)
}
