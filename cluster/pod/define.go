package pod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"tare/cluster/kube"
	"tare/param"
	"tare/sandbox"
	"tare/sizing"
)

// Word is the value of the key kind in a definition.
const Word = "pod"

// Keys of a definition.
const (
	keyClass        = "class"
	keyAnnotations  = "annotations"
	keyNodeSelector = "node-selector"
	keyTolerations  = "tolerations"
	keyPriority     = "priority"
	keyNetwork      = "network"
	keyNamespaces   = "namespaces"
	keyNetworks     = "networks"
	keyRequest      = "request"
)

// Words of the keys network and namespaces.
const (
	onPodNetwork = "pod"
	ofPod        = "pod"
	ofHost       = "host"
)

// settings are what a definition says of a pod, beside its class.
type settings struct {
	annotations   []annotation
	nodeSelector  map[string]string
	tolerations   []corev1.Toleration
	priority      string
	hostNetwork   bool
	hostNamespace bool // of processes and of IPC
	request       corev1.ResourceList
}

// annotation is one of a pod. Its value is a text, or the level of a factor.
type annotation struct {
	name, value string
	param       param.Param // Name "": value holds
	numbers     bool        // a level is a number of processors or a size, as Kata has it
}

// networksAnnotation asks Multus for more networks, statusAnnotation has what it gave
// (https://github.com/k8snetworkplumbingwg/multi-net-spec).
const (
	networksAnnotation = "k8s.v1.cni.cncf.io/networks"
	statusAnnotation   = "k8s.v1.cni.cncf.io/network-status"
)

// Base implements sandbox.Definable.
func (*RuntimeClass) Base() (word, about string) {
	return Word, "a pod on a Kubernetes cluster (--on k8s)"
}

// Keys implements sandbox.Definable.
func (*RuntimeClass) Keys() []param.Param {
	return []param.Param{
		{Name: keyClass, Type: param.String, Valid: validClass, Help: "RuntimeClass; without it, the cluster's default runtime"},
		{Name: keyAnnotations, Type: param.Map, Valid: validAnnotation, Help: "annotations of the pod; a value $NAME stands for the level of the factor NAME, which this sandbox then has"},
		{Name: keyNodeSelector, Type: param.Map, Valid: validLabel, Help: "labels that every node of the study must have"},
		{Name: keyTolerations, Type: param.List, Valid: func(t string) error { _, err := toleration(t); return err }, Help: "taints, KEY[=VALUE][:EFFECT], that all pods of the study tolerate"},
		{Name: keyPriority, Type: param.String, Valid: validClass, Help: "PriorityClass"},
		{Name: keyNetwork, Type: param.Enum, Default: onPodNetwork, Words: []string{onPodNetwork, ofHost}, Help: "the pod's own network, or the node's"},
		{Name: keyNamespaces, Type: param.Enum, Default: ofPod, Words: []string{ofPod, ofHost}, Help: "the pod's own process and IPC namespaces, or the node's"},
		{Name: keyNetworks, Type: param.List, Valid: validNetwork, Help: "additional networks from Multus, [NAMESPACE/]NAME[@INTERFACE]; the ends of a workload meet on the first"},
		{Name: keyRequest, Type: param.Map, Valid: validRequest, Help: "requests of cpu and memory; without it, the limits"},
	}
}

