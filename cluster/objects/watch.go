package objects

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"tare/workload/objects"
)

// start is the start of a pod of an object.
type start struct {
	*origin
	name              string
	seen, placed, ran time.Time // when the watch said that there is the pod, that it has a node, that it runs
	node              string
	pulled            time.Duration // that the kubelet took to pull its image; 0: not known
}

// origin is an object that has pods.
type origin struct {
	due, answered time.Time
	made          *made    // of its image; nil: the load builds none
	starts        []*start // of its pods that were seen
	wanted        int      // pods
	guest         bool     // the object is a virtual machine: its guest is waited for
	// Of a virtual machine: when virt-controller had handed it over to its node's virt-handler, and when its guest ran.
	handed, booted time.Time
}

// pods follows the pods of a load through one watch. It keeps a few times of those that are waited for, and nothing of others.
type pods struct {
	mu      sync.Mutex
	waited  map[string]*origin // by the object's name
	left    int                // pods of these that do not run
	none    chan struct{}      // closed once none is left
	message string             // the last thing that a pod's status said of why it does not run
	running int                // pods of objects that are there; of virtual machines, guests
	guests  bool               // the objects are virtual machines: their guests are waited for
	broken  int                // watches that ended
}

func newPods() *pods { return &pods{waited: map[string]*origin{}} }

// seenPod has the fields of a pod that the load needs.
type seenPod struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase             string            `json:"phase"`
		Conditions        []condition       `json:"conditions"`
		ContainerStatuses []containerStatus `json:"containerStatuses"`
	} `json:"status"`
}

type condition struct{ Type, Status, Reason, Message string }

type containerStatus struct {
	State struct {
		Waiting    struct{ Reason, Message string } `json:"waiting"`
		Terminated *struct{ Message string }        `json:"terminated"`
	} `json:"state"`
}

// meta has the fields of an object's metadata that the load needs.
type meta struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
	Labels      struct {
		Object string `json:"tare/object"`
	} `json:"labels"`
}

// Phases of a pod whose containers run, or have run to their end.
const (
	running   = "Running"
	succeeded = "Succeeded"
)

// trouble returns the reason in a pod's status why it does not run; "": none.
func (p *seenPod) trouble() (message string) {
	for _, c := range p.Status.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" && c.Message != "" {
			message = bounded(c.Message)
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w.Reason != "" && w.Reason != "ContainerCreating" {
			message = bounded(w.Reason + ": " + w.Message)
		}
	}
	return message
}

// expect begins to wait for the pods of an object that is due at a moment.
func (p *pods) expect(name string, due time.Time, count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waited[name] = &origin{due: due, wanted: count, guest: p.guests}
	if p.left += count; p.none == nil {
		p.none = make(chan struct{})
	}
}

// answered says that the API server has created an object; or not, and that there is nothing to wait for.
func (p *pods) answered(name string, at time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.waited[name]
	if err == nil {
		o.answered = at
		return
	}
	delete(p.waited, name)
	p.arrived(o.wanted - o.ran()) // those that ran were created all the same
}

// ran is how many pods of an object run, or how many guests.
func (o *origin) ran() (n int) {
	for _, s := range o.starts {
		if !s.ran.IsZero() {
			n++
		}
	}
	switch {
	case o.guest && o.booted.IsZero():
		return 0
	case o.guest:
		return 1
	}
	return n
}

// arrived counts some that are not waited for any more.
func (p *pods) arrived(n int) {
	if p.left -= n; p.left == 0 && p.none != nil {
		close(p.none)
		p.none = nil
	}
}

// stopped counts pods of an object that was deleted.
func (p *pods) stopped(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = max(0, p.running-n)
}

// wait waits until the pods of all objects run, or ctx ends.
func (p *pods) wait(ctx context.Context) {
	p.mu.Lock()
	none := p.none
	p.mu.Unlock()
	if none == nil {
		return
	}
	select {
	case <-none:
	case <-ctx.Done():
	}
}

// take returns the starts since it was last called, and forgets them. A pod that was not seen has one too. message is the last
// thing that is known of pods that do not run.
func (p *pods) take() (all []*start, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.waited {
		all = append(all, o.starts...)
		for range o.wanted - len(o.starts) {
			all = append(all, &start{origin: o})
		}
	}
	p.waited, p.left, p.none = map[string]*origin{}, 0, nil
	return all, p.message
}

