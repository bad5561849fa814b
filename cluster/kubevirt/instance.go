package kubevirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	kv "kubevirt.io/api/core/v1"

	"tare/agent"
	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/cluster/observer"
	"tare/record"
	"tare/sandbox"
	"tare/sandbox/vm"
)

// Start implements sandbox.Kind.
func (k *Machines) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	i, err := k.start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", k.name, spec.Name, err)
	}
	return i, nil
}

func (k *Machines) start(ctx context.Context, spec sandbox.Spec) (_ *instance, err error) {
	token, arrived, forget := k.hub.Expect(spec.Name)
	defer forget()
	m, err := k.machine(&spec.Want, token)
	if err != nil {
		return nil, err
	}
	i := &instance{kind: k, spec: spec, machine: m, begun: time.Now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Stop(context.WithoutCancel(ctx)))
		}
	}()
	for _, obj := range m.objects() {
		if err := k.api.Create(ctx, obj); err != nil {
			return nil, fmt.Errorf("cannot create the %s %s: %w", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName(), err)
		}
		i.created = append(i.created, obj)
	}
	i.reached(stepAdmit)
	conn, err := i.agent(ctx, arrived)
	if err != nil {
		return nil, err
	}
	i.reached(stepAgent)
	if i.client, err = agent.Connect(ctx, conn, conn, agent.Place("virtual machine")); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	i.conn = conn
	err = k.api.WatchPods(ctx, m.vmi.Namespace, i.launchers(), func(p *corev1.Pod) (bool, error) {
		if p == nil {
			return true, errLauncherGone
		}
		i.launcher = p
		i.conn.Addr, _ = netip.ParseAddr(p.Status.PodIP)
		return i.conn.Addr.IsValid(), nil
	})
	if err == nil {
		err = k.api.Get(ctx, m.vmi) // with its status
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the machine's status: %w", err)
	}
	if k.Nodes != nil && spec.Node != "" {
		if i.found, err = k.Nodes.Find(ctx, spec.Node, string(i.launcher.UID)); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// instance is one machine.
type instance struct {
	kind     *Machines
	spec     sandbox.Spec
	machine  *machine
	created  []kube.Object
	launcher *corev1.Pod
	conn     control.Arrival
	client   *agent.Client
	found    observer.Found

	mu    sync.Mutex
	begun time.Time
	steps []sandbox.BootPhase
}

// Steps of a start.
const (
	stepAdmit    = "admit"    // the API server has the machine
	stepLauncher = "launcher" // its launcher pod runs
	stepDomain   = "domain"   // the guest's processors run
	stepAgent    = "agent"    // tare's agent has dialled
)

// reached notes the end of a step.
func (i *instance) reached(step string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	took := time.Since(i.begun)
	for _, s := range i.steps {
		if s.Name == step {
			return
		}
		took -= s.Took
	}
	i.steps = append(i.steps, sandbox.BootPhase{Name: step, Took: took})
}

// Boot implements sandbox.Booter. A step counts when the coordinator hears of it: the machine's own
// stamps are whole seconds.
func (i *instance) Boot() []sandbox.BootPhase {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.steps
}

// launchers is the label of the machine's launcher pod.
func (i *instance) launchers() string { return kv.CreatedByLabel + "=" + string(i.machine.vmi.UID) }

// Errors of a machine that ends while its agent is awaited.
var (
	errGone         = errors.New("the virtual machine was deleted")
	errLauncherGone = errors.New("the launcher pod was deleted")
)

// console says where a guest tells what it does.
const console = "the guest's console says more: `virtctl console` while the machine runs"

// agent waits for the machine's agent, and watches meanwhile whether it can still come.
func (i *instance) agent(ctx context.Context, arrived <-chan control.Arrival) (control.Arrival, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hopeless := make(chan error, 2)
	api, vmi := i.kind.api, i.machine.vmi
	var phase atomic.Value // the last that was seen
	phase.Store(kv.VmPhaseUnset)
	go func() {
		hopeless <- kube.Watch(ctx, api, vmi.DeepCopy(), func(m *kv.VirtualMachineInstance) (bool, error) {
			if m == nil {
				return true, errGone
			}
			phase.Store(m.Status.Phase)
			switch m.Status.Phase {
			case kv.Scheduled:
				i.reached(stepLauncher)
			case kv.Running:
				i.reached(stepLauncher)
				i.reached(stepDomain)
			}
			return false, whyNot(m)
		})
	}()
	go func() {
		hopeless <- api.WatchPods(ctx, vmi.Namespace, i.launchers(), func(p *corev1.Pod) (bool, error) {
			if p == nil {
				return true, errLauncherGone
			}
			return false, whyNoLauncher(p)
		})
	}()
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
	case <-ctx.Done():
		return control.Arrival{}, fmt.Errorf("the agent in the virtual machine did not answer: %w; %s", context.Cause(ctx), stuck(phase.Load().(kv.VirtualMachineInstancePhase)))
	}
}

