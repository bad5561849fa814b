package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tare/cluster/pod"
	"tare/param"
	"tare/workload/objects"
	"tare/workload/objects/loadfile"
	"tare/workload/objects/pace"
)

// storageClass has the fields of a StorageClass that the load needs.
type storageClass struct {
	Metadata      meta   `json:"metadata"`
	Provisioner   string `json:"provisioner"`
	ReclaimPolicy string `json:"reclaimPolicy"`
	Binding       string `json:"volumeBindingMode"`
}

// Words of the API.
const (
	isDefault     = "storageclass.kubernetes.io/is-default-class"
	noProvisioner = "kubernetes.io/no-provisioner"
	retain        = "Retain"
	waits         = "WaitForFirstConsumer"
)

// claimer is a load of claims.
type claimer struct {
	*uniform
	rate  pace.Pace
	users *maker // makes the pods that use the claims; nil: no pods
	class *storageClass
}

// claimed returns the script of a load of claims.
func claimed(l *load) (*script, error) {
	u, rate, err := newUniform(l)
	if err != nil {
		return nil, err
	}
	c := &claimer{uniform: u, rate: rate}
	out := &script{spaces: make([]loadfile.Space, l.namespaces), accounts: l.consumer == objects.ConsumerPod, begin: c.prepareClaims}
	for range l.steps {
		out.steps = append(out.steps, step{run: c.claimStep})
	}
	return out, nil
}

// prepareClaims finds the StorageClass, and refuses a class that does not fit the load.
func (l *claimer) prepareClaims(ctx context.Context) error {
	all, _, err := list[storageClass](ctx, l.api, "/apis/storage.k8s.io/v1/storageclasses")
	if err != nil {
		return fmt.Errorf("cannot list the StorageClasses: %w", err)
	}
	if l.class, err = chooseClass(all, l.storage, l.consumer); err != nil {
		return err
	}
	l.volumes.late = l.class.Binding == waits
	if l.consumer == objects.ConsumerPod {
		l.users, err = newUsers(&l.options, l.id)
	}
	return err
}

// chooseClass returns the StorageClass with a name, or the default one for "".
func chooseClass(all []storageClass, name, consumer string) (*storageClass, error) {
	i := slices.IndexFunc(all, func(c storageClass) bool {
		return c.Metadata.Name == name || name == "" && c.Metadata.Annotations[isDefault] == "true"
	})
	if i < 0 && name == "" {
		return nil, errors.New("the cluster has no default StorageClass; name a class with the parameter storage")
	}
	if i < 0 {
		return nil, fmt.Errorf("storage %s: the cluster has no StorageClass of this name; `kubectl get storageclass` lists the names", name)
	}
	c := &all[i]
	switch {
	case c.Provisioner == noProvisioner:
		return nil, fmt.Errorf("storage %s: this class has no provisioner that creates volumes (provisioner %s); use a class with a provisioner", c.Metadata.Name, noProvisioner)
	case c.ReclaimPolicy == retain:
		return nil, fmt.Errorf("storage %s: this class keeps the volumes of deleted claims (reclaimPolicy Retain), so each claim would leave a volume behind; use a class with reclaimPolicy Delete", c.Metadata.Name)
	case c.Binding == waits && consumer == objects.ConsumerNone:
		return nil, fmt.Errorf("storage %s: this class binds a claim only when a pod uses it (volumeBindingMode %s), so with consumer: none the claims would wait forever; write consumer: pod, or use a class with volumeBindingMode Immediate", c.Metadata.Name, waits)
	}
	return c, nil
}

// claimSpec returns the spec of a claim.
func claimSpec(o *options) fields {
	spec := fields{
		"accessModes": []string{"ReadWriteOnce"}, "volumeMode": "Filesystem",
		"resources": fields{"requests": fields{"storage": fmt.Sprint(o.size)}},
	}
	if o.mode == objects.Block {
		spec["volumeMode"] = "Block"
	}
	if o.storage != "" {
		spec["storageClassName"] = o.storage
	}
	return spec
}

