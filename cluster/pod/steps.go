package pod

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"tare/cluster/kube"
	"tare/sandbox"
)

// Steps watches the events of a namespace's pods. The time of a step is when its event arrives
// here, because events carry timestamps in whole seconds. The scheduler and the kubelet send an event as soon as the step
// is done, so it is a few milliseconds late. The scheduler's events also have microseconds, but by its own node's
// clock, which nobody compares with this one.
type Steps struct {
	mu   sync.Mutex
	seen map[types.UID]heard
	bad  map[string]string // by claim: the last warning
	news chan struct{}     // closed at the next event
}

// heard has the events of a pod.
type heard struct {
	at     map[string]time.Time // time of the first event, by its reason
	pulled int64                // bytes of the main container's image; 0: the node had it, or the kubelet did not report the size
}

// imageSize matches the size in the kubelet's message on a pulled image (pkg/kubelet/images/image_manager.go in k8s.io/kubernetes):
//
//	Successfully pulled image "r/app@sha256:..." in 1.3s (1.3s including waiting). Image size: 41234567 bytes.
var imageSize = regexp.MustCompile(` Image size: (\d{1,18}) bytes\.$`)

// pulledBytes reads the size from this message; 0: the node had the image, or the kubelet is older and does not report the size.
func pulledBytes(message string) int64 {
	m := imageSize.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // the expression bounds the digits
	return n
}

// Watch receives events until ctx ends.
func (s *Steps) Watch(ctx context.Context, api *kube.Client, namespace string) error {
	return api.WatchEvents(ctx, namespace, func(e *corev1.Event) {
		if e.InvolvedObject.Kind == "PersistentVolumeClaim" && e.Type == corev1.EventTypeWarning {
			s.warn(e.InvolvedObject.Name, e.Message)
			return
		}
		reason := e.Reason
		if strings.HasPrefix(e.InvolvedObject.FieldPath, "spec.initContainers") {
			reason = eventCopy + reason
		}
		s.note(e.InvolvedObject.UID, reason, e.Message, time.Now())
	})
}

func (s *Steps) note(uid types.UID, reason, message string, at time.Time) {
	switch reason {
	case eventScheduled, eventCopy + eventPulling, eventCopy + eventPulled, eventPulling, eventPulled, eventCreated, eventStarted:
	default:
		return // such as Killing, which comes after take
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[types.UID]heard{}
	}
	h := s.seen[uid]
	if h.at == nil {
		h.at = map[string]time.Time{}
	}
	if _, known := h.at[reason]; !known {
		h.at[reason] = at
		if reason == eventPulled {
			h.pulled = pulledBytes(message)
		}
	}
	s.seen[uid] = h
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
}

// warn keeps what is said of a claim. It is forgotten with the study.
func (s *Steps) warn(claim, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad == nil {
		s.bad = map[string]string{}
	}
	s.bad[claim] = text
}

// trouble is what was said of claims, to be put after a reason.
func (s *Steps) trouble(claims []string) (out string) {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range claims {
		if t := s.bad[c]; t != "" {
			out += fmt.Sprintf("; claim %s: %.*s", c, kube.MaxReason, t)
		}
	}
	return out
}

// heardWithin bounds how long the last event of a start is awaited. The agent's connection may
// arrive before it.
const heardWithin = 500 * time.Millisecond

// take returns the events of a pod, once the pod has started, and forgets them.
func (s *Steps) take(uid types.UID) heard {
	late := time.After(heardWithin)
	for {
		s.mu.Lock()
		seen := s.seen[uid]
		if _, started := seen.at[eventStarted]; started {
			delete(s.seen, uid)
			s.mu.Unlock()
			return seen
		}
		if s.news == nil {
			s.news = make(chan struct{})
		}
		news := s.news
		s.mu.Unlock()
		select {
		case <-news:
		case <-late:
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.seen, uid)
			return seen
		}
	}
}

// Forget waits until a pod has started or ctx has ended, and then forgets the pod's steps.
func (s *Steps) Forget(ctx context.Context, uid types.UID) {
	if ctx.Err() == nil {
		s.take(uid)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, uid)
}

// Reasons of the events of a start, by the scheduler and the kubelet
// (https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/events/event.go).
const (
	eventScheduled = "Scheduled"
	eventPulling   = "Pulling"
	eventPulled    = "Pulled"
	eventCreated   = "Created"
	eventStarted   = "Started"
	// eventCopy begins the reasons of the container that copies tare.
	eventCopy = "copy "
)

// moments are what is known of a start: from the call to the agent's arrival.
type moments struct {
	begun, admitted time.Time // of the call, and of its return
	heard           map[string]time.Time
	first           time.Time // the agent's first instruction, by its own clock
	arrived         time.Time
}

// phases are the steps of a start. A step whose event was not heard is part of the next one. An event that is heard after the
// agent's first instruction tells of something before it: the event Started always is.
func (m moments) phases() []sandbox.BootPhase {
	var out []sandbox.BootPhase
	last, seen := m.begun, m.heard
	first, pulls := earlier(seen[eventCopy+eventPulling], seen[eventCopy+eventPulled]), earlier(seen[eventPulling], seen[eventPulled])
	copied := pulls
	if first.IsZero() { // nothing is copied
		copied = first
	}
	for _, p := range []struct {
		name string
		at   time.Time
	}{
		{"admit", m.admitted}, {"schedule", seen[eventScheduled]}, {"sandbox", earlier(first, pulls)}, {"copy", copied}, {"pull", seen[eventPulled]},
		{"create", seen[eventCreated]}, {"start", m.first}, {"agent", m.arrived},
	} {
		if p.at.IsZero() {
			continue
		}
		if p.name != "agent" && p.at.After(m.first) {
			p.at = m.first
		}
		out = append(out, sandbox.BootPhase{Name: p.name, Took: max(0, p.at.Sub(last))})
		if p.at.After(last) {
			last = p.at
		}
	}
	return out
}

// earlier is the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
