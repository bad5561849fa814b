package objects

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tare/workload/inside"
	"tare/workload/objects"
)

// load is one run of the generator.
type load struct {
	options
	api   *api
	id    string // of the load: its objects bear it
	maker *maker
	pods  *pods // nil: the objects have none
	// Of claims.
	volumes *volumes
	users   *maker // of the pods that use claims; nil: there are none
	class   *storageClass
	print   func(objects.Line) error

	spaces []string // namespaces that exist
	again  []uint16 // by object: how many times churn has replaced it
	next   int      // object that churn replaces next
	begun  time.Time
}

func newLoad(o options, a *api, print func(objects.Line) error) *load {
	l := &load{options: o, api: a, id: strings.ToLower(rand.Text()[:6]), print: print, again: make([]uint16, o.count)}
	switch {
	case objects.HasPods(o.kind):
		l.pods = newPods()
	case o.kind == objects.Claim:
		l.volumes = newVolumes(&o, l.id)
	}
	return l
}

// How long namespaces may take to come, and to go with their pods. quick is for a load that is told to end: it only asks.
const (
	within = time.Minute
	gone   = 8 * time.Minute
	quick  = 1500 * time.Millisecond
)

func (l *load) run(ctx context.Context) (err error) {
	if l.maker, err = newMaker(&l.options, l.id); err != nil {
		return err
	}
	step := l.step
	if l.volumes != nil {
		if err := l.prepareClaims(ctx); err != nil {
			return err
		}
		step = l.claimStep
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
	if l.volumes != nil {
		if err = l.volumes.watch(watching, l.api, labelLoad+"="+l.id); err != nil {
			return fmt.Errorf("cannot follow the claims and their volumes: %w", err)
		}
	}
	l.begun = time.Now()
	for i := 1; i <= l.steps; i++ {
		s, err := step(ctx, i)
		if err != nil {
			return err
		}
		if err := l.print(objects.Line{Step: s}); err != nil {
			return err
		}
		if s.Ended {
			break
		}
	}
	if err = l.print(objects.Line{Measured: true}); err != nil {
		return err
	}
	user, system := inside.CPU()
	e := &objects.End{Namespaces: len(l.spaces), User: user.Seconds(), System: system.Seconds(), Memory: peak()}
	if e.Removed, err = l.remove(ctx); err != nil {
		return err
	}
	return l.print(objects.Line{End: e})
}

// prepare creates the namespaces, and waits for what pods need in them.
func (l *load) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for i := range l.namespaces {
		name := spaceName(l.study, l.id, strconv.Itoa(i))
		body, err := namespace(&l.options, l.id, name)
		if err != nil {
			return err
		}
		l.spaces = append(l.spaces, name)
		if _, err := l.api.do(ctx, verb{"create", "namespaces"}, time.Now(), http.MethodPost, "/api/v1/namespaces", body); err != nil {
			return fmt.Errorf("cannot create the namespace %s: %w", name, err)
		}
	}
	for _, name := range l.spaces {
		for l.pods != nil || l.users != nil {
			err := l.api.send(ctx, http.MethodGet, "/api/v1/namespaces/"+name+"/serviceaccounts/default", nil)
			if err == nil {
				break
			}
			if !isCode(err, http.StatusNotFound) && !passes(err) || ctx.Err() != nil {
				return fmt.Errorf("the namespace %s has no default service account, which pods need: %w", name, err)
			}
			time.Sleep(again / 5)
		}
	}
	_, _, err := l.api.take() // what came before the first step
	return err
}

// name is that of the i-th object, from 0, which may have been replaced.
func (l *load) name(i int) string { return fmt.Sprintf("o-%06d-%d", i, l.again[i]) }

// path is that of the i-th object's kind in its namespace.
func (l *load) path(i int) string { return l.maker.path(l.spaceOf(i)) }

// spaceOf is the namespace of the i-th object.
func (l *load) spaceOf(i int) string { return l.spaces[i%len(l.spaces)] }

// step creates the objects of a step, and waits for their pods.
func (l *load) step(ctx context.Context, number int) (*objects.Step, error) {
	from := objects.Target(l.count, l.steps, number-1)
	s := &objects.Step{Number: number, Objects: objects.Target(l.count, l.steps, number)}
	before := l.api.metrics(ctx)
	begin := time.Now()
	s.Begin = begin.Sub(l.begun).Seconds()
	creating, cancel := context.WithTimeout(ctx, l.timeout)
	made := l.each(creating, l.workers, s.Objects-from, l.rate, func(ctx context.Context, i int, due time.Time) (time.Duration, error) {
		return l.create(ctx, "create", from+i, due)
	})
	cancel()
	created := time.Now()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	after := l.api.metrics(ctx)
	s.Made, s.Failed = made.done, made.failed
	s.Create, s.Busy, s.Late, s.Why = created.Sub(begin).Seconds(), made.busy.Seconds(), made.late.Seconds(), made.why
	s.Server = after.since(before)
	if missing := s.Objects - from - s.Made; missing > 0 {
		s.Ended, s.Failed = true, missing
		if s.Why == "" {
			s.Why = fmt.Sprintf("%d of %d objects were not created within %s", missing, s.Objects-from, l.timeout)
		}
	}
	if l.pods != nil {
		if err := l.settle(ctx, s, created); err != nil {
			return nil, err
		}
	}
	if !s.Ended && l.churn > 0 {
		if err := l.replace(ctx, s); err != nil {
			return nil, err
		}
	}
	var limited time.Duration
	var err error
	s.Calls, limited, err = l.api.take()
	s.Limited = limited.Seconds()
	return s, err
}

