// Package pod is the sandbox of a cluster: a pod with a RuntimeClass and tare's agent as its
// first process.
//
// The data path: 1. Start creates the pod and waits until its agent has dialled the coordinator
// (package control), or the pod's status says why it cannot; 2. commands go to the agent;
// 3. Stop deletes the pod and waits until it is gone.
package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tare/agent"
	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/observer"
	"tare/param"
	"tare/record"
	"tare/sandbox"
	"tare/sandbox/oci"
	"tare/sandbox/vm"
	"tare/sizing"
	"tare/volume"
)

// Class is a RuntimeClass, or the cluster's default runtime under the name of the baseline.
type Class struct {
	Name    string `json:"name"`    // of the level in a study
	Class   string `json:"class"`   // RuntimeClass; "" for the cluster's default
	Handler string `json:"handler"` // what the node's container runtime calls it
	// Nodes are the labels of the nodes that have it.
	Nodes    map[string]string   `json:"nodes,omitempty"`
	Overhead corev1.ResourceList `json:"overhead,omitempty"` // that a pod takes beside its containers
}

// RuntimeClass is a kind of sandbox: pods with one Kubernetes RuntimeClass, or pods that a study defines.
type RuntimeClass struct {
	name, class, handler string
	set                  settings
	classes              []Class // of the cluster; nil: they are not known

	api   *kube.Client
	hub   *control.Hub
	study *Study

	// Nodes are the observers. nil: a pod's control groups and limits stay unknown.
	Nodes observer.Nodes
	// Steps records the pods' starts.
	Steps *Steps
}

// New returns the kind of a class. Without a study it only describes; it starts nothing.
func New(c Class, api *kube.Client, hub *control.Hub, study *Study) *RuntimeClass {
	return &RuntimeClass{name: c.Name, class: c.Class, handler: c.Handler, api: api, hub: hub, study: study}
}

// RuntimeClasses returns the kinds of a cluster's classes.
func RuntimeClasses(classes []Class, api *kube.Client, hub *control.Hub, study *Study) []*RuntimeClass {
	out := make([]*RuntimeClass, len(classes))
	for i, c := range classes {
		out[i] = New(c, api, hub, study)
		out[i].classes = classes
	}
	return out
}

// Name implements sandbox.Kind.
func (k *RuntimeClass) Name() string { return k.name }

// About implements sandbox.Kind.
func (k *RuntimeClass) About() string {
	if k.class == "" {
		return "a pod with the cluster's default runtime: the baseline"
	}
	return fmt.Sprintf("a pod with RuntimeClass %s (handler %s)", k.class, k.handler) + k.Sizing()
}

// About how long a pod takes to start and to go: two polls of its kubelet.
const takes = 3 * time.Second

// checkWithin bounds Check: an image may have to be pulled first.
const checkWithin = 2 * time.Minute

// Traits implements sandbox.Kind.
func (k *RuntimeClass) Traits(map[string]string) sandbox.Traits {
	t := sandbox.Traits{Takes: takes, CheckWithin: checkWithin, Traits: oci.TraitsOf(k.handler)}
	t.Sizing = string(sizing.FlavourOf(k.handler))
	if k.class == "" {
		t.Family, t.OwnKernel, t.Emulated = record.FamilyNative, record.No, record.No
	}
	return t
}

// Check starts a pod and runs the smallest program in it.
func (k *RuntimeClass) Check(ctx context.Context) error {
	if k.api == nil {
		return fmt.Errorf("%s: a pod needs a cluster; write --on k8s, or leave it out of the study", k.name)
	}
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	return k.study.Try(ctx, k)
}