// Define implements sandbox.Definable.
func (k *RuntimeClass) Define(name string, keys param.Values) (sandbox.Kind, error) {
	d := *k
	d.name, d.class, d.handler = name, keys.Str(keyClass), keys.Str(keyClass)
	if k.classes != nil && d.class != "" {
		i := slices.IndexFunc(k.classes, func(c Class) bool { return c.Class == d.class })
		if i < 0 {
			return nil, fmt.Errorf("%s %q is not on the cluster; %s", keyClass, d.class, param.Suggest(d.class, classNames(k.classes)))
		}
		d.handler = k.classes[i].Handler
	}
	s := settings{
		nodeSelector: keys.Map(keyNodeSelector), priority: keys.Str(keyPriority),
		hostNetwork: keys.Str(keyNetwork) == ofHost, hostNamespace: keys.Str(keyNamespaces) == ofHost,
	}
	given := keys.Map(keyAnnotations)
	if n := keys.List(keyNetworks); len(n) > 0 {
		if given[networksAnnotation] != "" {
			return nil, fmt.Errorf("%s and %s both set networks; leave one of them out", keyAnnotations, keyNetworks)
		}
		given[networksAnnotation] = strings.Join(n, ",")
	}
	for _, of := range slices.Sorted(maps.Keys(given)) {
		s.annotations = append(s.annotations, made(of, given[of]))
	}
	for _, t := range keys.List(keyTolerations) {
		one, err := toleration(t)
		if err != nil {
			return nil, err
		}
		s.tolerations = append(s.tolerations, one)
	}
	for of, text := range keys.Map(keyRequest) {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", keyRequest, of, err)
		}
		if s.request == nil {
			s.request = corev1.ResourceList{}
		}
		s.request[corev1.ResourceName(of)] = q
	}
	switch {
	case s.hostNetwork && sizing.IsKata(d.class):
		return nil, fmt.Errorf("%s %s: a virtual machine cannot use the node's network; write %s: %s", keyNetwork, ofHost, keyNetwork, onPodNetwork)
	case s.hostNetwork && given[networksAnnotation] != "":
		return nil, fmt.Errorf("%s %s: such a pod gets no other networks; leave out %s", keyNetwork, ofHost, keyNetworks)
	}
	d.set = s
	return &d, nil
}

// ClassOf is the RuntimeClass that a definition names; "" for none.
func ClassOf(keys param.Values) string { return keys.Str(keyClass) }

// made reads an annotation's value: $NAME is a factor, $$ begins a text with $.
func made(name, value string) annotation {
	a := annotation{name: name, value: value}
	switch factor, is := strings.CutPrefix(value, "$"); {
	case is && strings.HasPrefix(factor, "$"):
		a.value = factor
	case is:
		a.param = param.Param{Name: factor, Type: param.String, Help: "annotation " + name}
	}
	return a
}

// Host reports whether the kind's pods share the node's network or its other namespaces.
func (k *RuntimeClass) Host() (network, any bool) {
	return k.set.hostNetwork, k.set.hostNetwork || k.set.hostNamespace
}

// Wants returns what the kind's pods require of their nodes.
func (k *RuntimeClass) Wants() (selector map[string]string, tolerations []corev1.Toleration) {
	selector = maps.Clone(k.set.nodeSelector)
	for _, c := range k.classes {
		if c.Class == k.class && k.class != "" {
			if selector == nil {
				selector = map[string]string{}
			}
			maps.Copy(selector, c.Nodes)
		}
	}
	return selector, k.set.tolerations
}

// Params implements sandbox.Kind: those of volumes, those of Kata, if the class is named after it, and the factors of
// the definition. The name alone decides, so that results mean the same without the cluster.
func (k *RuntimeClass) Params() []param.Param {
	var out []param.Param
	for _, a := range k.annotations() {
		if _, twice := param.Find(out, a.param.Name); a.param.Name != "" && !twice {
			out = append(out, a.param)
		}
	}
	return append(out, k.storageParams()...)
}

// annotations are those of the definition, and of Kata where the definition does not say.
func (k *RuntimeClass) annotations() []annotation {
	out := slices.Clone(k.set.annotations)
	if sizing.IsKata(k.class) {
		for _, a := range ofKata() {
			if !slices.ContainsFunc(out, func(o annotation) bool { return o.name == a.name }) {
				out = append(out, a)
			}
		}
	}
	return out
}

