package objects

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"tare/workload/objects"
)

// claim is a claim that the load follows. Its times are the client's, except those of its program.
type claim struct {
	due, removal time.Time            // when its creation and its deletion were due
	at           map[string]time.Time // when it reached each stage (workload/objects)
	volume, node string               // node: of its pod
	ran, ended   time.Time            // when the watch reported that the pod runs, and that its program ended
	wrote        wrote
	usable, gone chan struct{} // closed when the claim is usable or gone, or never will be
	failed       bool          // the API server refused it
	consumer     bool          // it has a pod
	late         bool          // it is bound only when a pod uses it
	missing      string        // the first stage that it must still reach (summary.go)
}

// wrote is the report of the program in a claim's pod: nanoseconds since 1970, by the node's clock.
type wrote struct {
	Started int64 `json:"started"`
	Written int64 `json:"written"`
}

// volumes follows the claims of a load, their pods, volumes and attachments.
type volumes struct {
	consumer bool
	late     bool   // the class is WaitForFirstConsumer
	spaces   string // prefix of the load's namespaces

	mu       sync.Mutex
	claims   map[string]*claim // by the object's name
	byVolume map[string]*claim
	message  string // the last reason of a pod that does not run
	broken   int    // watches that ended
}

func newVolumes(o *options, id string) *volumes {
	return &volumes{consumer: o.consumer == objects.ConsumerPod, spaces: spaceName(o.study, id, ""), claims: map[string]*claim{}, byVolume: map[string]*claim{}}
}

// Fields of objects that the load needs.
type (
	seenClaim struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			VolumeName string `json:"volumeName"`
		} `json:"spec"`
		Status struct {
			Phase string `json:"phase"`
		} `json:"status"`
	}
	seenVolume struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			ClaimRef struct{ Namespace, Name string } `json:"claimRef"`
		} `json:"spec"`
	}
	seenAttachment struct {
		Metadata meta `json:"metadata"`
		Spec     struct {
			Source struct {
				PersistentVolumeName string `json:"persistentVolumeName"`
			} `json:"source"`
		} `json:"spec"`
		Status struct {
			Attached bool `json:"attached"`
		} `json:"status"`
	}
)

// chosenNode is the annotation in which the scheduler names the node for the provisioner of a WaitForFirstConsumer class
// (https://pkg.go.dev/k8s.io/component-helpers/storage/volume#AnnSelectedNode).
const chosenNode = "volume.kubernetes.io/selected-node"

// expect begins to follow a claim that is due at the given time.
func (v *volumes) expect(name string, due time.Time) *claim {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := &claim{due: due, consumer: v.consumer, late: v.late, at: map[string]time.Time{}, usable: make(chan struct{}), gone: make(chan struct{})}
	v.claims[name] = c
	return c
}

// answered notes whether the API server has created a claim and its pod.
func (v *volumes) answered(c *claim, at time.Time, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c.failed = err != nil; !c.failed {
		c.at[objects.Answered] = at
		v.judge(c)
	}
}

// withdraw notes that all claims are now to be removed, except those that already were.
func (v *volumes) withdraw(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range v.good() {
		if c.removal.IsZero() {
			c.removal = now
			v.judge(c)
		}
	}
}

// remove notes when a claim's deletion is due.
func (v *volumes) remove(c *claim, due time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c.removal = due
}

// mark notes when a claim reached a stage for the first time.
func (c *claim) mark(stage string, at time.Time) {
	if c.at[stage].IsZero() {
		c.at[stage] = at
	}
}

// judge closes the channels of the states that a claim has reached.
func (v *volumes) judge(c *claim) {
	has := func(stage string) bool { return !c.at[stage].IsZero() }
	if has(objects.Answered) && has(objects.BoundTo) && (!c.consumer || !c.ran.IsZero()) || c.removal.IsZero() && !c.ended.IsZero() {
		shut(c.usable)
	}
	if !c.removal.IsZero() && c.first(objects.Removal(), c.holds) == "" {
		shut(c.gone)
	}
}

func shut(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

func (v *volumes) seeClaim(e *event[seenClaim], at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.claims[e.Object.Metadata.Labels.Object]
	if c == nil {
		return
	}
	if e.Type == deleted {
		c.mark(objects.ClaimGone, at)
	} else if e.Object.Metadata.Annotations[chosenNode] != "" {
		c.mark(objects.Chosen, at)
	}
	if e.Object.Status.Phase == "Bound" {
		c.mark(objects.BoundTo, at)
	}
	v.judge(c)
}

func (v *volumes) seePod(e *event[seenPod], at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := &e.Object
	c := v.claims[p.Metadata.Labels.Object]
	if c == nil {
		return
	}
	if e.Type == deleted {
		c.mark(objects.PodGone, at)
	}
	if p.Spec.NodeName != "" {
		c.mark(objects.Scheduled, at)
		c.node = p.Spec.NodeName
	}
	if p.Status.Phase == running && c.ran.IsZero() {
		c.ran = at
	}
	for _, s := range p.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && c.ended.IsZero() {
			if c.ended = at; json.Unmarshal([]byte(t.Message), &c.wrote) != nil {
				v.message = bounded(t.Message)
			}
		}
	}
	v.message = cmp.Or(p.trouble(), v.message)
	v.judge(c)
}

