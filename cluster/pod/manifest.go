package pod

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tare/cluster/kube"
	"tare/cluster/observer"
	"tare/record"
	"tare/sandbox"
)

// Labels of every object that tare creates on a cluster.
const (
	LabelManaged = "app.kubernetes.io/managed-by" // Managed
	LabelStudy   = "tare/study"
	LabelTrial   = "tare/trial"
	LabelRole    = "tare/role"
	Managed      = "tare"
)

// User is the number of the user in pods: an arbitrary one other than root, as the restricted
// Pod Security Standard requires.
const User = 65532

// Variables of a pod's environment, for tare's first process in it.
const (
	EnvCoordinator = "TARE_COORDINATOR" // host:port
	EnvName        = "TARE_SANDBOX_NAME"
	EnvToken       = "TARE_SANDBOX_TOKEN"
	EnvAddress     = "TARE_POD_ADDRESS"
)

// Variables of a role that uses the cluster's API.
const (
	EnvStudy     = "TARE_STUDY"         // the study's id
	EnvImage     = "TARE_IMAGE"         // of tare
	EnvSpace     = "TARE_NAMESPACE"     // the study's namespace
	EnvNamespace = "TARE_NAMESPACE_UID" // its UID: what such a role makes belongs to it, and goes with it
	EnvNode      = "TARE_NODE"          // that it runs on
)

// LoadAccount is the name of the service account of such roles, of its ClusterRole and its ClusterRoleBinding.
func LoadAccount(study string) string { return "tare-" + study + "-load" }

// IdentityDir is where pods mount the Secret with the study's certificates.
const IdentityDir = "/run/tare"

// Ends is how long a pod may exist. A pod that nobody deletes ends then.
const Ends = 2 * time.Hour

// Study is what the pods of a study have in common.
type Study struct {
	ID, Namespace string
	UID           string // of the namespace; "" if studies share it
	Image         string // of tare, with its tools
	Coordinator   string // host:port
	Secret        string // with the agents' identity
	Images        map[string]Image
	Storage       []StorageClass // nil: not known
	Owner         *metav1.OwnerReference
	Tolerations   []corev1.Toleration // of all pods: those of a block share a node
	Machines      []record.Node
	Levels        map[string]string // names of the API server's priority levels, by UID; nil: not known
	Demands       []string          // resources that each pod must state, such as limits.cpu, by a quota of the namespace; Start of a pod that is not measured finds them
	ending        []<-chan error    // of the sandboxes that Try is stopping
}

// basic is a pod of tare's image, as the restricted Pod Security Standard wants it
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/).
func basic(meta metav1.ObjectMeta, image, secret string) *corev1.Pod {
	seconds := int64(Ends.Seconds())
	no, yes, user := false, true, int64(User)
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta,
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: &seconds,
			AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "tare", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				VolumeMounts:    []corev1.VolumeMount{{Name: "identity", MountPath: IdentityDir, ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"}},
			}},
			Volumes: []corev1.Volume{
				{Name: "identity", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
}

// notLong are tolerations that make Kubernetes evict a pod as soon as its node is lost, so that the trial fails for that reason and not
// because of its timeout. By default, Kubernetes waits for five minutes (the admission plugin DefaultTolerationSeconds).
func notLong() []corev1.Toleration {
	now := int64(0)
	return []corev1.Toleration{
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &now},
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &now},
	}
}

