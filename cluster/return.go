package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/cluster/control"
	"tare/cluster/kube"
	"tare/plan"
	"tare/record"
	"tare/site"
	"tare/site/remote"
)

// session is an open study, whose end takes the coordinator away. A connection that is lost is made
// again: the coordinator keeps what it has measured meanwhile.
type session struct {
	site.Session
	connection *connection
	site       *Site
	request    site.Request
	loads      bool  // a workload has namespaces of its own
	gone       error // why it is not reached again; all nodes are lost, and waiting for each takes long
}

// againMost is how often a connection may be lost within one question: who sends what no coordinator
// sends is not asked for ever.
const againMost = 3

// Trials implements site.Session.
func (s *session) Trials(ctx context.Context, nexts []plan.Next) []record.Made {
	if s.loads {
		asking, stop := context.WithCancel(ctx)
		defer stop()
		go s.site.held(asking, s.connection.made.id)
	}
	for try := 0; s.gone == nil; try++ {
		made := s.Session.Trials(ctx, nexts)
		lost := s.connection.coordinator.Lost()
		if ctx.Err() != nil || lost == nil || try == againMost {
			return made
		}
		err := s.site.ended(ctx, &s.connection.made)
		if err == nil {
			s.site.Say("the connection to the cluster is lost; reconnecting for up to %s", minutes(lonely))
			err = s.again(ctx)
		}
		switch {
		case err == nil:
			s.site.Say("reconnected")
			continue
		case ctx.Err() != nil:
			return made
		}
		s.gone = err
		for i := range made { // those that the coordinator did not make
			if f := made[i].Failure; f != nil && f.Reason == lost.Error() {
				f.Reason = err.Error()
			}
		}
		return made
	}
	return remote.Missing(nexts, s.gone)
}

// ended says what became of a coordinator that has ended; nil: it may still run.
func (s *Site) ended(ctx context.Context, made *deployment) error {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: made.namespace, Name: coordinatorName(made.id)}}
	err := s.api.Get(ctx, p)
	who := "the study's coordinator in namespace " + made.namespace
	switch {
	case kube.IsGone(err) || err == nil && p.DeletionTimestamp != nil:
		return fmt.Errorf("%s was deleted", who)
	case err != nil || p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed:
		return nil
	}
	why := cmp.Or(p.Status.Message, p.Status.Reason)
	for i := range p.Status.ContainerStatuses {
		if t := p.Status.ContainerStatuses[i].State.Terminated; t != nil {
			why = cmp.Or(why, t.Message, t.Reason)
		}
	}
	if why = strings.TrimSpace(why); why == "" {
		return fmt.Errorf("%s has ended", who)
	}
	return fmt.Errorf("%s has ended (%.*s)", who, kube.MaxReason, why)
}

// minutes is a time of whole minutes in words.
func minutes(d time.Duration) string { return fmt.Sprintf("%d min", int(d.Minutes())) }

// againEvery is the pause between two tries to connect. rejectedFor is how long an API server that has restarted may reject credentials:
// it reads tokens and roles first.
const (
	againEvery  = 2 * time.Second
	rejectedFor = 20 * time.Second
)

// again connects again, for as long as the coordinator waits.
func (s *session) again(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lonely)
	defer cancel()
	for accepted := time.Now(); ; {
		err := s.site.rejoin(ctx, s.connection)
		if err == nil {
			var open site.Session
			if open, err = s.connection.coordinator.Open(ctx, s.request); err == nil {
				s.Session = open
				return nil
			}
			_ = s.connection.coordinator.Close() // for the next try
		}
		if ended := s.site.ended(ctx, &s.connection.made); ended != nil {
			return ended
		}
		if !errors.Is(err, errCredentials) {
			accepted = time.Now()
		} else if time.Since(accepted) > rejectedFor {
			return fmt.Errorf("the study's coordinator in namespace %s was not reached: %w", s.connection.made.namespace, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the study's coordinator in namespace %s was not reached within %s (%w)", s.connection.made.namespace, minutes(lonely), err)
		case <-time.After(againEvery):
		}
	}
}

// Lead implements site.Lasting.
func (s *session) Lead(done []record.Trial) error {
	l, err := s.lasting()
	if err != nil {
		return err
	}
	return l.Lead(done)
}

// GoOn implements site.Lasting.
func (s *session) GoOn(done []record.Trial) error {
	l, err := s.lasting()
	if err != nil {
		return err
	}
	return l.GoOn(done)
}

func (s *session) lasting() (site.Lasting, error) {
	l, is := s.Session.(site.Lasting)
	if !is {
		return nil, errors.New("the coordinator cannot continue on its own")
	}
	return l, nil
}

// Leave implements site.Lasting: the coordinator stays.
func (s *session) Leave() {
	_ = s.connection.coordinator.Close()
	s.site.left(nil)
}

