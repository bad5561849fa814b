package objects

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/cluster/kube"
	"tare/param"
	"tare/workload/inside"
	"tare/workload/objects"
	"tare/workload/objects/loadfile"
)

// load is one run of the generator.
type load struct {
	options
	api  *api
	id   string // of the load: its objects bear it
	todo *script
	pods *pods // nil: the objects have none
	node *node // nil: the load does not read it
	// kubelets are the nodes that may take pods; nil: the objects have none.
	kubelets *kubelets
	// volumes follows the claims; nil: no claims.
	volumes *volumes
	print   func(objects.Line) error

	spaces []string // namespaces that exist
	stuck  time.Duration
	begun  time.Time
}

// script has the steps of a load.
type script struct {
	spaces   []loadfile.Space
	steps    []step
	pods     bool                            // the load waits for pods
	accounts bool                            // the load creates pods, which need a service account
	begin    func(ctx context.Context) error // called before the namespaces are created; may be nil
}

// step has batches that the load reports together.
type step struct {
	objects, requests int
	pods              bool
	batches           []batch
	run               func(ctx context.Context, number int) (*objects.Step, error) // replaces the batches; nil: the batches are sent
	churn             func(ctx context.Context, s *objects.Step) error             // called when all pods run; may be nil
}

// batch has requests that the load sends in a row.
type batch struct {
	count   int
	due     func(i int) time.Duration // since the first request; nil: due when a worker is free
	takes   time.Duration             // until the last request is due
	send    func(ctx context.Context, i int, due time.Time) (busy time.Duration, err error)
	settle  func(ctx context.Context) // waits after the requests; nil: no wait
	timeout time.Duration             // of settle
	pause   time.Duration             // after settle
}

func newLoad(o options, a *api, print func(objects.Line) error) (*load, error) {
	l := &load{options: o, api: a, id: strings.ToLower(rand.Text()[:6]), print: print, stuck: stuck}
	var err error
	switch {
	case o.file != "":
		l.todo, err = scripted(l)
	case o.kind == objects.Claim:
		l.volumes = newVolumes(&o, l.id)
		l.todo, err = claimed(l)
	default:
		l.todo, err = plain(l)
	}
	if err != nil {
		return nil, err
	}
	if l.todo.pods {
		l.pods = newPods()
		l.pods.guests = o.file == "" && o.kind == objects.VM
	}
	return l, nil
}

// How long namespaces may take to come, and to go with their pods. quick is for a load that is told to end: it only asks.
const (
	within = time.Minute
	gone   = 8 * time.Minute
	quick  = 1500 * time.Millisecond
)

// stuck is how long a finalizer may hold the same objects of a namespace: after that, its program will
// hardly remove it, so the load does not wait as long as for pods.
const stuck = 90 * time.Second

func (l *load) run(ctx context.Context) (err error) {
	if l.todo.begin != nil {
		if err := l.todo.begin(ctx); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil { // or they are gone
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), quick)
			defer cancel()
			_ = l.forget(ctx) // they go with the study's namespace otherwise
		}
	}()
	if err = l.prepare(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if l.pods != nil {
		go l.pods.watch(watching, l.api, labelLoad+"="+l.id)
	}
	if l.pods != nil || l.volumes != nil && l.volumes.consumer {
		l.kubelets = findKubelets(ctx, l.api, &l.options)
		defer l.kubelets.close()
	}
	if l.volumes != nil {
		if err = l.volumes.watch(watching, l.api, labelLoad+"="+l.id); err != nil {
			return fmt.Errorf("cannot watch the claims and their volumes: %w", err)
		}
	}
	if l.node != nil {
		go l.node.watch(watching)
	}
	control := findControlPlane(ctx, l.api)
	before := control.read(ctx)
	l.begun = time.Now()
	var first, last objects.Reading // of the node
	for i := range l.todo.steps {
		step := l.step
		if run := l.todo.steps[i].run; run != nil {
			step = run
		}
		s, err := step(ctx, i+1)
		if err != nil {
			return err
		}
		now := control.read(ctx)
		s.Control, before = control.since(before, now), now
		if err := l.print(objects.Line{Step: s}); err != nil {
			return err
		}
		if n := len(s.Node); n > 0 {
			if last = s.Node[n-1]; i == 0 {
				first = s.Node[0]
			}
		}
		if s.Ended {
			break
		}
	}
	if err = l.print(objects.Line{Measured: true}); err != nil {
		return err
	}
	user, system := inside.CPU()
	e := &objects.End{Namespaces: len(l.spaces), User: user.Seconds(), System: system.Seconds(), Memory: peak(), Warnings: l.api.warnings()}
	if e.Removed, e.Held, err = l.remove(ctx); err != nil {
		return err
	}
	if stop(); l.node != nil {
		l.node.emptied(ctx, first, last)
	}
	return l.print(objects.Line{End: e})
}