// annotated are the annotations of a pod with these options, on a node with so many processors: 0 if
// that is not known. An annotation whose factor is not set is left out.
func (k *RuntimeClass) annotated(options map[string]string, processors int) map[string]string {
	out := map[string]string{}
	for _, a := range k.annotations() {
		v := a.value
		if a.param.Name != "" {
			v = options[a.param.Name]
		}
		switch {
		case a.numbers && v == configured || v == "" && a.param.Name != "":
			continue
		case a.numbers && (v == everyone || v == "-1") && processors > 0:
			v = strconv.Itoa(processors)
		}
		out[a.name] = v
	}
	return out
}

// CheckOptions implements sandbox.Chooser.
func (k *RuntimeClass) CheckOptions(options map[string]string) error {
	for _, p := range k.Params() {
		if p.Default == "" && options[p.Name] == "" {
			return fmt.Errorf("%s: an annotation uses this factor, and the study does not have it; write factors: {%s: [...]}", p.Name, p.Name)
		}
	}
	if err := checkClass(options); err != nil {
		return err
	}
	if sizing.IsKata(k.class) && options[factorVCPUs] == "0" {
		return fmt.Errorf("%s = 0: a virtual machine boots with at least one vCPU; write 1 or more, or %s", factorVCPUs, configured)
	}
	return nil
}

// CheckHere implements sandbox.Chooser. It checks that the pod can have its volumes, and that a node of the study has room for it.
func (k *RuntimeClass) CheckHere(ctx context.Context, spec sandbox.Spec) error {
	if err := k.checkVolumes(ctx, spec); err != nil {
		return err
	}
	if len(k.study.Machines) == 0 {
		return nil
	}
	processors, memory := 0, int64(0)
	for _, n := range k.study.Machines {
		processors, memory = max(processors, n.Host.Threads), max(memory, n.Host.MemoryBytes)
	}
	r, pods := k.resources(&spec.Want), int64(spec.Beside+1)
	if lacks := without(r, k.study.Demands); lacks != "" {
		return fmt.Errorf("a ResourceQuota of namespace %s refuses pods without %s; write factors: {cpu-limit: [1], memory-limit: [1GiB]}, or leave -n out, and each study creates its own namespace", k.study.Namespace, lacks)
	}
	if asked := r.Requests.Cpu(); asked.MilliValue()*pods > int64(processors)*1000 {
		return fmt.Errorf("a request of %s cores%s does not fit: the largest node of the study has %d; give a smaller cpu-limit, or %s: {cpu: ...} in a definition", asked, times(pods), processors, keyRequest)
	}
	if asked := r.Requests.Memory(); asked.Value()*pods > memory {
		return fmt.Errorf("a request of %s memory%s does not fit: the largest node of the study has %s; give a smaller memory-limit, or %s: {memory: ...} in a definition", asked, times(pods), param.FormatSize(memory), keyRequest)
	}
	for _, of := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := r.Limits[of]
		if asked := r.Requests[of]; limited && asked.Cmp(limit) > 0 {
			return fmt.Errorf("a request of %s %s is more than the limit of %s; request less, or leave the level out", asked.String(), of, limit.String())
		}
	}
	for _, a := range k.annotations() {
		if n, err := strconv.Atoi(spec.Options[a.param.Name]); a.numbers && a.param.Name != factorMemory && err == nil && n > processors {
			return fmt.Errorf("%s = %d: Kata allows no more vCPUs than the node has processors, here at most %d; leave the level out", a.param.Name, n, processors)
		}
	}
	return nil
}

// times says that a trial has several such pods.
func times(pods int64) string {
	if pods < 2 {
		return ""
	}
	return fmt.Sprintf(" for each of %d pods", pods)
}

