package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/record"
	"tare/sandbox"
	"tare/site"
	"tare/workload"
)

// fit is how a study fits in the bounds of the namespace of -n, and on its nodes.
type fit struct {
	skips  []record.Skip // cells whose pods a ResourceQuota refuses, because they state too little
	atMost int           // trials, or blocks that take turns, at the same time; 0: all that there are machines for
	alone  []string      // keys of strata whose trials take no turns: the pods of a block have no room together
	notes  []string      // for the user
}

// Fits returns an error if a trial of a study never fits in the namespace of -n, and tells the user what its bounds, and those of the
// nodes, change.
func (s *Site) Fits(ctx context.Context, r site.Request, loads map[string]workload.Workload) error {
	on, err := s.choose(r.Study)
	if err != nil {
		return &site.UnableError{Err: err}
	}
	f, err := s.fits(ctx, r, loads, &on)
	if err != nil {
		return &site.UnableError{Err: err}
	}
	for _, n := range f.notes {
		s.Say("%s", n)
	}
	return nil
}

// fits compares what a study asks of the namespace of -n with its ResourceQuotas and LimitRanges, and what blocks in turns ask of the
// nodes with what these have, before anything is made there.
func (s *Site) fits(ctx context.Context, r site.Request, loads map[string]workload.Workload, on *chosen) (out fit, err error) {
	b, err := s.bounds(ctx)
	if err != nil || len(b.quotas)+len(b.ranges) == 0 && !inTurns(r.Study) {
		return out, err
	}
	always := s.always(&b, on.nodes, on.tolerations)
	for _, p := range always.pods {
		if why := b.refuses(p.one); why != "" {
			return out, fmt.Errorf("%s; it is a pod of tare's own, so use another namespace (-n)", why)
		}
	}
	asks, err := s.asks(r, loads, on, &b)
	if err != nil {
		return out, err
	}
	trials, gives, given := map[string]*cellAsk{}, corev1.ResourceList{}, 0
	for _, a := range asks {
		own := r.Study.Sentinel == nil || r.Study.Sentinel.Cell.Key() != a.cell.Key()
		switch {
		case a.refused != "":
			return fit{}, fmt.Errorf("%s (%s); write another cpu-limit, memory-limit or claim-size, or use another namespace (-n)", a.refused, a.cell)
		case a.lacks != "" && !own:
			out.skips = append(out.skips, record.Skip{Cell: a.cell, Reason: a.lacks + ", and the sentinel's pod states nothing"})
		case a.lacks != "":
			out.skips = append(out.skips, record.Skip{Cell: a.cell, Reason: a.lacks + "; write " + a.remedy + ", or use another namespace (-n)"})
		default:
			trials[a.cell.Key()] = a
		}
		if own && a.lacks == "" && len(a.gives) > 0 {
			given++
			maps.Copy(gives, a.gives)
		}
	}
	if len(asks) > 0 && len(trials) == 0 {
		return fit{}, errors.New(out.skips[0].Reason)
	}
	if given > 0 {
		out.notes = append(out.notes, fmt.Sprintf("a LimitRange of namespace %s gives pods that state no limit %s, those of process too: it counts in %d cells of the study, which does not ask for it; set cpu-limit and memory-limit in the study, or use another namespace (-n)",
			s.Namespace, list(gives), given))
	}
	alone, notes, err := s.alone(ctx, r, trials, always, on)
	if err != nil {
		return fit{}, err
	}
	out.alone, out.notes = alone, append(out.notes, notes...)
	needs := needsOf(r, trials, alone)
	if short := b.short(always, needs); len(short) > 0 {
		return fit{}, errors.New(strings.Join(short, "; "))
	}
	most := s.machines(on.nodes)
	n, because := most, ""
	for _, need := range needs {
		if k, why := b.times(always, need.ask, n); k < n {
			n, because = k, why
		}
	}
	if n < most {
		out.atMost = n
		out.notes = append(out.notes, fmt.Sprintf("%s, which leaves room for %d of %d trials at the same time, so the study takes longer; raise the quota to measure on all machines at once", because, n, most))
	}
	return out, nil
}

// machines are how many trials run at the same time if nothing limits them (site/ahead).
func (s *Site) machines(nodes []record.Node) int {
	if s.AtOnce > 0 {
		return min(s.AtOnce, len(nodes))
	}
	on := map[string]bool{}
	for i := range nodes {
		on[nodes[i].On()] = true
	}
	return len(on)
}

// always is what a study has in the namespace until it ends: its coordinator, and its observers.
func (s *Site) always(b *bounds, nodes []record.Node, tolerations []corev1.Toleration) (out ask) {
	var d deployment
	d.name(someID, s.Namespace)
	brief := Brief{Image: s.Image, Nodes: nodes, Tolerations: tolerations}
	objects := []kube.Object{elsewhere(pod.Coordinator(d.meta(someID), s.Image, "", holdPort), brief)}
	if s.Observe {
		objects = append(objects, d.observers(brief, someAddress, nil)...)
	}
	for _, o := range objects {
		if p, is := o.(*corev1.Pod); is {
			out.pods = append(out.pods, several[*corev1.Pod]{b.admitted(p), 1})
		}
	}
	return out
}