// writeWithin is how long a deleted pod still has to write its first byte.
const writeWithin = 30 // s

// newUsers returns the maker of the pods that use the claims. Each pod has the name of its claim.
func newUsers(o *options, load string) (*maker, error) {
	spec := podSpec(o)
	spec["restartPolicy"], spec["terminationGracePeriodSeconds"] = "Never", writeWithin
	spec["volumes"] = []fields{{"name": "claim", "persistentVolumeClaim": fields{"claimName": placeholder}}}
	security, c := spec["securityContext"].(fields), spec["containers"].([]fields)[0]
	security["fsGroup"] = pod.User
	c["name"], c["command"] = "writer", []string{"/tare", "internal", "write-claim", claimPath}
	if o.mode == objects.Block {
		security["supplementalGroups"] = []int{pod.DiskGroup}
		c["volumeDevices"] = []fields{{"name": "claim", "devicePath": claimPath}}
	} else {
		c["volumeMounts"] = []fields{{"name": "claim", "mountPath": claimPath}}
	}
	text, err := json.Marshal(fields{"apiVersion": "v1", "kind": "Pod", "metadata": fields{"name": placeholder, "labels": labelsOf(o, load)}, "spec": spec})
	return &maker{resource: "pods", group: "/api/v1", text: text}, err
}