// Try starts a sandbox of a kind and runs the smallest program in it. It does not wait until the sandbox is gone: Tried does.
func (s *Study) Try(ctx context.Context, k sandbox.Kind) error {
	trial := s.ID + "-check"
	spec := sandbox.Spec{Want: sandbox.Want{Name: trial + "-" + strings.ToLower(strings.ReplaceAll(k.Name(), "_", "-")), Trial: trial}}
	i, err := k.Start(ctx, spec)
	if err != nil && len(s.ending) > 0 { // perhaps those that are going leave no room
		if err = s.Tried(); err == nil {
			i, err = k.Start(ctx, spec)
		}
	}
	if err != nil {
		return shortly(err)
	}
	exit, err := i.Exec(ctx, sandbox.Command{Args: []string{"/tare", "internal", "noop"}})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("the smallest program exits with code %d", exit.Code)
	}
	ended := make(chan error, 1)
	s.ending = append(s.ending, ended)
	go func() { ended <- i.Stop(context.WithoutCancel(ctx)) }()
	return err
}

// Tried waits until the sandboxes of Try are gone, which takes a pod some seconds. It returns why one could not be stopped.
func (s *Study) Tried() error {
	var errs []error
	for _, ended := range s.ending {
		errs = append(errs, <-ended)
	}
	s.ending = nil
	return errors.Join(errs...)
}

// Start implements sandbox.Kind.
func (k *RuntimeClass) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	i, err := k.start(ctx, spec)
	if err == nil {
		if err = i.hear(); err != nil {
			err = errors.Join(err, i.Stop(context.WithoutCancel(ctx)))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", k.name, spec.Name, err)
	}
	return i, nil
}

func (k *RuntimeClass) start(ctx context.Context, spec sandbox.Spec) (_ *instance, err error) {
	token, arrived, forget := k.hub.Expect(spec.Name)
	defer forget()
	i := &instance{kind: k, spec: spec, pod: k.manifest(&spec.Want, token)}
	i.begun, err = k.api.CreateOnceFree(ctx, i.pod)
	if spec.Role == "" && err != nil { // nothing is measured in it
		if demands := Limit(i.pod, err); len(demands) > 0 {
			k.study.Demands = demands
			err = k.api.Create(ctx, i.pod)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create the pod: %w", k.hint(err, &spec.Want))
	}
	i.admitted, i.level = time.Now(), k.api.PriorityLevel()
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Stop(context.WithoutCancel(ctx)))
		}
	}()
	conn, err := k.agentOf(ctx, i.pod, arrived)
	if err != nil {
		return nil, err
	}
	if i.client, err = agent.Connect(ctx, conn, conn, agent.Place("pod")); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	i.conn = conn
	err = k.api.WatchPod(ctx, i.pod.Namespace, i.pod.Name, func(p *corev1.Pod) (bool, error) {
		if p == nil {
			return true, errors.New("the pod was deleted")
		}
		i.pod = p // which knows its node now
		if a := addressOf(p); a.IsValid() {
			i.conn.Addr = a
		}
		return i.conn.Addr.IsValid(), nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the pod's status: %w", err)
	}
	if k.Nodes != nil && spec.Node != "" {
		if i.found, err = k.Nodes.Find(ctx, spec.Node, string(i.pod.UID), paths(spec.Volumes)...); err != nil {
			return nil, err
		}
	}
	return i, i.openDevices(ctx)
}

// paths lists where a sandbox has its volumes.
func paths(volumes []volume.Volume) (out []string) {
	for _, v := range volumes {
		out = append(out, v.Path())
	}
	return out
}

// hear takes the events of the pod's start, and waits for them if the pod is new. It returns an error if the start should have been cold and does not count.
func (i *instance) hear() error {
	if i.kind.Steps != nil {
		i.heard = i.kind.Steps.take(i.pod.UID)
		if err := i.cold(); err != nil {
			return err
		}
	}
	i.phases = moments{begun: i.begun, admitted: i.admitted, heard: i.heard.at, first: i.conn.Began, arrived: i.conn.At}.phases()
	return nil
}

