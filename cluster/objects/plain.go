package objects

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"tare/param"
	"tare/workload/objects"
	"tare/workload/objects/loadfile"
	"tare/workload/objects/pace"
)

// uniform is a load of objects of one kind. The study sets their number.
type uniform struct {
	*load
	maker *maker
	built *builder // nil: the objects have tare's image
	again []uint16 // by object: how many times churn has replaced it
	next  int      // object that churn replaces next
}

func newUniform(l *load) (*uniform, pace.Pace, error) {
	rate, err := pace.Parse(l.rate)
	if err != nil {
		return nil, rate, fmt.Errorf("--rate: %w", err)
	}
	u := &uniform{load: l, again: make([]uint16, l.count)}
	if u.maker, err = newMaker(&l.options, l.id); err == nil && l.build != "" {
		u.built, err = newBuilder(&l.options, l.id)
	}
	return u, rate, err
}

// plain returns the script of such a load.
func plain(l *load) (*script, error) {
	u, rate, err := newUniform(l)
	if err != nil {
		return nil, err
	}
	out := &script{pods: objects.HasPods(l.kind), spaces: make([]loadfile.Space, l.namespaces)}
	out.accounts = out.pods
	for i := 1; i <= l.steps; i++ {
		from, to := objects.Target(l.count, l.steps, i-1), objects.Target(l.count, l.steps, i)
		b := batch{count: to - from, due: rate.Due(to-from, i), takes: rate.Takes(to - from)}
		b.send = func(ctx context.Context, i int, due time.Time) (time.Duration, error) {
			return u.create(ctx, from+i, due)
		}
		s := step{objects: to, requests: to - from, pods: out.pods}
		if s.pods {
			b.settle = func(ctx context.Context) { l.pods.wait(ctx) }
		}
		if l.churn > 0 {
			s.churn = u.replace
		}
		s.batches = []batch{b}
		out.steps = append(out.steps, s)
	}
	return out, nil
}

// name returns the name of the i-th object, from 0. Churn changes it.
func (u *uniform) name(i int) string { return fmt.Sprintf("o-%06d-%d", i, u.again[i]) }

// path returns the API path of the i-th object's kind in its namespace.
func (u *uniform) path(i int) string { return u.maker.path(u.spaceOf(i)) }

// spaceOf returns the namespace of the i-th object.
func (u *uniform) spaceOf(i int) string { return u.spaces[i%len(u.spaces)] }

// create creates the i-th object.
func (u *uniform) create(ctx context.Context, i int, due time.Time) (time.Duration, error) {
	name := u.name(i)
	if u.pods != nil {
		u.pods.expect(name, due, 1)
	}
	var body []byte
	kind := usualType
	if u.built == nil {
		body, kind = u.maker.body(name)
	} else {
		image, times, err := u.built.image(ctx, name)
		if u.pods.made(name, times); err != nil {
			u.pods.answered(name, time.Now(), err)
			return 0, err
		}
		body, due = withImage(u.maker.object(name), image), times.pushed
	}
	busy, err := u.api.do(ctx, verb{"create", u.maker.resource}, due, http.MethodPost, u.path(i), body, kind)
	if u.kind == objects.VM && isCode(err, http.StatusNotFound) {
		err = fmt.Errorf("the cluster does not serve the virtual machines of KubeVirt (kubevirt.io/v1): %w", err)
	}
	if u.pods != nil {
		u.pods.answered(name, time.Now(), err)
	}
	return busy, err
}

// background is the body of a delete request that does not wait for an object's pods.
const background = `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`

// replace deletes a part of the objects, creates others in their place and waits for their pods.
func (u *uniform) replace(ctx context.Context, s *objects.Step) error {
	from := time.Now()
	n := int(math.Ceil(float64(s.Objects) * u.churn / 100))
	limited, cancel := context.WithTimeout(ctx, 2*u.timeout)
	defer cancel()
	made := u.each(limited, u.workers, n, nil, func(ctx context.Context, i int, due time.Time) (time.Duration, error) {
		i = (u.next + i) % s.Objects
		busy, err := u.api.do(ctx, verb{"delete", u.maker.resource}, due, http.MethodDelete, u.path(i)+"/"+u.name(i), []byte(background))
		if err != nil {
			return busy, err
		}
		u.again[i]++
		more, err := u.create(ctx, i, time.Now())
		return busy + more, err
	})
	u.next = (u.next + n) % s.Objects
	if u.pods != nil {
		u.pods.wait(limited)
		u.pods.take()
		u.pods.mu.Lock()
		u.pods.running = s.Pods
		u.pods.mu.Unlock()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.Churn = time.Since(from).Seconds()
	if made.done < n || limited.Err() != nil {
		s.Ended = true
		s.Why = fmt.Sprintf("only %d of %d objects were replaced and ran within %s: %s", made.done, n, param.FormatDuration(2*u.timeout), made.why)
	}
	return nil
}