// hint adds to the API server's refusal of a pod what would allow it.
func (k *RuntimeClass) hint(err error, want *sandbox.Want) error {
	if why := k.insecure(err, want); why != nil {
		return why
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || kube.IsGone(err) {
		return namespaceGone(k.study.Namespace)
	}
	return err
}

// namespaceGone says that the namespace of the study is being deleted. No sandbox is to blame for that: it is as if all nodes were lost.
type namespaceGone string

func (n namespaceGone) Error() string {
	return fmt.Sprintf("namespace %s, in which the study runs, is being deleted", string(n))
}

// Is reports whether target is sandbox.ErrNodeLost.
func (namespaceGone) Is(target error) bool { return target == sandbox.ErrNodeLost }

var factorPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,62}$`)

func validClass(text string) error { return wrong(text, validation.IsDNS1123Subdomain(text)) }

func validAnnotation(text string) error {
	name, value, _ := strings.Cut(text, "=")
	if err := wrong(name, validation.IsQualifiedName(strings.ToLower(name))); err != nil {
		return err
	}
	if f, is := strings.CutPrefix(value, "$"); is && !strings.HasPrefix(f, "$") && !factorPattern.MatchString(f) {
		return fmt.Errorf("%q does not name a factor; write $NAME with letters, digits, - and _, or $$ for a text that begins with $", value)
	}
	return nil
}

func validLabel(text string) error {
	name, value, _ := strings.Cut(text, "=")
	return errors.Join(wrong(name, validation.IsQualifiedName(name)), wrong(value, validation.IsValidLabelValue(value)))
}

func validNetwork(text string) error {
	name, in, _ := strings.Cut(text, "@")
	space, name, has := cutLast(name, "/")
	switch {
	case in != "" && !regexp.MustCompile(`^[a-z0-9.-]{1,15}$`).MatchString(in):
		return fmt.Errorf("%q cannot name an interface; write [NAMESPACE/]NAME[@INTERFACE]", in)
	case has && len(validation.IsDNS1123Label(space)) > 0:
		return fmt.Errorf("%q cannot be a namespace; write [NAMESPACE/]NAME[@INTERFACE]", space)
	}
	return wrong(name, validation.IsDNS1123Subdomain(name))
}

func validRequest(text string) error {
	name, value, _ := strings.Cut(text, "=")
	if name != string(corev1.ResourceCPU) && name != string(corev1.ResourceMemory) {
		return fmt.Errorf("%q cannot be requested; write cpu or memory", name)
	}
	if q, err := resource.ParseQuantity(value); err != nil || q.Sign() < 0 {
		return fmt.Errorf("%q is not a quantity; write one such as 500m or 1Gi", value)
	}
	return nil
}

// toleration reads a taint, as kubectl writes it.
func toleration(text string) (corev1.Toleration, error) {
	t := corev1.Toleration{Operator: corev1.TolerationOpExists}
	taint, effect, has := cutLast(text, ":")
	if !has {
		taint, effect = text, ""
	}
	key, value, equal := strings.Cut(taint, "=")
	if t.Key, t.Effect = key, corev1.TaintEffect(effect); equal {
		t.Operator, t.Value = corev1.TolerationOpEqual, value
	}
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if !slices.Contains(effects, t.Effect) {
		return t, fmt.Errorf("%q is not a taint effect; write NoSchedule or NoExecute, or leave it out for all", effect)
	}
	return t, errors.Join(wrong(key, validation.IsQualifiedName(key)), wrong(value, validation.IsValidLabelValue(value)))
}

// cutLast is strings.Cut at the last sep. Without one, all is after it.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// wrong makes an error of what Kubernetes says of a name.
func wrong(text string, why []string) error {
	if len(why) == 0 {
		return nil
	}
	first, _, _ := strings.Cut(why[0], " (e.g.")
	return fmt.Errorf("%q is not valid; %s", text, first)
}

func classNames(classes []Class) []string {
	var out []string
	for _, c := range classes {
		if c.Class != "" {
			out = append(out, c.Class)
		}
	}
	return out
}

var (
	_ sandbox.Launcher  = (*RuntimeClass)(nil)
	_ sandbox.Definable = (*RuntimeClass)(nil)
	_ sandbox.Chooser   = (*RuntimeClass)(nil)
)
