package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/cluster/probe"
	"tare/record"
)

// Bounds of what doctor tries with pods. An image may have to be pulled.
const (
	podWithin  = 2 * time.Minute
	pathWithin = 30 * time.Second
	mostProbes = 20 // nodes that get a probe
)

// mostSkew is how far a node's clock may be off: less confuses nobody who compares results with logs.
const mostSkew = time.Second

// probed is a probe on a node and what became of it.
type probed struct {
	node     string
	pod      *corev1.Pod
	took     time.Duration // from the call to ready
	probe    *probe.Probe
	err      error // the pod does not run
	unspoken error // it runs, and cannot be spoken to
}

// tryPods starts a probe on each node, and a second one on the first node, and a pod of each class. It
// removes all of them.
func (s *Site) tryPods(ctx context.Context) (out []Finding) {
	id := newID()
	d := &deployment{api: s.api}
	d.name(id, s.Namespace)
	defer func() {
		if err := s.undo(d); err != nil {
			out = append(out, Finding{Area: AreaPods, Name: "removal", Err: err})
		}
	}()
	var err error
	if !d.shared {
		err = d.makeNamespace(ctx, d.namespace, "restricted")
	}
	if err == nil {
		err = d.createAll(ctx, d.policy())
	}
	if err != nil {
		return append(out, Finding{Area: AreaPods, Name: "namespace", Err: err})
	}
	all := s.untainted()
	nodes := all[:min(len(all), mostProbes)]
	if len(nodes) < len(all) {
		out = append(out, Finding{Area: AreaPods, Name: "nodes", Detail: fmt.Sprintf("%d of %d nodes tried", len(nodes), len(all))})
	}
	token := rand.Text()
	probes := make([]probed, len(nodes)+1)
	classes := make([]Finding, len(s.classes))
	var starts sync.WaitGroup
	for i := range probes {
		starts.Go(func() {
			probes[i] = s.startProbe(ctx, d, fmt.Sprintf("tare-%s-probe-%d", id, i), nodes[i%len(nodes)], token)
		})
	}
	for i, c := range s.classes {
		starts.Go(func() { classes[i] = s.startClass(ctx, d, c, i) })
	}
	starts.Wait()
	if p := probes[0]; len(classes) > 0 { // the default class is that of the probes
		classes[0].Err, classes[0].Detail = p.err, fmt.Sprintf("starts in %.1f s", p.took.Seconds())
	}
	out = append(append(out, images(probes)...), classes...)
	ctx, cancel := context.WithTimeoutCause(ctx, pathWithin, fmt.Errorf("no answer within %s", pathWithin))
	defer cancel()
	out = append(append(out, clocks(ctx, probes)...), paths(ctx, probes)...)
	for _, p := range probes {
		if p.probe != nil {
			p.probe.Close()
		}
	}
	if s.Observe {
		out = append(out, s.tryObserver(ctx, d, nodes[0].Name))
	}
	return out
}

// disturbs says that pods on the nodes would disturb a study; nil if none measures there.
func (s *Site) disturbs(ctx context.Context) error {
	d := &deployment{api: s.api}
	d.name(newID(), s.Namespace)
	for _, n := range s.untainted() {
		d.nodes = append(d.nodes, n.Name)
	}
	other, err := s.holder(ctx, d)
	if other != nil {
		err = fmt.Errorf("not tried: study %s measures on these nodes, and pods would disturb it; try again when it has ended", other.study)
	}
	return err
}

// undo removes what was made, and waits until it is gone.
func (s *Site) undo(d *deployment) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*removeWithin)
	defer cancel()
	err := d.remove(ctx)
	for d.shared && err == nil {
		var left corev1.PodList
		if err = s.api.List(ctx, d.namespace, pod.LabelStudy+"="+d.id, &left); len(left.Items) == 0 {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	for _, name := range d.made {
		err = errors.Join(err, s.delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	return err
}

// startProbe starts a probe and speaks to it.
func (s *Site) startProbe(ctx context.Context, d *deployment, name string, n record.Node, token string) probed {
	out := probed{node: n.Name, pod: pod.Probe(d.meta(name), s.Image, n.Name, token, probe.Port)}
	out.took, out.err = s.await(ctx, out.pod, func(p *corev1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	})
	if out.err != nil {
		return out
	}
	type spoken struct {
		probe *probe.Probe
		err   error
	}
	answer := make(chan spoken, 1)
	ctx, cancel := context.WithTimeoutCause(ctx, pathWithin, fmt.Errorf("no answer within %s", pathWithin))
	defer cancel()
	go func() { // Forward knows no bound
		conn, err := s.api.Forward(d.namespace, name, probe.Port)
		if err != nil {
			answer <- spoken{err: err}
			return
		}
		p, err := probe.Connect(ctx, conn, token)
		answer <- spoken{p, err}
	}()
	select {
	case a := <-answer:
		out.probe, out.unspoken = a.probe, a.err
	case <-ctx.Done():
		out.unspoken = context.Cause(ctx)
	}
	return out
}

// startClass starts a pod of a RuntimeClass, which ends at once.
func (s *Site) startClass(ctx context.Context, d *deployment, c pod.Class, i int) Finding {
	k := pod.New(c, nil, nil, nil)
	f := Finding{Area: AreaClass, Name: c.Name, Family: k.Traits(nil).Family}
	if c.Class == "" {
		return f
	}
	p := pod.Smallest(d.meta(fmt.Sprintf("tare-%s-class-%d", d.id, i)), s.Image, c.Class)
	took, err := s.await(ctx, p, func(p *corev1.Pod) bool {
		for _, c := range p.Status.ContainerStatuses { // which tell it before the phase does
			if t := c.State.Terminated; t != nil {
				return t.ExitCode == 0
			}
		}
		return p.Status.Phase == corev1.PodSucceeded
	})
	f.Err, f.Detail = err, fmt.Sprintf("starts and ends in %.1f s, handler %s, on %s", took.Seconds(), c.Handler, p.Spec.NodeName)+k.Sizing()+s.sameHandler(c)
	return f
}

// await creates a pod and follows it until it is as wanted.
func (s *Site) await(ctx context.Context, p *corev1.Pod, as func(*corev1.Pod) bool) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, podWithin, fmt.Errorf("the pod is not ready after %s", minutes(podWithin)))
	defer cancel()
	begun := time.Now()
	err := s.api.Create(ctx, p)
	if err != nil && len(pod.Limit(p, err)) > 0 {
		err = s.api.Create(ctx, p)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot create a pod: %w", explained(err, s.Namespace))
	}
	err = s.api.WatchPod(ctx, p.Namespace, p.Name, func(now *corev1.Pod) (bool, error) {
		if now == nil {
			return true, errors.New("the pod was deleted")
		}
		*p = *now
		if as(p) {
			return true, nil
		}
		return false, pod.WhyNot(p)
	})
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w; its phase is %s", context.Cause(ctx), p.Status.Phase)
	}
	return time.Since(begun), err
}