// stuck says what a machine whose agent does not come waits for.
func stuck(phase kv.VirtualMachineInstancePhase) string {
	is := fmt.Sprintf("the machine is in the phase %s: ", phase)
	switch phase {
	case kv.VmPhaseUnset, kv.Pending:
		return "KubeVirt's virt-controller has not taken the machine; does it run, and what does its log say?"
	case kv.Scheduling:
		return is + "its launcher pod does not run yet"
	case kv.Scheduled:
		return is + "its launcher pod runs, but KubeVirt's virt-handler on the node has not started the guest; does it run there, and what does its log say?"
	}
	return console
}

// whyNoLauncher says why a launcher pod will not run; nil while it may. The scheduler does not say which
// labels are missing.
func whyNoLauncher(p *corev1.Pod) error {
	err := kube.WhyNot("launcher pod", p)
	if err == nil || p.Spec.NodeName != "" || len(p.Spec.NodeSelector) == 0 {
		return err
	}
	var wants []string
	for _, key := range slices.Sorted(maps.Keys(p.Spec.NodeSelector)) {
		wants = append(wants, key+"="+p.Spec.NodeSelector[key])
	}
	return fmt.Errorf("%s; it asks for a node with the labels %s; KubeVirt's virt-handler sets those of kubevirt.io where it runs", strings.TrimSuffix(err.Error(), "."), strings.Join(wants, ", "))
}

// Advice for reasons of a machine that cannot run (pkg/controller of KubeVirt).
var advice = map[string]string{ //nolint:gochecknoglobals // constant
	"FailedPvcNotFound": "; a claim must be in the namespace of the study: give it with -n",
	"FailedCreate":      "; does the namespace admit KubeVirt's launcher pods?",
	"NodeUnresponsive":  "; does KubeVirt's virt-handler run on its node?",
}

// whyNot says why a machine will not run, in the words of its conditions; nil while it may.
func whyNot(m *kv.VirtualMachineInstance) error {
	const what = "virtual machine"
	// Synchronized has the better reason where both are False: a claim that is missing is also Unschedulable.
	for _, wanted := range []kv.VirtualMachineInstanceConditionType{kv.VirtualMachineInstanceSynchronized, kv.VirtualMachineInstanceConditionType(corev1.PodScheduled)} {
		for _, c := range m.Status.Conditions {
			if c.Type == wanted && c.Status == corev1.ConditionFalse && (wanted == kv.VirtualMachineInstanceSynchronized || c.Reason == corev1.PodReasonUnschedulable) {
				if level, _, is := kube.Violation(c.Message); is {
					return &sandbox.RefusedError{Raw: c.Message, Why: fmt.Sprintf("the namespace enforces the Pod Security level %s, which does not admit KubeVirt's launcher pods; leave -n out, or label the namespace: "+
						"`kubectl label namespace %s --overwrite pod-security.kubernetes.io/enforce=baseline`", level, m.Namespace)}
				}
				return fmt.Errorf("%w%s", kube.CannotRun(what, c.Reason, c.Message), advice[c.Reason])
			}
		}
	}
	if m.Status.Phase == kv.Failed || m.Status.Phase == kv.Succeeded {
		return fmt.Errorf("%w%s", kube.CannotRun(what, string(m.Status.Phase), cmp.Or(m.Status.Reason, "the guest has ended")), advice[m.Status.Reason])
	}
	return nil
}

// Exec implements sandbox.Instance.
func (i *instance) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	c.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp"}, c.Env...)
	exit, err := i.client.Run(ctx, c)
	if err != nil {
		return exit, fmt.Errorf("%s %s: %w", i.kind.name, i.spec.Name, i.explain(ctx, err))
	}
	return exit, nil
}