// maxMessage bounds what is kept of a status, in bytes.
const maxMessage = 400

// see notes an event that was received at a moment.
func (p *pods) see(e *event[seenPod], at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.waited[e.Object.Metadata.Labels.Object]
	if o == nil {
		return
	}
	i := slices.IndexFunc(o.starts, func(s *start) bool { return s.name == e.Object.Metadata.Name })
	switch {
	case e.Type == deleted:
		if i >= 0 && o.starts[i].ran.IsZero() { // a controller makes another one
			o.starts = slices.Delete(o.starts, i, i+1)
		}
		return
	case i < 0 && len(o.starts) >= o.wanted:
		return // more than are waited for
	case i < 0:
		i = len(o.starts)
		o.starts = append(o.starts, &start{origin: o, name: e.Object.Metadata.Name, seen: at})
	}
	s := o.starts[i]
	if s.placed.IsZero() && e.Object.Spec.NodeName != "" {
		s.placed, s.node = at, e.Object.Spec.NodeName
	}
	if phase := e.Object.Status.Phase; s.ran.IsZero() && (phase == running || phase == succeeded) {
		if s.ran = at; !p.guests {
			p.running++
			p.arrived(1)
		}
		return
	}
	p.message = cmp.Or(e.Object.trouble(), p.message)
}

func bounded(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

// watch follows the pods with a label until ctx ends, and the virtual machines if there are to be any.
func (p *pods) watch(ctx context.Context, a *api, selector string) {
	query := "?labelSelector=" + url.QueryEscape(selector)
	if p.guests {
		go p.keep(ctx, func() error { return stream(ctx, a, machines+query, p.boots) })
	}
	p.keep(ctx, func() error { return streamPods(ctx, a, "/api/v1/pods"+query, p.see) })
}

// keep keeps a watch until ctx ends. The server's first events describe what exists. If the server ends the watch, keep begins it again,
// and the server describes everything once more.
func (p *pods) keep(ctx context.Context, watch func() error) {
	for ctx.Err() == nil {
		if err := watch(); err != nil && ctx.Err() == nil {
			p.mu.Lock()
			p.broken++
			p.mu.Unlock()
			select {
			case <-time.After(again):
			case <-ctx.Done():
			}
		}
	}
}

// starts are the starts of a step's pods. Those that did not run count until the step's end.
func starts(all []*start, end time.Time, message string) (*objects.Starts, error) {
	out := &objects.Starts{}
	total, nodes, n := objects.NewHistogram(), map[string]bool{}, 0.0
	images := newImages()
	for _, s := range all {
		images.note(s)
		runs := s.ran
		if s.guest {
			runs = s.booted
		}
		if runs.IsZero() {
			out.Never++
			objects.Note(total, end.Sub(s.due))
			continue
		}
		objects.Note(total, runs.Sub(s.due))
		nodes[s.node] = true
		n++
		from := s.due
		if s.made != nil {
			from = s.made.pushed
		}
		out.Answered += s.answered.Sub(from).Seconds()
		at := s.answered
		part := func(sum *float64, t time.Time) { // a watch can be faster than the answer, and than another watch
			*sum += max(0, t.Sub(at).Seconds())
			at = later(at, t)
		}
		if s.guest {
			part(&out.Launched, s.seen)
		}
		part(&out.Placed, s.placed)
		part(&out.Ran, s.ran)
		part(&out.Handed, s.handed)
		part(&out.Booted, s.booted)
	}
	for _, sum := range []*float64{&out.Answered, &out.Launched, &out.Placed, &out.Ran, &out.Handed, &out.Booted} {
		*sum /= max(n, 1)
	}
	out.Nodes = len(nodes)
	if out.Never > 0 {
		out.Message = message
	}
	var err error
	if out.Image, err = images.stages(); err != nil {
		return nil, fmt.Errorf("encoding the times of images: %w", err)
	}
	if out.Total, err = objects.Encode(total); err != nil {
		return nil, fmt.Errorf("encoding the starts of pods: %w", err)
	}
	return out, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