// claimStep creates the claims of a step and their pods, waits until the claims are usable, deletes them, and waits until they are gone.
func (l *claimer) claimStep(ctx context.Context, number int) (*objects.Step, error) {
	n := objects.Target(l.count, l.steps, number)
	s := &objects.Step{Number: number, Objects: n, Claims: &objects.Claims{Made: bounded(l.class.Provisioner), Mode: l.class.Binding}}
	workers := objects.Workers(l.workers, l.parallel)
	all := make([]*claim, n)
	var nodes *nodesReading
	if l.kubelets != nil {
		nodes = l.kubelets.read(ctx)
	}
	before := l.api.metrics(ctx)
	begin := time.Now()
	s.Begin = begin.Sub(l.begun).Seconds()
	creating, cancel := context.WithTimeout(ctx, l.timeout)
	made := l.each(creating, workers, n, l.rate.Due(n, number), func(ctx context.Context, i int, due time.Time) (time.Duration, error) {
		all[i] = l.volumes.expect(l.name(i), due)
		busy, err := l.submit(ctx, i, due)
		l.volumes.answered(all[i], time.Now(), err)
		l.follow(ctx, err, all[i].usable)
		return busy, err
	})
	cancel()
	created := time.Now()
	after := l.api.metrics(ctx)
	s.Made, s.Failed = made.done, made.failed
	s.Create, s.Busy, s.Late, s.Why = created.Sub(begin).Seconds(), made.busy.Seconds(), made.late.Seconds(), made.why
	s.Server = after.since(before)
	waiting, cancel := context.WithTimeout(ctx, l.timeout)
	l.volumes.wait(waiting, usable)
	cancel()
	settled := time.Now()
	s.Settle = settled.Sub(created).Seconds()
	if l.kubelets != nil {
		s.Kubelets = l.kubelets.since(nodes, l.kubelets.read(ctx), l.volumes.starts(all))
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.Claims.Message = l.trouble(ctx, all)

	removing, cancel := context.WithTimeout(ctx, l.timeout)
	deleting := time.Now()
	l.each(removing, workers, n, l.rate.Due(n, number), func(ctx context.Context, i int, due time.Time) (time.Duration, error) {
		if all[i] == nil {
			return 0, nil
		}
		l.volumes.remove(all[i], due)
		busy, err := l.withdraw(ctx, i, due)
		l.follow(ctx, err, all[i].gone)
		return busy, err
	})
	cancel()
	waiting, cancel = context.WithTimeout(ctx, l.timeout)
	l.volumes.wait(waiting, removed)
	cancel()
	end := time.Now()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i := range n {
		l.again[i]++
	}
	l.volumes.mu.Lock()
	s.Broken = l.volumes.broken
	l.volumes.mu.Unlock()
	followed, err := l.volumes.sum(s.Claims, span{begin, settled}, span{deleting, end})
	if err != nil {
		return nil, err
	}
	l.why(s, followed)
	if number == 1 && s.Claims.Bound == 0 {
		return nil, fmt.Errorf("no claim was bound: %s", s.Why)
	}
	return s, l.api.take(s)
}

// follow waits for a claim, if parallel limits the claims in progress.
func (l *claimer) follow(ctx context.Context, err error, until chan struct{}) {
	if l.parallel == 0 || err != nil {
		return
	}
	select {
	case <-until:
	case <-ctx.Done():
	}
}

// submit creates the i-th claim, and the pod that uses it.
func (l *claimer) submit(ctx context.Context, i int, due time.Time) (time.Duration, error) {
	name := l.name(i)
	busy, err := l.api.do(ctx, verb{"create", l.maker.resource}, due, http.MethodPost, l.path(i), l.maker.object(name))
	if err != nil || l.users == nil {
		return busy, err
	}
	more, err := l.api.do(ctx, verb{"create", l.users.resource}, time.Now(), http.MethodPost, l.users.path(l.spaceOf(i)), l.users.object(name))
	return busy + more, err
}

// withdraw deletes the i-th claim, and the pod that uses it.
func (l *claimer) withdraw(ctx context.Context, i int, due time.Time) (busy time.Duration, err error) {
	name, from := "/"+l.name(i), due
	if l.users != nil {
		busy, err = l.api.do(ctx, verb{"delete", l.users.resource}, from, http.MethodDelete, l.users.path(l.spaceOf(i))+name, nil)
		from = time.Now()
	}
	if err != nil && !isCode(err, http.StatusNotFound) {
		return busy, err
	}
	more, err := l.api.do(ctx, verb{"delete", l.maker.resource}, from, http.MethodDelete, l.path(i)+name, nil)
	return busy + more, err
}

// why notes why a step did not finish, and ends the load in that case.
func (l *claimer) why(s *objects.Step, followed int) {
	c := s.Claims
	missing := s.Objects - s.Made - s.Failed
	switch {
	case s.Failed > 0:
	case c.Settled < followed:
		s.Why = strings.TrimSuffix(fmt.Sprintf("%d of %d claims were not usable within %s: %s", followed-c.Settled, s.Objects, param.FormatDuration(l.timeout), c.Message), ": ")
	case missing > 0:
		s.Why = fmt.Sprintf("%d of %d claims were not created within %s", missing, s.Objects, param.FormatDuration(l.timeout))
	case c.Gone < followed:
		s.Why = fmt.Sprintf("%d of %d claims were not gone within %s", followed-c.Gone, s.Objects, param.FormatDuration(l.timeout))
	default:
		return
	}
	s.Ended = true
}

// seenEvent has the fields of an event about a claim that the load needs.
type seenEvent struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	About   struct {
		Name string `json:"name"`
	} `json:"involvedObject"`
}

// trouble says why claims are not usable. It quotes a warning about one of them, or else the last event. It is "" without events.
func (l *claimer) trouble(ctx context.Context, all []*claim) string {
	waits := map[string]bool{}
	for i, c := range all {
		if c != nil && !done(c.usable) {
			waits[l.name(i)] = true
		}
	}
	if len(waits) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for _, space := range l.spaces {
		events, _, err := list[seenEvent](ctx, l.api, "/api/v1/namespaces/"+space+"/events?limit=1000&fieldSelector=involvedObject.kind%3DPersistentVolumeClaim")
		events = slices.DeleteFunc(events, func(e seenEvent) bool { return !waits[e.About.Name] })
		if err != nil || len(events) == 0 {
			continue // then the message of the pod's status is used
		}
		e := events[len(events)-1]
		if i := slices.IndexFunc(events, func(e seenEvent) bool { return e.Type == "Warning" }); i >= 0 {
			e = events[i]
		}
		return bounded(e.Reason + ": " + e.Message)
	}
	return ""
}