// Close implements site.Session. A coordinator that cannot be reached stays, because it may
// hold trials that nobody has fetched.
func (s *session) Close() {
	c := s.connection
	if c.coordinator.Lost() != nil {
		ctx, cancel := context.WithTimeout(context.Background(), returnWithin)
		defer cancel()
		if s.site.unused(ctx, c.made.id, c.made.namespace, time.Time{}) != nil {
			s.site.Say("study %s stays in namespace %s, because its coordinator cannot be reached; repeat the command to return to it, or remove it with `%s`", c.made.id, c.made.namespace, c.made.clean())
			return
		}
	}
	s.Session.Close()
	c.close()
}

// ticket is what it takes to return to a coordinator.
type ticket struct {
	ID        string           `json:"id"`
	Namespace string           `json:"namespace"`
	Shared    bool             `json:"shared,omitempty"`
	Made      []string         `json:"made,omitempty"`
	User      control.Identity `json:"user"`
	Flags     string           `json:"flags"` // flags that the user gave
	Nodes     []string         `json:"nodes"` // nodes on which the study measures
	// Starting: it was written before the first object. The study has measured nothing, and its coordinator may lack anything.
	Starting bool `json:"starting,omitempty"`
}

// promise keeps the ticket of a study that is about to be made: whoever is killed from now on can come back to what it has made by then.
func (c *connection) promise() error {
	if c.keep == nil {
		return nil
	}
	d := &c.made
	t := ticket{ID: d.id, Namespace: d.namespace, Shared: d.shared, Flags: c.site.About().Flag, Starting: true}
	if !d.shared {
		t.Made = []string{d.namespace}
		if c.site.Observe {
			t.Made = append(t.Made, d.nodesNamespace())
		}
	}
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return c.keep(text)
}

// Ticket implements site.Returning.
func (s *session) Ticket() []byte {
	d := &s.connection.made
	text, err := json.Marshal(ticket{ID: d.id, Namespace: d.namespace, Shared: d.shared, Made: d.made, User: s.connection.user, Flags: s.site.About().Flag, Nodes: d.nodes})
	if err != nil {
		return nil // it has only strings and bytes
	}
	return text
}

// rejoin connects to a running coordinator. The coordinator may have given up its nodes; it takes them again when a user connects.
// So rejoin checks twice whether another study holds them: before it connects, and when other studies can see the claim.
func (s *Site) rejoin(ctx context.Context, c *connection) error {
	free := func() error {
		other, err := s.holder(ctx, &c.made)
		if other != nil {
			return other
		}
		return err
	}
	if err := free(); err != nil {
		return err
	}
	if err := s.dial(ctx, c); err != nil {
		return err
	}
	_, err := c.made.ready(ctx, c.made.namespace, coordinatorName(c.made.id), "the coordinator")
	if err == nil {
		err = free()
	}
	if err != nil {
		_ = c.coordinator.Close() // the coordinator goes on
	}
	return err
}

// returnWithin bounds a try to return to a coordinator.
const returnWithin = 20 * time.Second

// clear removes what is left of a study that has ended.
func (c *connection) clear(ctx context.Context) error {
	if err := c.made.remove(ctx); err != nil {
		return &site.UnableError{Err: err}
	}
	return nil
}

// reconnect returns to the coordinator of a ticket; nil without an error if it has ended, or if the study was killed while it
// started. What is left of it is then removed.
func (s *Site) reconnect(ctx context.Context, text []byte) (*connection, error) {
	var t ticket
	if len(text) == 0 || json.Unmarshal(text, &t) != nil || t.ID == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, returnWithin)
	defer cancel()
	c := &connection{site: s, user: t.User, made: deployment{api: s.api, id: t.ID, namespace: t.Namespace, shared: t.Shared, made: t.Made, nodes: t.Nodes}}
	if t.Starting {
		s.Say("removing study %s, which was killed before its first trial", t.ID)
		return nil, c.clear(ctx)
	}
	used := s.unused(ctx, t.ID, t.Namespace, time.Time{})
	if used == nil {
		return nil, c.clear(ctx)
	}
	if now := s.About().Flag; now != t.Flags {
		return nil, &site.FlagsError{Err: fmt.Errorf("the study in namespace %s was started with other flags than %s; to return to it, repeat the command with `%s`; to end it, run `%s`", t.Namespace, now, t.Flags, c.made.clean())}
	}
	err := s.rejoin(ctx, c)
	if err == nil {
		s.left(&c.made)
		s.Say("returning to the study in namespace %s", t.Namespace)
		return c, nil
	}
	if other := (*heldError)(nil); errors.As(err, &other) {
		return nil, fmt.Errorf("cannot return to the study in namespace %s, which has given up its nodes and keeps its results for you: %w", t.Namespace, other)
	}
	if used = s.unused(ctx, t.ID, t.Namespace, time.Time{}); used == nil { // the coordinator has ended meanwhile
		return nil, c.clear(ctx)
	}
	return nil, &site.UnableError{Err: fmt.Errorf("cannot reach the study in namespace %s, which continues there: %w; try again, or end it with `%s`", t.Namespace, err, c.made.clean())}
}