// Launch implements sandbox.Launcher: the start of a pod, a command of its agent, and its end. The
// steps Created and Started are those of the pod's container, by the kubelet's events. A phased launch reports its steps, and waits
// until the pod's status is Ready; then the command runs. A server does not wait: its answers show that it is ready.
func (k *RuntimeClass) Launch(ctx context.Context, spec sandbox.Spec, c sandbox.Command, mode sandbox.LaunchMode) (l sandbox.Launch, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s %s: %w", k.name, spec.Name, err)
		}
	}()
	l.Begun = time.Now()
	i, err := k.start(ctx, spec)
	if err != nil {
		return l, err
	}
	defer func() {
		err = errors.Join(err, i.Stop(context.WithoutCancel(ctx)))
		l.Facts = i.Facts() // the kubelet has told the image by now
	}()
	l.Begun = i.begun
	hear := func() error { // as late as possible: a busy kubelet's events come late, and no timed step waits for them
		if err := i.hear(); err != nil {
			return err
		}
		l.Pulled = i.heard.pulled
		if mode == sandbox.Phased {
			l.Created, l.Started, l.Boot = since(i.begun, i.heard.at[eventCreated]), since(i.begun, i.heard.at[eventStarted]), i.phases
		}
		return nil
	}
	switch {
	case spec.Networked: // tare ends it from outside, at any moment
		err = hear()
	case mode == sandbox.Phased:
		var ready sandbox.BootPhase
		if ready, err = i.ready(ctx); err == nil {
			err = hear()
			l.Boot = append(slices.Clone(l.Boot), ready)
		}
	}
	if err != nil {
		return l, err
	}
	if spec.Located != nil {
		spec.Located(i.Addr())
	}
	first := &sandbox.FirstWrite{To: c.Stdout}
	c.Stdout = first
	l.Exit, err = i.Exec(ctx, c)
	exited := time.Since(i.begun)
	l.Instruction = first.Since(i.begun)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return l, err
	}
	l.Exited = exited
	if err := i.Stop(ctx); err != nil {
		return l, err
	}
	l.Deleted = time.Since(i.begun)
	if mode == sandbox.Whole && !spec.Networked {
		err = hear()
	}
	return l, err
}

// ready waits until the pod's status is Ready, and returns that step.
func (i *instance) ready(ctx context.Context) (sandbox.BootPhase, error) {
	err := i.kind.api.WatchPod(ctx, i.pod.Namespace, i.pod.Name, func(p *corev1.Pod) (bool, error) {
		switch {
		case p == nil:
			return true, errors.New("the pod was deleted")
		case WhyNot(p) != nil:
			return true, WhyNot(p)
		}
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}), nil
	})
	if err != nil {
		return sandbox.BootPhase{}, fmt.Errorf("the pod does not become ready: %w", err)
	}
	return sandbox.BootPhase{Name: "ready", Took: time.Since(i.conn.At)}, nil
}

// since is the time from a moment to another; zero if that is not known.
func since(from, to time.Time) time.Duration {
	if to.IsZero() {
		return 0
	}
	return to.Sub(from)
}

// agentOf waits for the pod's agent, and watches meanwhile whether it can still come.
func (k *RuntimeClass) agentOf(ctx context.Context, pod *corev1.Pod, arrived <-chan control.Arrival) (control.Arrival, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hopeless := make(chan error, 1)
	var waits atomic.Pointer[error] // why the pod is not scheduled for the sake of its claims
	var late <-chan time.Time
	if len(claimsOf(pod)) > 0 {
		late = time.After(bindWithin)
	}
	go func() {
		hopeless <- k.api.WatchPod(ctx, pod.Namespace, pod.Name, func(p *corev1.Pod) (bool, error) {
			if p == nil {
				return true, errors.New("the pod was deleted")
			}
			why := WhyNot(p)
			if waits.Store(nil); why != nil && late != nil && unbound(p) {
				waits.Store(&why)
				why = nil
			}
			return false, why
		})
	}()
	for {
		select {
		case c := <-arrived:
			return c, nil
		case err := <-hopeless:
			select {
			case c := <-arrived:
				return c, nil
			default:
				return control.Arrival{}, err
			}
		case <-late:
			if why := waits.Load(); why != nil {
				return control.Arrival{}, fmt.Errorf("its claims were not bound within %s: %w%s", param.FormatDuration(bindWithin), *why, k.Steps.trouble(claimsOf(pod)))
			}
		case <-ctx.Done():
			return control.Arrival{}, fmt.Errorf("the agent in the pod did not answer: %w", context.Cause(ctx))
		}
	}
}