func (v *volumes) seeVolume(e *event[seenVolume], at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := e.Object.Spec.ClaimRef
	if !strings.HasPrefix(of.Namespace, v.spaces) {
		return
	}
	c := v.claims[of.Name]
	if c == nil {
		return
	}
	name := e.Object.Metadata.Name
	c.volume, v.byVolume[name] = name, c
	c.mark(objects.Provisioned, at)
	if e.Type == deleted {
		c.mark(objects.VolumeGone, at)
	}
	v.judge(c)
}

func (v *volumes) seeAttachment(e *event[seenAttachment], at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.byVolume[e.Object.Spec.Source.PersistentVolumeName]
	if c == nil {
		return
	}
	if e.Object.Status.Attached {
		c.mark(objects.Attached, at)
	}
	if e.Type == deleted && !c.at[objects.Attached].IsZero() {
		c.mark(objects.Detached, at)
	}
	v.judge(c)
}

// missed marks the stage of claims whose object is gone although its event was missed. These are the claims that are to be removed, and
// have a name for an object that is no longer there.
func (v *volumes) missed(stage string, at time.Time, there map[string]bool, name func(object string, c *claim) string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for object, c := range v.claims {
		if n := name(object, c); !c.removal.IsZero() && !c.failed && n != "" && !there[n] {
			c.mark(stage, at)
			v.judge(c)
		}
	}
}

// keys returns the keys of the objects as a set.
func keys[T any](items []T, key func(*T) string) map[string]bool {
	out := map[string]bool{}
	for i := range items {
		out[key(&items[i])] = true
	}
	return out
}

// watch follows the objects of a load until ctx ends. It returns once all are listed, or returns the error of a list.
func (v *volumes) watch(ctx context.Context, a *api, selector string) error {
	said := make(chan error, 4)
	listed := func(err error) { said <- err }
	broke := func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.broken++
	}
	own := "?labelSelector=" + url.QueryEscape(selector)
	object := func(name string, _ *claim) string { return name }
	volume := func(_ string, c *claim) string { return c.volume }
	go feed(ctx, a, "/api/v1/persistentvolumeclaims"+own, v.seeClaim, func(all []seenClaim, at time.Time) {
		v.missed(objects.ClaimGone, at, keys(all, func(x *seenClaim) string { return x.Metadata.Labels.Object }), object)
	}, broke, listed)
	go feed(ctx, a, "/api/v1/pods"+own, v.seePod, func(all []seenPod, at time.Time) {
		if v.consumer {
			v.missed(objects.PodGone, at, keys(all, func(x *seenPod) string { return x.Metadata.Labels.Object }), object)
		}
	}, broke, listed)
	go feed(ctx, a, "/api/v1/persistentvolumes?", v.seeVolume, func(all []seenVolume, at time.Time) {
		v.missed(objects.VolumeGone, at, keys(all, func(x *seenVolume) string { return x.Metadata.Name }), volume)
	}, broke, listed)
	go feed(ctx, a, "/apis/storage.k8s.io/v1/volumeattachments?", v.seeAttachment, func(all []seenAttachment, at time.Time) {
		v.missed(objects.Detached, at, keys(all, func(x *seenAttachment) string { return x.Spec.Source.PersistentVolumeName }), func(_ string, c *claim) string {
			if c.at[objects.Attached].IsZero() {
				return ""
			}
			return c.volume
		})
	}, broke, listed)
	for range cap(said) {
		select {
		case err := <-said:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// wait waits until a channel of each claim is closed, or ctx ends.
func (v *volumes) wait(ctx context.Context, channel func(*claim) chan struct{}) {
	v.mu.Lock()
	all := v.good()
	v.mu.Unlock()
	for _, c := range all {
		select {
		case <-channel(c):
		case <-ctx.Done():
			return
		}
	}
}

func usable(c *claim) chan struct{}  { return c.usable }
func removed(c *claim) chan struct{} { return c.gone }

// done reports whether a channel is closed.
func done(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// sum sums up the claims of a step, and forgets them if all are gone. It returns their number.
func (v *volumes) sum(out *objects.Claims, way, removal span) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.good()
	if err := summary(out, all, way, removal); err != nil {
		return 0, err
	}
	if out.Settled < len(all) {
		out.Message = cmp.Or(out.Message, v.message)
	}
	if out.Gone == len(all) {
		v.claims, v.byVolume = map[string]*claim{}, map[string]*claim{}
	}
	return len(all), nil
}

// good returns the claims that the API server did not refuse.
func (v *volumes) good() []*claim {
	return slices.DeleteFunc(slices.Collect(maps.Values(v.claims)), func(c *claim) bool { return c.failed })
}

// starts are the starts of the claims' pods: where each ran, and since when.
func (v *volumes) starts(all []*claim) (out []*start) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range all {
		if c == nil {
			continue
		}
		s := &start{node: c.node, ran: c.ran}
		if s.ran.IsZero() { // the watch has seen the program's end alone
			s.ran = c.ended
		}
		out = append(out, s)
	}
	return out
}