// images says for each node whether it has the image.
func images(probes []probed) (out []Finding) {
	for i := range probes[:len(probes)-1] { // the last is the second one of the first node
		p := &probes[i]
		f := Finding{Area: AreaImage, Name: p.node, Err: p.err}
		for _, c := range p.pod.Status.ContainerStatuses {
			f.Detail = fmt.Sprintf("a pod is ready in %.1f s; %s", p.took.Seconds(), c.ImageID)
		}
		out = append(out, f)
	}
	return out
}

// clocks compares the nodes' clocks with this machine's.
func clocks(ctx context.Context, probes []probed) (out []Finding) {
	for i := range probes[:len(probes)-1] {
		p := &probes[i]
		if p.err != nil {
			continue // the image's finding has the reason
		}
		f := Finding{Area: AreaClock, Name: p.node, Err: p.unspoken}
		if p.probe != nil {
			ahead, within, err := p.probe.Clock(ctx)
			f.Detail, f.Err = skew(ahead, within), err
			if err == nil && ahead.Abs()-within > mostSkew {
				f.Err = fmt.Errorf("%s; synchronise it with this machine's clock (NTP)", f.Detail)
			}
		} else {
			f.Err = fmt.Errorf("cannot connect to a pod there: %w", f.Err)
		}
		out = append(out, f)
	}
	return out
}

// skew is a clock's difference as a person reads it.
func skew(ahead, within time.Duration) string {
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	unit := time.Millisecond / 10
	return fmt.Sprintf("%s %s this machine's clock, ± %s", ahead.Abs().Round(unit), direction, within.Round(unit))
}

// paths has a probe reach the second one of its node, and each node's probe the next node's.
func paths(ctx context.Context, probes []probed) (out []Finding) {
	nodes := probes[:len(probes)-1]
	try := func(from, to *probed) {
		if from.probe == nil || to.err != nil {
			return // other findings have the reason
		}
		f := Finding{Area: AreaNetwork, Name: from.node + " to " + to.node}
		took, err := from.probe.Reach(ctx, to.pod.Status.PodIP)
		if err != nil {
			f.Err = fmt.Errorf("a pod cannot reach another pod: %w; check the network plugin's pods and the network policies", err)
		}
		f.Detail = fmt.Sprintf("a pod connects to another pod at %s in %s", to.pod.Status.PodIP, took.Round(time.Microsecond))
		out = append(out, f)
	}
	try(&nodes[0], &probes[len(probes)-1])
	for i := range nodes {
		if len(nodes) > 1 {
			try(&nodes[i], &nodes[(i+1)%len(nodes)])
		}
	}
	return out
}

// tryObserver has the API server judge an observer's pod: nothing privileged is started.
func (s *Site) tryObserver(ctx context.Context, d *deployment, node string) Finding {
	f := Finding{Area: AreaObserver, Name: "admission", Detail: "the API server admits an observer's privileged pod"}
	m := d.meta(observerPod(d.id, 0))
	if m.Namespace = d.nodesNamespace(); !d.shared {
		if f.Err = d.makeNamespace(ctx, m.Namespace, "privileged"); f.Err != nil {
			return f
		}
	}
	if err := s.api.Try(ctx, kube.Object(pod.Observer(m, node, pod.Study{Image: s.Image, Secret: agentSecret(d.id)}, ""))); err != nil {
		f.Err = fmt.Errorf("the API server refuses an observer's pod in namespace %s: %w", m.Namespace, explained(err, s.Namespace))
	}
	return f
}