// evicted is the reason in the condition DisruptionTarget of a pod whose node has a taint that it does not tolerate
// (k8s.io/kubernetes/pkg/controller/tainteviction).
const evicted = "DeletionByTaintManager"

// WhyNot returns why a pod cannot run, in the words of its status. It is nil while the pod may still run.
func WhyNot(p *corev1.Pod) error {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == evicted {
			return &closedNodeError{fmt.Errorf("node %s evicts its pods, because it is not ready or has a new taint (%s)", p.Spec.NodeName, c.Message)}
		}
	}
	for n, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if t := s.State.Terminated; t != nil && (n >= len(p.Status.InitContainerStatuses) || t.ExitCode != 0) {
			return ended(p, t)
		}
	}
	why := kube.WhyNot("pod", p)
	if node := p.Spec.NodeSelector[corev1.LabelHostname]; why != nil && node != "" {
		if how := refused(p); how != "" {
			return &closedNodeError{fmt.Errorf("node %s %s (%w)", node, how, why)}
		}
	}
	return why
}

// closedNodeError says that a node takes no more pods, or evicts them. The study goes on as if the node was lost.
type closedNodeError struct{ error }

func (e *closedNodeError) Unwrap() error { return e.error }

// Is reports whether target is sandbox.ErrNodeLost.
func (*closedNodeError) Is(target error) bool { return target == sandbox.ErrNodeLost }

// ended says why a pod's container ended before its trial.
func ended(p *corev1.Pod, t *corev1.ContainerStateTerminated) error {
	switch {
	case p.DeletionTimestamp != nil:
		why := "a user or a controller"
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
				why = c.Reason
			}
		}
		return fmt.Errorf("the pod was deleted during the trial (by %s)", why)
	case t.Reason == "OOMKilled" || strings.Contains(t.Message, "OOM-killed"):
		return fmt.Errorf("the kernel killed the pod because the program and tare's agent used more memory than its memory-limit; raise memory-limit (%s)", cmp.Or(t.Message, t.Reason))
	}
	return kube.CannotRun("pod", t.Reason, fmt.Sprintf("tare's agent exited with code %d: %s", t.ExitCode, t.Message))
}

// refuses is what the scheduler says of a node that takes no pods any more, or of one that is not the pod's: the errors of
// its plugins NodeAffinity, TaintToleration and NodeUnschedulable (k8s.io/kubernetes/pkg/scheduler/framework/plugins).
var refuses = regexp.MustCompile(`^\d+ node\(s\) (didn't match Pod's node affinity/selector|had untolerated taint.*|were unschedulable)$`)

// refused says why a pod's node takes no pods any more, if the pod is not scheduled for that reason and for no other; "": it is not
// so. The nodes of a study have taken pods when it began. The message does not say which node has which reason, and Kubernetes
// 1.34 does not name the taint.
func refused(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
			continue
		}
		_, reasons, _ := strings.Cut(c.Message, "nodes are available: ")
		reasons, _, _ = strings.Cut(strings.TrimSuffix(reasons, "."), ". ") // what follows is of preemption
		cordoned, tainted := strings.Contains(reasons, "were unschedulable"), strings.Contains(reasons, "untolerated taint")
		switch all := strings.Split(reasons, ", "); {
		case slices.ContainsFunc(all, func(r string) bool { return !refuses.MatchString(r) }):
			return ""
		case cordoned && tainted:
			return "takes no more pods, because it was cordoned or has a new taint"
		case cordoned:
			return "takes no more pods, because it was cordoned"
		case tainted:
			return "takes no more pods, because it has a new taint, such as that of a node that is not ready"
		}
		return "is not in the cluster any more"
	}
	return ""
}