// settle waits until the step's pods run.
func (l *load) settle(ctx context.Context, s *objects.Step, created time.Time) (err error) {
	waiting, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	l.pods.wait(waiting)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	end := time.Now()
	all := l.pods.take()
	last := created
	for _, x := range all {
		last = later(x.ran, last)
	}
	s.Settle = last.Sub(created).Seconds()
	l.pods.mu.Lock()
	message := l.pods.message
	s.Pods, s.Broken = l.pods.running, l.pods.broken
	l.pods.mu.Unlock()
	if s.Start, err = starts(all, end, message); err != nil {
		return err
	}
	if s.Start.Never > 0 {
		s.Ended, s.Settle = true, end.Sub(created).Seconds()
		if s.Why == "" {
			s.Why = strings.TrimSuffix(fmt.Sprintf("%d of %d pods did not run within %s: %s", s.Start.Never, len(all), l.timeout, message), ": ")
		}
	}
	return nil
}

// replace deletes a part of the objects, creates others in their place and waits for their pods.
func (l *load) replace(ctx context.Context, s *objects.Step) error {
	from := time.Now()
	n := int(math.Ceil(float64(s.Objects) * l.churn / 100))
	limited, cancel := context.WithTimeout(ctx, 2*l.timeout)
	defer cancel()
	made := l.each(limited, l.workers, n, 0, func(ctx context.Context, i int, due time.Time) (time.Duration, error) {
		i = (l.next + i) % s.Objects
		busy, err := l.api.do(ctx, verb{"delete", l.maker.resource}, due, http.MethodDelete, l.path(i)+"/"+l.name(i), []byte(`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`))
		if err != nil {
			return busy, err
		}
		l.again[i]++
		more, err := l.create(ctx, "recreate", i, time.Now())
		return busy + more, err
	})
	l.next = (l.next + n) % s.Objects
	if l.pods != nil {
		l.pods.wait(limited)
		l.pods.take()
		l.pods.mu.Lock()
		l.pods.running = s.Pods
		l.pods.mu.Unlock()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.Churn = time.Since(from).Seconds()
	if made.done < n || limited.Err() != nil {
		s.Ended = true
		s.Why = fmt.Sprintf("only %d of %d objects were replaced, and ran, within %s: %s", made.done, n, 2*l.timeout, made.why)
	}
	return nil
}

// create creates the i-th object.
func (l *load) create(ctx context.Context, as string, i int, due time.Time) (time.Duration, error) {
	name := l.name(i)
	if l.pods != nil {
		l.pods.expect(name, due)
	}
	busy, err := l.api.do(ctx, verb{as, l.maker.resource}, due, http.MethodPost, l.path(i), l.maker.object(name))
	if l.pods != nil {
		l.pods.answered(name, time.Now(), err)
	}
	return busy, err
}

// outcome is what became of a number of requests.
type outcome struct {
	done, failed int
	busy         time.Duration // that they took, summed over them
	late         time.Duration // the median of how late they were begun
	why          string        // the first failure
}

// each calls f n times, by so many workers: at a rate, or as fast as they can. It ends with ctx.
func (l *load) each(ctx context.Context, workers, n int, rate float64, f func(ctx context.Context, i int, due time.Time) (time.Duration, error)) (out outcome) {
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
				if rate > 0 {
					due = begin.Add(time.Duration(float64(i) / rate * float64(time.Second)))
					if !sleepUntil(ctx, due) {
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

func sleepUntil(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
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

// remove deletes the namespaces and waits until they are gone. It returns how long that took, in seconds; -1 if they are not.
func (l *load) remove(ctx context.Context) (float64, error) {
	from := time.Now()
	limited, cancel := context.WithTimeout(ctx, gone)
	defer cancel()
	for {
		err := l.forget(limited)
		if err == nil {
			break
		}
		if !passes(err) {
			return 0, fmt.Errorf("cannot delete the namespaces: %w", err)
		}
		if !sleepUntil(limited, time.Now().Add(again)) {
			return -1, nil
		}
	}
	for _, name := range l.spaces {
		for {
			err := l.api.send(limited, http.MethodGet, "/api/v1/namespaces/"+name, nil)
			if isCode(err, http.StatusNotFound) {
				break
			}
			if !sleepUntil(limited, time.Now().Add(again)) {
				if ctx.Err() != nil {
					return 0, context.Cause(ctx)
				}
				return -1, nil
			}
		}
	}
	if l.volumes != nil { // of a step that ended before them
		l.volumes.withdraw(from)
		if l.volumes.wait(limited, removed); limited.Err() != nil {
			return -1, nil
		}
	}
	return time.Since(from).Seconds(), nil
}