// explain adds what became of a machine whose agent does not answer.
func (i *instance) explain(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainWithin)
	defer cancel()
	now := i.machine.vmi.DeepCopy()
	switch gerr := i.kind.api.Get(ctx, now); {
	case kube.IsGone(gerr):
		return fmt.Errorf("%w (%w)", err, errGone)
	case gerr != nil:
		return err
	}
	if why := whyNot(now); why != nil {
		return fmt.Errorf("%w (%w)", err, why)
	}
	return err
}

// Addr implements sandbox.Instance.
func (i *instance) Addr() netip.Addr { return i.conn.Addr }

// Scope implements sandbox.Instance: the launcher pod, which has the VMM.
func (i *instance) Scope() sandbox.LocalScope { return i.found.Scope(roles()) }

// roles are those of the threads in a launcher pod: KubeVirt's and libvirt's programs, and the VMM.
func roles() sandbox.ThreadRoles {
	var out sandbox.ThreadRoles
	for _, p := range []string{"pause", "virt-launcher-monitor", "virt-launcher", "virtqemud", "libvirtd", "virtlogd", "container-disk", "virt-tail"} {
		out = append(out, sandbox.RoleRule{Role: record.RoleShim, Program: p})
	}
	return append(out, vm.ThreadRoles()...)
}

// deviceKVM is what a launcher asks for unless machines are emulated.
const deviceKVM = "devices.kubevirt.io/kvm"

// Facts implements sandbox.Instance.
func (i *instance) Facts() map[string]string {
	k, vmi, v := i.kind, i.machine.vmi, i.kind.disk
	f := map[string]string{
		"sandbox": k.name, record.FactNode: i.launcher.Spec.NodeName, record.FactPod: string(i.launcher.UID),
		record.FactAccelerator: record.AcceleratorTCG, "launcher": vmi.Status.LauncherContainerImageVersion,
	}
	for _, c := range i.launcher.Spec.Containers {
		if _, kvm := c.Resources.Limits[deviceKVM]; kvm {
			f[record.FactAccelerator] = record.AcceleratorKVM
		}
	}
	for _, key := range []string{keyImage, keyPVC, keyStorageClass} {
		if s := v.Str(key); s != "" {
			f[strings.ReplaceAll(key, "-", "_")] = s
		}
	}
	if _, digest, pinned := strings.Cut(v.Str(keyImage), "@"); pinned {
		f[record.FactImageDigest] = digest
	}
	if k.cluster != nil && k.cluster.Version != "" {
		f["kubevirt"] = k.cluster.Version
	}
	if m := vmi.Status.Machine; m != nil {
		f["machine"] = m.Type
	}
	if t := vmi.Status.CurrentCPUTopology; t != nil {
		f["vcpus"] = strconv.FormatUint(uint64(max(1, t.Cores))*uint64(max(1, t.Sockets))*uint64(max(1, t.Threads)), 10)
	}
	if m := vmi.Status.Memory; m != nil && m.GuestCurrent != nil {
		f["guest_memory"] = m.GuestCurrent.String()
	}
	if i.found.Cgroup != "" {
		f[record.FactCPULimit], f[record.FactMemoryLimit] = observer.Limit(i.found.CPU), observer.Limit(float64(i.found.Memory))
	}
	return f
}

// Bounds of Stop, and of what an error asks.
const (
	stopWithin    = 2 * time.Minute
	explainWithin = 10 * time.Second
)

// Stop implements sandbox.Instance. KubeVirt keeps a machine until its launcher pod has ended.
func (i *instance) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	if i.client != nil {
		_ = i.client.Close()
		_ = i.conn.Close()
	}
	for _, obj := range slices.Backward(i.created) { // the machine first
		if err := i.kind.api.Delete(ctx, obj, 0); err != nil {
			return fmt.Errorf("cannot delete %s: %w", obj.GetName(), err)
		}
	}
	vmi := i.machine.vmi
	err := kube.Watch(ctx, i.kind.api, vmi.DeepCopy(), func(m *kv.VirtualMachineInstance) (bool, error) {
		return m == nil || m.UID != vmi.UID, nil
	})
	if err == nil && i.launcher != nil {
		err = i.kind.api.WatchPod(ctx, i.launcher.Namespace, i.launcher.Name, func(p *corev1.Pod) (bool, error) {
			return p == nil || p.UID != i.launcher.UID, nil
		})
	}
	if err != nil {
		return fmt.Errorf("the virtual machine is not gone: %w", err)
	}
	return nil
}