// instance is one pod.
type instance struct {
	kind   *RuntimeClass
	spec   sandbox.Spec
	pod    *corev1.Pod
	conn   control.Arrival
	client *agent.Client
	found  observer.Found

	begun, admitted time.Time // when the create call began, and when it returned
	level           string    // UID of the API's priority level of that call
	heard           heard
	phases          []sandbox.BootPhase
}

// Boot implements sandbox.Booter.
func (i *instance) Boot() []sandbox.BootPhase { return i.phases }

// Exec implements sandbox.Instance.
func (i *instance) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	c.Env = append(i.kind.environment(i.spec.Image), c.Env...)
	exit, err := i.client.Run(ctx, c)
	if err != nil {
		return exit, fmt.Errorf("%s %s: %w", i.kind.name, i.spec.Name, i.explain(ctx, err))
	}
	return exit, nil
}

// lostWithin is how long the cluster may take to see that a node is lost: 50 s by default
// (--node-monitor-grace-period of kube-controller-manager).
const lostWithin = 75 * time.Second

// explain adds what became of a pod whose agent does not answer: a pod that is not ready and has not
// ended is on a node that is lost.
func (i *instance) explain(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lostWithin)
	defer cancel()
	why := i.kind.api.WatchPod(ctx, i.pod.Namespace, i.pod.Name, func(p *corev1.Pod) (bool, error) {
		if p == nil {
			return true, errors.New("the pod was deleted")
		}
		if why := WhyNot(p); why != nil {
			return true, why
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
				return true, fmt.Errorf("node %s: %w", p.Spec.NodeName, sandbox.ErrNodeLost)
			}
		}
		return false, nil
	})
	if why == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w (%w)", err, why)
}

// Addr implements sandbox.Instance.
func (i *instance) Addr() netip.Addr { return i.conn.Addr }

// Scope implements sandbox.Instance.
func (i *instance) Scope() sandbox.LocalScope { return i.found.Scope(i.kind.roles()) }

// roles are those of the threads in a pod's control groups. A pod's first container only waits.
func (k *RuntimeClass) roles() sandbox.ThreadRoles {
	if k.Traits(nil).Family == record.FamilyVM {
		return vm.ThreadRoles()
	}
	return append(sandbox.ThreadRoles{
		{Role: record.RoleShim, Program: "pause"},
		{Role: record.RoleHarness, Program: "tare", Args: []string{"internal", "pod"}},
	}, oci.ThreadRoles("runsc")...)
}

// OthersRoles are those of the threads in the control groups of a pod that a study did not start.
func OthersRoles() sandbox.ThreadRoles {
	return append(sandbox.ThreadRoles{{Role: record.RoleShim, Program: "pause"}}, oci.ThreadRoles("runsc")...)
}

// grace is how long the agent has to end with its commands. stopWithin bounds Stop.
const (
	grace      = time.Second
	stopWithin = 40 * time.Second
)

// Stop implements sandbox.Instance.
func (i *instance) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	if i.client != nil {
		_ = i.client.Close() // the agent ends, and with it the pod
		_ = i.conn.Close()
	}
	if err := i.kind.api.Delete(ctx, i.pod, grace); err != nil {
		return fmt.Errorf("cannot delete the pod: %w", err)
	}
	err := i.kind.api.WatchPod(ctx, i.pod.Namespace, i.pod.Name, func(p *corev1.Pod) (bool, error) {
		if p == nil || p.UID != i.pod.UID {
			return true, nil
		}
		i.pod = p // which knows the image that ran
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("the pod is not gone: %w", err)
	}
	return nil
}