// manifest is the pod of a sandbox.
func (k *RuntimeClass) manifest(want *sandbox.Want, token string) *corev1.Pod {
	s := k.study
	p := basic(s.meta(want.Name, want), s.Image, s.Secret)
	p.Annotations = k.annotated(want.Options, s.processors(want.Node))
	if k.class != "" {
		p.Spec.RuntimeClassName = &k.class
	}
	p.Spec.NodeSelector = maps.Clone(k.set.nodeSelector)
	if want.Node != "" {
		if p.Spec.NodeSelector == nil {
			p.Spec.NodeSelector = map[string]string{}
		}
		p.Spec.NodeSelector[corev1.LabelHostname] = want.Node
	}
	p.Spec.Tolerations, p.Spec.PriorityClassName = append(slices.Clone(s.Tolerations), notLong()...), k.set.priority
	p.Spec.HostNetwork, p.Spec.HostPID, p.Spec.HostIPC = k.set.hostNetwork, k.set.hostNamespace, k.set.hostNamespace
	c := &p.Spec.Containers[0]
	c.Command = []string{"/tare", "internal", "pod"}
	c.Env = []corev1.EnvVar{{Name: EnvCoordinator, Value: s.Coordinator}, {Name: EnvName, Value: want.Name}, {Name: EnvToken, Value: token}, own()}
	if want.API {
		yes := true
		p.Spec.ServiceAccountName, p.Spec.AutomountServiceAccountToken = LoadAccount(s.ID), &yes
		c.Env = append(c.Env, corev1.EnvVar{Name: EnvStudy, Value: s.ID}, corev1.EnvVar{Name: EnvImage, Value: s.Image},
			corev1.EnvVar{Name: EnvSpace, Value: s.Namespace}, corev1.EnvVar{Name: EnvNamespace, Value: s.UID},
			field(EnvNode, "spec.nodeName"))
	}
	c.Resources = k.resources(want)
	switch {
	case want.Image != "":
		s.Images[want.Image].into(p, s.Image)
		c.Image = cmp.Or(want.Copy, c.Image)
	case want.Copy != "":
		c.Image = want.Copy
	}
	addVolumes(p, want)
	return p
}

// redacted stands for what is secret.
const redacted = "redacted"

// Manifest implements sandbox.Manifester. The token is left out.
func (k *RuntimeClass) Manifest(want sandbox.Want) ([]byte, error) { return kube.YAML(k.Pod(want)) }

// Pod is the pod of a sandbox, without its token.
func (k *RuntimeClass) Pod(want sandbox.Want) *corev1.Pod { return k.manifest(&want, redacted) }

// Coordinator returns the pod of the program that makes a study's trials. Its Secret contains its identity and
// its brief.
func Coordinator(meta metav1.ObjectMeta, image, secret string, port int32) *corev1.Pod {
	p := basic(meta, image, secret)
	p.Spec.ActiveDeadlineSeconds = nil // a study may take days; without a user, the coordinator ends
	p.Spec.ServiceAccountName = meta.Name
	p.Spec.AutomountServiceAccountToken = nil
	c := &p.Spec.Containers[0]
	c.Command = []string{"/tare", "internal", "coordinator"}
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(port)}}}
	return p
}

// Probe returns a pod of `tare doctor` on a node. It answers clients that know the token.
func Probe(meta metav1.ObjectMeta, image, node, token string, port int32) *corev1.Pod {
	p := plain(meta, image, "probe")
	p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	c := &p.Spec.Containers[0]
	c.Env = []corev1.EnvVar{{Name: EnvToken, Value: token}}
	c.ReadinessProbe = listens(port)
	return p
}

// Smallest returns a pod with a RuntimeClass that exits at once, on any node with room.
func Smallest(meta metav1.ObjectMeta, image, class string) *corev1.Pod {
	p := plain(meta, image, "noop")
	p.Spec.RuntimeClassName = &class
	return p
}

// Filler is a pod of the default runtime that waits on a node, as small as pods are.
func (s *Study) Filler(name, node string) *corev1.Pod {
	p := plain(s.meta(name, &sandbox.Want{Role: RoleFiller}), s.Image, "")
	delete(p.Labels, LabelTrial) // trials share it
	p.Spec.NodeSelector, p.Spec.Tolerations = map[string]string{corev1.LabelHostname: node}, s.Tolerations
	c := &p.Spec.Containers[0]
	p.Spec.Volumes, c.VolumeMounts, c.Command = nil, nil, []string{"/tare-pause"}
	return p
}

// Roles of pods that tare does not measure.
const (
	// RoleFiller is a pod that only takes a place on its node.
	RoleFiller = "filler"
	// RoleLook is a pod that shows which images its node has.
	RoleLook = "look"
)