// cellAsk is what the trials of a cell ask of a namespace.
type cellAsk struct {
	ask
	cell    record.Cell
	gives   corev1.ResourceList // limits that only a LimitRange states
	lacks   string              // why a quota refuses a pod of it
	remedy  string              // the setting of a study that states it
	refused string              // why a LimitRange does
}

// asks finds what each cell of a study asks of the namespace.
func (s *Site) asks(r site.Request, loads map[string]workload.Workload, on *chosen, b *bounds) (out []*cellAsk, err error) {
	st := &pod.Study{ID: someID, Namespace: s.Namespace, Image: s.Image, Coordinator: someAddress, Secret: agentSecret(someID), Tolerations: on.tolerations, Machines: on.nodes}
	planned, kinds, _, err := s.planned(r, loads, st)
	if err != nil {
		return nil, err
	}
	byCell := map[string]*cellAsk{}
	for i := range planned {
		p := &planned[i]
		a := byCell[p.Cell.Key()]
		if a == nil {
			a = &cellAsk{cell: p.Cell, gives: corev1.ResourceList{}}
			byCell[p.Cell.Key()] = a
			out = append(out, a)
		}
		k, _ := kinds[p.Kind].(sandbox.Manifester) // planned has no others
		made, err := objectsOf(k, p.Want)
		if err != nil {
			return nil, err
		}
		for _, c := range st.Claims(&p.Want) {
			made = append(made, c)
		}
		for _, o := range made {
			a.add(o, int64(p.Many), s.classes, b)
		}
		if fill := fillersOf(on.pods[p.Want.Node], p.Fill); fill > 0 {
			a.pods = append(a.pods, several[*corev1.Pod]{b.admitted(st.Filler(someID, p.Want.Node)), int64(fill)})
		}
	}
	return out, nil
}

// add adds an object of which a trial has so many.
func (a *cellAsk) add(o kube.Object, many int64, classes []pod.Class, b *bounds) {
	switch o := o.(type) {
	case *corev1.PersistentVolumeClaim:
		a.claims = append(a.claims, several[*corev1.PersistentVolumeClaim]{o, 1}) // the sandboxes of a role share them
		if a.refused == "" {
			a.refused = b.refusesClaim(o)
		}
	case *kubevirtv1.VirtualMachineInstance:
		// KubeVirt decides what the launcher's pod states. It is not less than this.
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: o.Spec.NodeSelector, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Limits: o.Spec.Domain.Resources.Limits, Requests: maps.Clone(o.Spec.Domain.Resources.Requests),
		}}}}}
		if m := o.Spec.Domain.Memory; m != nil && m.Guest != nil && p.Spec.Containers[0].Resources.Requests.Memory().Cmp(*m.Guest) < 0 {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = *m.Guest
		}
		a.pods = append(a.pods, several[*corev1.Pod]{p, many})
	case *corev1.Pod:
		p, gives := b.filledIn(o)
		maps.Copy(a.gives, gives)
		for _, c := range classes {
			if n := p.Spec.RuntimeClassName; n != nil && c.Class == *n {
				p.Spec.Overhead = c.Overhead
			}
		}
		for i := range b.quotas {
			if d := demandsOf(&b.quotas[i], p); len(d) > 0 && a.lacks == "" {
				a.lacks, a.remedy = a.lacking(&b.quotas[i], d, b.namespace)
			}
		}
		if a.refused == "" && a.lacks == "" {
			a.refused = b.refuses(p)
		}
		a.pods = append(a.pods, several[*corev1.Pod]{p, many})
	}
}

// lacking says that a quota demands something that a pod of the cell does not state, and how a study states it.
func (a *cellAsk) lacking(q *corev1.ResourceQuota, demands []string, namespace string) (what, remedy string) {
	remedy = settingOf(demands)
	if slices.ContainsFunc(a.pods, func(p several[*corev1.Pod]) bool { return len(demandsOf(q, p.one)) == 0 }) {
		remedy = "isolate: both for the workload, so that the limits count for both of its ends"
	}
	return fmt.Sprintf("ResourceQuota %s of namespace %s refuses pods that state no %s", q.Name, namespace, strings.Join(demands, ", ")), remedy
}

// need is what a trial asks of a namespace, or the trials of a block that take turns.
type need struct {
	ask
	what string
}