// prepare creates the namespaces, and waits for what pods need in them.
func (l *load) prepare(ctx context.Context) error {
	n := len(l.todo.spaces)
	ctx, cancel := context.WithTimeout(ctx, within+time.Duration(n)*again)
	defer cancel()
	for i := range n {
		l.spaces = append(l.spaces, spaceName(l.study, l.id, strconv.Itoa(i)))
	}
	made := l.each(ctx, l.workers, n, nil, func(ctx context.Context, i int, due time.Time) (time.Duration, error) {
		name := l.spaces[i]
		body, err := namespace(&l.options, l.id, name, &l.todo.spaces[i])
		if err != nil {
			return 0, err
		}
		if _, err := l.api.do(ctx, verb{"create", "namespaces"}, due, http.MethodPost, "/api/v1/namespaces", body); err != nil {
			return 0, fmt.Errorf("cannot create the namespace %s: %w", name, err)
		}
		for l.todo.accounts {
			err := l.api.send(ctx, http.MethodGet, "/api/v1/namespaces/"+name+"/serviceaccounts/default", nil)
			if err == nil {
				break
			}
			if !isCode(err, http.StatusNotFound) && !passes(err) || ctx.Err() != nil {
				return 0, fmt.Errorf("the namespace %s has no default service account, which pods need: %w", name, err)
			}
			time.Sleep(again / 5)
		}
		return 0, nil
	})
	if made.done < n {
		return errors.New(cmp.Or(made.why, "the namespaces were not created in time"))
	}
	return l.api.take(&objects.Step{}) // what came before the first step
}