// Look returns a pod with a container for each image. Its node pulls none of them. LooksAt reads the pod's status.
func (s *Study) Look(name, node string, images []string) *corev1.Pod {
	p := plain(s.meta(name, &sandbox.Want{Role: RoleLook}), s.Image, "")
	delete(p.Labels, LabelTrial) // trials share the result
	p.Spec.NodeSelector, p.Spec.Tolerations = map[string]string{corev1.LabelHostname: node}, s.Tolerations
	first := p.Spec.Containers[0]
	first.ImagePullPolicy, first.VolumeMounts, first.Command = corev1.PullNever, nil, []string{"/tare-hello"}
	p.Spec.Volumes, p.Spec.Containers = nil, nil
	for i, of := range images {
		c := *first.DeepCopy()
		c.Name, c.Image = fmt.Sprintf("look-%d", i), of
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

// LooksAt returns for each container of a Look whether its node has the image, once this is known for all containers. The kubelet
// reports ErrImageNeverPull for an image that the node lacks and that it must not pull, and starts the container otherwise
// (ErrImageNeverPull in k8s.io/kubernetes/pkg/kubelet/images).
func LooksAt(p *corev1.Pod) (has map[string]bool, known bool) {
	has = map[string]bool{}
	for _, s := range p.Status.ContainerStatuses {
		switch w := s.State.Waiting; {
		case w == nil:
			has[s.Name] = true
		case w.Reason == "ErrImageNeverPull":
			has[s.Name] = false
		case w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" && w.Reason != "":
			has[s.Name] = true // the node has the image, but the container cannot run
		}
	}
	return has, len(has) == len(p.Spec.Containers)
}

// plain is a pod without an identity, which runs one of tare's internal programs.
func plain(meta metav1.ObjectMeta, image, program string) *corev1.Pod {
	p := basic(meta, image, "")
	c := &p.Spec.Containers[0]
	p.Spec.Volumes, c.VolumeMounts = p.Spec.Volumes[1:], c.VolumeMounts[1:] // the identity is the first
	c.Command = []string{"/tare", "internal", program}
	return p
}

func listens(port int32) *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}}
}

// Observer returns the privileged pod that reads the figures of one node's pods (package observer). It
// sees the node's processes and control groups, and changes nothing. CAP_SYS_PTRACE is for
// /proc/PID/io and the memory maps of other users' processes (proc_pid_io(5)).
func Observer(meta metav1.ObjectMeta, node string, s Study, token string) *corev1.Pod {
	p := basic(meta, s.Image, s.Secret)
	no, yes, root := false, true, int64(0)
	p.Spec.HostPID = true
	p.Spec.ActiveDeadlineSeconds = nil // it ends when the coordinator is gone
	p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	p.Spec.SecurityContext.RunAsNonRoot, p.Spec.SecurityContext.RunAsUser, p.Spec.SecurityContext.RunAsGroup = &no, &root, &root
	c := &p.Spec.Containers[0]
	c.Command = []string{"/tare", "internal", "observer"}
	c.Env = []corev1.EnvVar{{Name: EnvCoordinator, Value: s.Coordinator}, {Name: EnvName, Value: observer.Name(node)}, {Name: EnvToken, Value: token}, own()}
	c.SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_PTRACE"}
	c.SecurityContext.ReadOnlyRootFilesystem = &yes
	const groups = "/sys/fs/cgroup"
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "cgroup", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: groups}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "cgroup", MountPath: groups, ReadOnly: true})
	return p
}

// own is the variable with the pod's address.
func own() corev1.EnvVar { return field(EnvAddress, "status.podIP") }

// field is a variable with a field of the pod.
func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// resources are the limits, requested as well unless a definition says otherwise: what runs is to have
// them. Without limits there are none: other pods' requests do not bound what a node's idle
// processors do.
func (k *RuntimeClass) resources(spec *sandbox.Want) corev1.ResourceRequirements {
	l := corev1.ResourceList{}
	if spec.CPULimit > 0 {
		l[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(math.Round(spec.CPULimit*1000)), resource.DecimalSI)
	}
	if spec.MemoryLimit > 0 {
		l[corev1.ResourceMemory] = *resource.NewQuantity(spec.MemoryLimit, resource.BinarySI)
	}
	asked := maps.Clone(l)
	maps.Copy(asked, k.set.request)
	return corev1.ResourceRequirements{Limits: l, Requests: asked}
}

// processors is how many a node has, 0 if that is not known.
func (s *Study) processors(node string) int {
	for _, n := range s.Machines {
		if n.Name == node {
			return n.Host.Threads
		}
	}
	return 0
}