// needsOf are those of a study's trials. Trials of the strata in alone take no turns.
func needsOf(r site.Request, trials map[string]*cellAsk, alone []string) (out []need) {
	if s := r.Study.Sentinel; s != nil && trials[s.Cell.Key()] != nil {
		out = append(out, need{trials[s.Cell.Key()].ask, s.Cell.String()})
	}
	for i := range r.Study.Strata {
		w := r.Study.WorkloadOf(i)
		block := need{what: "the trials of " + r.Study.Strata[i].Key + " take turns"}
		for _, cell := range r.Study.Strata[i].Cells {
			a := trials[cell.Key()]
			switch {
			case a == nil:
			case w.Turns > 0 && !slices.Contains(alone, r.Study.Strata[i].Key):
				block.ask = block.and(a.ask)
			default:
				out = append(out, need{a.ask, cell.String()})
			}
		}
		if len(block.pods) > 0 {
			out = append(out, block)
		}
	}
	return out
}

// short says which resources of the quotas never have room for a trial; nil: all have.
func (b *bounds) short(always ask, trials []need) (out []string) {
	for i := range b.quotas {
		q := &b.quotas[i]
		for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
			most, what := resource.Quantity{}, ""
			for _, t := range trials {
				if all := always.and(t.ask).of(q, name); all.Cmp(most) > 0 {
					most, what = all, t.what
				}
			}
			if most.Cmp(room(q, name)) <= 0 {
				continue
			}
			raise := q.Status.Used[name].DeepCopy()
			raise.Add(most)
			out = append(out, fmt.Sprintf("%s; this study needs %s at once (%s); raise it to %s, or use another namespace (-n)", b.use(q, name), most.String(), what, raise.String()))
		}
	}
	return out
}

// use says how much of a resource of a quota is used.
func (b *bounds) use(q *corev1.ResourceQuota, name corev1.ResourceName) string {
	hard, used := q.Spec.Hard[name], q.Status.Used[name]
	return fmt.Sprintf("%s%s %s of %s used", b.of(q), name, used.String(), hard.String())
}

// of names a quota.
func (b *bounds) of(q *corev1.ResourceQuota) string {
	return fmt.Sprintf("namespace %s has quota %s: ", b.namespace, q.Name)
}

// times is how many trials have room at the same time, at most so many. because names the quota if they are fewer.
func (b *bounds) times(always, trial ask, most int) (n int, because string) {
	n = most
	for i := range b.quotas {
		q := &b.quotas[i]
		for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
			for ; n > 1; n-- {
				all := trial.of(q, name)
				all.Mul(int64(n))
				all.Add(always.of(q, name))
				if all.IsZero() || all.Cmp(room(q, name)) <= 0 {
					break
				}
				because = b.use(q, name)
			}
		}
	}
	return n, because
}

// findBounds finds what bounds studies in the namespace of -n, and whether the smallest study has room: one with a pod at a time.
func (s *Site) findBounds(ctx context.Context) (out []Finding) {
	b, err := s.bounds(ctx)
	if err != nil {
		return cannotList(AreaQuota, err)
	}
	always := s.always(&b, s.untainted(), nil)
	least := need{always, "one pod beside the coordinator"} // as if another coordinator were measured
	least.pods = least.pods[:1]
	short := b.short(always, []need{least})
	for i := range b.quotas {
		q := &b.quotas[i]
		var uses, lacks []string
		for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
			hard, used := q.Spec.Hard[name], q.Status.Used[name]
			uses = append(uses, fmt.Sprintf("%s %s of %s used", name, used.String(), hard.String()))
		}
		f := Finding{Area: AreaQuota, Name: q.Name, Detail: strings.Join(uses, ", ")}
		p, _ := b.filledIn(&corev1.Pod{Spec: corev1.PodSpec{ActiveDeadlineSeconds: new(int64), Containers: make([]corev1.Container, 1)}})
		if lacks = demandsOf(q, p); len(lacks) > 0 {
			f.Detail += fmt.Sprintf("; it refuses pods that state no %s, so a study needs %s", strings.Join(lacks, ", "), settingOf(lacks))
		}
		for _, why := range short {
			if strings.HasPrefix(why, b.of(q)) {
				f.Err = errors.New(why)
			}
		}
		out = append(out, f)
	}
	for i := range b.ranges {
		out = append(out, Finding{Area: AreaQuota, Name: b.ranges[i].Name, Detail: inWords(&b.ranges[i])})
	}
	return out
}

// inWords is what a LimitRange does.
func inWords(r *corev1.LimitRange) string {
	var out []string
	for _, item := range r.Spec.Limits {
		a := strings.ToLower(string(item.Type))
		if item.Type == corev1.LimitTypeContainer && len(item.Default) > 0 {
			out = append(out, fmt.Sprintf("gives a container that states no limits %s: set cpu-limit and memory-limit in a study, or its results show these limits", list(item.Default)))
		}
		if len(item.Min) > 0 {
			out = append(out, fmt.Sprintf("demands at least %s of a %s", list(item.Min), a))
		}
		if len(item.Max) > 0 {
			out = append(out, fmt.Sprintf("allows at most %s to a %s", list(item.Max), a))
		}
	}
	return "LimitRange: " + strings.Join(out, "; ")
}
