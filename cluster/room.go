package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"tare/record"
	"tare/site"
	"tare/study"
)

// The pods of a block in turns all run at the same time, on one node. If the node has no room for all of them, some would never be
// scheduled. So the cluster makes the trials of such a block one after another. The plan does not hear of that: it asks for the same
// trials, and each has all its turns. So a study that is resumed has the same plan, whatever room its nodes have then.

// inTurns reports whether trials of a study take turns.
func inTurns(st *study.Study) bool {
	for i := range st.Strata {
		if st.WorkloadOf(i).Turns > 0 {
			return true
		}
	}
	return false
}

// scarce is a resource that nodes lack for some blocks in turns.
type scarce struct {
	most    resource.Quantity // that such a block requests of one node
	differ  bool              // others request less
	node    string            // which has least
	left    resource.Quantity
	strata  []int
	setting string
}

// alone returns the keys of the strata whose trials would take turns, but whose pods have no room on some node together, and notes
// about them. Blocks of a stratum run on several nodes, and all are measured in the same way.
func (s *Site) alone(ctx context.Context, r site.Request, trials map[string]*cellAsk, always ask, on *chosen) (keys, notes []string, err error) {
	resources := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	lacks := []scarce{{setting: study.FactorCPULimit}, {setting: study.FactorMemoryLimit}}
	var rooms map[string]corev1.ResourceList // read only if something is requested
	for i := range r.Study.Strata {
		block, cells := ask{}, 0
		for _, cell := range r.Study.Strata[i].Cells {
			if a := trials[cell.Key()]; a != nil {
				block, cells = block.and(a.ask), cells+1
			}
		}
		if r.Study.WorkloadOf(i).Turns < 1 || cells < 2 {
			continue
		}
		for k, of := range resources {
			asked := block.ofNode(of)
			if asked.IsZero() {
				continue
			}
			if rooms == nil {
				if rooms, err = s.rooms(ctx, always, on); err != nil {
					return nil, nil, err
				}
			}
			node, left := tightest(on.nodes, rooms, of)
			if node == "" || asked.Cmp(left) <= 0 {
				continue
			}
			l := &lacks[k]
			l.node, l.left = node, left
			l.differ = l.differ || len(l.strata) > 0 && asked.Cmp(l.most) != 0
			if asked.Cmp(l.most) > 0 {
				l.most = asked
			}
			l.strata = append(l.strata, i)
			keys = append(keys, r.Study.Strata[i].Key)
			break
		}
	}
	for k := range lacks {
		if len(lacks[k].strata) > 0 {
			notes = append(notes, lacks[k].note(r.Study))
		}
	}
	return keys, notes, nil
}

// note says what it means for a study.
func (l *scarce) note(st *study.Study) string {
	asked, left := amount(l.most, l.left, l.setting == study.FactorCPULimit)
	if l.differ {
		asked = "up to " + asked
	}
	const most = 6 // named
	names := namesOf(st, l.strata)
	of := strings.Join(names[:min(most, len(names))], ", ")
	if n := len(names) - most; n > 0 {
		of += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("the pods of a block in turns request %s and %s has %s left, so the trials of %s run one after another; lower %s or leave turns out", asked, l.node, left, of, l.setting)
}

// namesOf are the labels of workloads whose strata are all among these, and the keys of other strata.
func namesOf(st *study.Study, strata []int) (out []string) {
	for _, i := range strata {
		label := st.WorkloadOf(i).Label
		name := label
		for k := range st.Strata {
			if st.WorkloadOf(k).Label == label && !slices.Contains(strata, k) {
				name = strings.TrimPrefix(st.Strata[i].Key, study.FactorWorkload+"=")
			}
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// amount is what is requested and what is left, rounded so that more is requested than left.
func amount(asked, left resource.Quantity, cpu bool) (string, string) {
	if cpu {
		cores := func(q resource.Quantity) string {
			return strconv.FormatFloat(float64(q.MilliValue())/1000, 'f', -1, 64)
		}
		unit := " CPUs"
		if cores(asked) == "1" {
			unit = " CPU"
		}
		return cores(asked) + unit, cores(left)
	}
	const mebi = 1 << 20
	return fmt.Sprintf("%d MiB of memory", (asked.Value()+mebi-1)/mebi), fmt.Sprintf("%d MiB", left.Value()/mebi)
}

// ofNode is the most that pods request of one node.
func (a ask) ofNode(of corev1.ResourceName) (most resource.Quantity) {
	by := map[string]resource.Quantity{}
	for _, p := range a.pods {
		on, all := p.one.Spec.NodeSelector[corev1.LabelHostname], ofPod(p.one, of)
		all.Mul(p.n)
		all.Add(by[on])
		by[on] = all
		if all.Cmp(most) > 0 {
			most = all
		}
	}
	return most
}

// tightest is the node that has least left of a resource; "" if none says what it has.
func tightest(nodes []record.Node, rooms map[string]corev1.ResourceList, of corev1.ResourceName) (node string, left resource.Quantity) {
	for i := range nodes {
		if has, known := rooms[nodes[i].Name][of]; known && (node == "" || has.Cmp(left) < 0) {
			node, left = nodes[i].Name, has
		}
	}
	return node, left
}

// rooms are what the nodes of a study can allocate, less what the pods there request, and those that the study has until it ends. If
// the user may not list the pods of other namespaces, these do not count.
func (s *Site) rooms(ctx context.Context, always ask, on *chosen) (map[string]corev1.ResourceList, error) {
	out := map[string]corev1.ResourceList{}
	names, beside := on.names(), false
	for _, n := range s.ready {
		beside = beside || !slices.Contains(names, describe(n).Name) && suits(n, nil, on.tolerations)
	}
	for _, n := range s.ready {
		name := describe(n).Name
		if !slices.Contains(names, name) {
			continue
		}
		there, err := s.api.PodsOn(ctx, n.Name)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("cannot list the pods of node %s: %w", n.Name, explained(err, s.Namespace))
		}
		var pods []*corev1.Pod
		for i := range there {
			if p := &there[i]; p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
				pods = append(pods, p)
			}
		}
		for _, p := range always.pods { // the coordinator, which is elsewhere if it can be, names no node
			if at := p.one.Spec.NodeSelector[corev1.LabelHostname]; at == name || at == "" && !beside {
				pods = append(pods, p.one)
			}
		}
		out[name] = corev1.ResourceList{}
		for _, of := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			left, known := n.Status.Allocatable[of]
			if !known {
				continue
			}
			left = left.DeepCopy()
			for _, p := range pods {
				left.Sub(ofPod(p, of))
			}
			if left.Sign() < 0 {
				left = resource.Quantity{}
			}
			out[name][of] = left
		}
	}
	return out, nil
}