// step sends the requests of a step, and waits for their pods.
func (l *load) step(ctx context.Context, number int) (*objects.Step, error) {
	todo := &l.todo.steps[number-1]
	s := &objects.Step{Number: number, Objects: todo.objects, Begin: time.Since(l.begun).Seconds()}
	if l.node != nil && number == 1 {
		readings, err := l.node.plateau()
		if err != nil {
			return nil, err
		}
		s.Node = readings[len(readings)-1:]
	}
	var nodes *nodesReading
	if todo.pods {
		nodes = l.kubelets.read(ctx)
	}
	before := l.api.metrics(ctx)
	for i := range todo.batches {
		b := &todo.batches[i]
		l.send(ctx, b, s)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if last := i == len(todo.batches)-1; last || s.Ended {
			s.Server = l.api.metrics(ctx).since(before)
		}
		if s.Ended {
			break
		}
		l.settle(ctx, b, s)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if missing := todo.requests - s.Made; missing > 0 {
		s.Failed, s.Why = missing, cmp.Or(s.Why, fmt.Sprintf("%d of %d requests were not made within %s", missing, todo.requests, param.FormatDuration(l.timeout)))
	}
	if todo.pods {
		if err := l.started(ctx, s, nodes); err != nil {
			return nil, err
		}
	}
	if !s.Ended && todo.churn != nil {
		if err := todo.churn(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := l.api.take(s); err != nil {
		return nil, err
	}
	return s, l.plateau(ctx, s)
}

// plateau waits for the pause after a step, and reads the node.
func (l *load) plateau(ctx context.Context, s *objects.Step) error {
	if !inside.SleepUntil(ctx, time.Now().Add(l.pause)) {
		return context.Cause(ctx)
	}
	if l.node == nil {
		return nil
	}
	readings, err := l.node.plateau()
	s.Node = append(s.Node, readings...)
	return err
}

// onTime is the part of the time between two requests of a schedule by which half of them may be late, if it counts as kept: a tenth.
const onTime = 10

// send sends the requests of a batch.
func (l *load) send(ctx context.Context, b *batch, s *objects.Step) {
	begin := time.Now()
	sending, cancel := context.WithTimeout(ctx, l.timeout+b.takes)
	defer cancel()
	made := l.each(sending, l.workers, b.count, b.due, b.send)
	end := time.Now()
	took := end.Sub(begin)
	s.Asked += took.Seconds() * float64(min(l.workers, b.count))
	if b.takes > 0 && made.late <= b.takes/time.Duration(onTime*b.count) {
		s.Paced += min(took, b.takes).Seconds()
	}
	s.Made += made.done
	s.Create, s.Busy, s.Late = s.Create+took.Seconds(), s.Busy+made.busy.Seconds(), max(s.Late, made.late.Seconds())
	s.Why, s.Ended = cmp.Or(s.Why, made.why), made.done < b.count
}

// settle waits for the effect of a batch, and then pauses.
func (l *load) settle(ctx context.Context, b *batch, s *objects.Step) {
	if b.settle != nil {
		begin := time.Now()
		waiting, cancel := context.WithTimeout(ctx, cmp.Or(b.timeout, l.timeout))
		b.settle(waiting)
		s.Ended = waiting.Err() != nil && ctx.Err() == nil
		cancel()
		s.Settle += time.Since(begin).Seconds()
	}
	if !s.Ended && b.pause > 0 {
		inside.SleepUntil(ctx, time.Now().Add(b.pause))
		s.Paused += b.pause.Seconds()
	}
}

// started sums up the starts of a step's pods, before which the nodes were read.
func (l *load) started(ctx context.Context, s *objects.Step, before *nodesReading) (err error) {
	end := time.Now()
	all, message := l.pods.take()
	after := l.kubelets.read(ctx)
	l.pods.mu.Lock()
	s.Pods, s.Broken = l.pods.running, l.pods.broken
	l.pods.mu.Unlock()
	s.Kubelets = l.kubelets.since(before, after, all)
	if l.build != "" {
		if err := l.pulls(ctx, all); err != nil {
			return err
		}
	}
	if s.Start, err = starts(all, end, message); err != nil {
		return err
	}
	if n := s.Start.Never; n > 0 && s.Made > 0 {
		s.Ended = true
		what := "pods"
		if l.pods.guests {
			what = "guests"
		}
		s.Why = cmp.Or(s.Why, strings.TrimSuffix(fmt.Sprintf("%d of %d %s did not run in time: %s", n, len(all), what, message), ": "))
	}
	return nil
}

// outcome is what became of a number of requests.
type outcome struct {
	done, failed int
	busy         time.Duration // that they took, summed over them
	late         time.Duration // the median of how late they were begun
	why          string        // the first failure
}

// each calls f n times from the given number of workers, when a call is due or as fast as they can. It ends with ctx.
func (l *load) each(ctx context.Context, workers, n int, moment func(i int) time.Duration, f func(ctx context.Context, i int, due time.Time) (time.Duration, error)) (out outcome) {
	begin := time.Now()
	var next atomic.Int64
	var mu sync.Mutex
	late := objects.NewHistogram()
	var all sync.WaitGroup
	for range min(workers, n) {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				due := time.Now()
				if moment != nil {
					due = begin.Add(moment(i))
					if !inside.SleepUntil(ctx, due) {
						return
					}
				}
				behind := time.Since(due)
				busy, err := f(ctx, i, due)
				mu.Lock()
				out.busy += busy
				objects.Note(late, behind)
				switch {
				case err == nil:
					out.done++
				case ctx.Err() == nil || !errors.Is(err, context.DeadlineExceeded):
					out.failed++
					if out.why == "" {
						out.why = bounded(err.Error())
					}
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	out.late = time.Duration(late.ValueAtPercentile(50))
	return out
}

// forget asks for the end of the namespaces, and does not wait.
func (l *load) forget(ctx context.Context) error {
	for _, name := range l.spaces {
		if err := l.api.send(ctx, http.MethodDelete, "/api/v1/namespaces/"+name, nil); err != nil && !isCode(err, http.StatusNotFound) && !isCode(err, http.StatusConflict) {
			return err
		}
	}
	return nil
}

// remove deletes the namespaces and waits until they are gone. It returns how long that took, in seconds; -1 if they are not, and what holds
// one of them, if that is known.
func (l *load) remove(ctx context.Context) (took float64, held string, err error) {
	from := time.Now()
	limited, cancel := context.WithTimeout(ctx, gone)
	defer cancel()
	for {
		err := l.forget(limited)
		if err == nil {
			break
		}
		if !passes(err) {
			return 0, "", fmt.Errorf("cannot delete the namespaces: %w", err)
		}
		if !inside.SleepUntil(limited, time.Now().Add(again)) {
			return -1, bounded(err.Error()), nil
		}
	}
	for _, name := range l.spaces {
		if is, held := l.ends(limited, name); !is {
			if ctx.Err() != nil {
				return 0, "", context.Cause(ctx)
			}
			return -1, bounded(held), nil
		}
	}
	if l.volumes != nil { // the step may have ended before it removed its claims
		l.volumes.withdraw(from)
		if l.volumes.wait(limited, removed); limited.Err() != nil {
			return -1, "", nil
		}
	}
	return time.Since(from).Seconds(), "", nil
}

// ends waits until a namespace is gone. If it does not go, ends returns what holds the namespace, if that is known.
func (l *load) ends(ctx context.Context, name string) (is bool, held string) {
	var since time.Time // of what a finalizer holds
	last := ""
	for {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		err := l.api.get(ctx, "/api/v1/namespaces/"+name, usualType, maxList, n)
		switch why, lasting := kube.Held(n); {
		case isCode(err, http.StatusNotFound):
			return true, ""
		case err != nil:
		case !lasting:
			since, last = time.Time{}, why
		case why != last || since.IsZero():
			since, last = time.Now(), why
		}
		late := !since.IsZero() && time.Since(since) > l.stuck
		if late || !inside.SleepUntil(ctx, time.Now().Add(again)) {
			return false, strings.TrimSuffix(kube.Terminating(n, time.Now())+": "+last, ": ")
		}
	}
}
