package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"strings"
	"sync"
	"time"
)

// lab simulates cases.
type lab struct {
	options
	progress io.Writer
	pop      *population
	shipped  []rule
	studies  int // simulated so far
	trials   int
}

func newLab(o options, progress io.Writer) (*lab, error) {
	all, err := readComponents(componentsFile)
	if err != nil {
		return nil, err
	}
	l := &lab{options: o, progress: progress}
	if l.pop, err = newPopulation(all); err != nil {
		return nil, err
	}
	l.shipped, err = shippedRules(o.root)
	return l, err
}

// unit is a case: many studies of one shape, under one rule, on one machine.
type unit struct {
	section  string
	shape    shape
	rule     rule
	machine  machine
	only     float64 // effect of each treatment; 0: mixed
	studies  int
	promised bool // figures outside their band fail the command
	most     int  // blocks that a stratum may have; known when it is simulated
}

func (u *unit) name() string {
	return fmt.Sprintf("%s %s, %s, %s", u.section, u.shape, u.rule.name, u.machine.name)
}

// seed is that of the i-th study. It does not depend on the rule, so that all rules meet the
// same studies.
func (u *unit) seed(seed uint64, i int) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s, %s, %g, %d", seed, u.shape, u.machine.name, u.only, i)
	return h.Sum64()
}

// one simulates the i-th study of a case.
func (l *lab) one(u *unit, p *player, i int) (*score, error) {
	seed := u.seed(l.seed, i)
	w := newWorld(l.pop, u.machine, u.shape, seed, effects{aa: i%2 == 1, only: u.only})
	if u.section == comparisons {
		s, err := p.compare(w, seed, i)
		if err != nil {
			return nil, fmt.Errorf("%s, pair %d, seed %d: %w", u.name(), i, l.seed, err)
		}
		return s, nil
	}
	out, err := p.play(w, seed)
	if err != nil {
		return nil, fmt.Errorf("%s, study %d, seed %d: %w", u.name(), i, l.seed, err)
	}
	return judge(out), nil
}

// run simulates the studies of a case, some at a time. What it returns does not depend on how
// many.
func (l *lab) run(ctx context.Context, u *unit) (*total, error) {
	p, err := newPlayer(u.shape, u.rule)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	n := max(2, int(float64(u.studies)*l.scale))
	t := &total{scores: make([]*score, n)}
	errs := make([]error, l.workers)
	var wg sync.WaitGroup
	for k := range l.workers {
		wg.Go(func() {
			for i := k; i < n && ctx.Err() == nil && errs[k] == nil; i += l.workers {
				t.scores[i], errs[k] = l.one(u, p, i)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	for _, s := range t.scores {
		t.trials += s.trials
	}
	t.pool()
	t.best()
	l.studies, l.trials = l.studies+n, l.trials+t.trials
	fmt.Fprintf(l.progress, "truth: %s: %s; %d studies, %d trials, %s\n", u.name(), t.brief(), n, t.trials, time.Since(begun).Round(10*time.Millisecond))
	return t, nil
}

// brief has what a reader of the progress looks for first.
func (t *total) brief() string {
	var words []string
	for _, c := range []struct {
		name string
		q    quantity
	}{{"rows", covered}, {"noisiest", coveredNoisy}, {"tables", coveredTable}, {"A/A called", equalCalled}} {
		if v, e := t.value(c.q); !math.IsNaN(v) {
			words = append(words, fmt.Sprintf("%s %.1f ±%.1f", c.name, 100*v, 100*e))
		}
	}
	return strings.Join(words, ", ")
}

// all simulates the cases that the user picked.
func (l *lab) all(ctx context.Context, units []unit) ([]unit, []*total, error) {
	var of []unit
	var out []*total
	for i := range units {
		if !l.only.MatchString(units[i].name()) {
			continue
		}
		st, err := units[i].shape.study(units[i].rule)
		if err != nil {
			return nil, nil, err
		}
		units[i].most = most(st)
		t, err := l.run(ctx, &units[i])
		if err != nil {
			return nil, nil, err
		}
		of, out = append(of, units[i]), append(out, t)
	}
	return of, out, nil
}
