package objects

import (
	"fmt"
	"strings"
	"time"

	"tare/param"
	"tare/workload/objects/loadfile"
	"tare/workload/objects/pace"
)

// expect is what a load with certain parameters does, if nothing ends it.
type expect struct {
	namespaces int
	steps      []loadfile.Step
	pods       bool
	takes      time.Duration // about how long, for the plan
	paused     time.Duration // of it, that nothing happens; and waits that are longer than usual
}

// expected says what a load on objects of a kind with these parameters does.
func expected(v param.Values, kind string) (*expect, error) {
	if kind != Claim && v.Str(loadfile.Param) != "" {
		return expectedOf(v)
	}
	rate, err := pace.Parse(v.Str("rate"))
	if err != nil {
		return nil, fmt.Errorf("rate: %w", err)
	}
	count, steps := v.Int("count"), v.Int("steps")
	e := &expect{namespaces: v.Int("namespaces"), pods: HasPods(kind), takes: namespacesGo}
	before := 0
	for i := 1; i <= steps; i++ {
		s := loadfile.Step{Objects: Target(count, steps, i), Pods: e.pods, Changes: true}
		s.Requests = s.Objects - before
		s.Rate = rate.Rate(s.Requests)
		e.steps = append(e.steps, s)
		if kind == Claim { // its steps begin with none, and Roles has an estimate of its own
			continue
		}
		before = s.Objects
		again := int(float64(s.Objects) * v.Float("churn") / 100)
		e.takes += max(time.Duration(s.Requests+2*again)*eachRequest, rate.Takes(s.Requests)) + v.Duration("pause")
		e.paused += v.Duration("pause")
		if s.Pods {
			e.takes += podsTake(s.Requests+again, v)
		}
	}
	return e, nil
}

// expectedOf says what the load of a file does.
func expectedOf(v param.Values) (*expect, error) {
	p, err := planOf(v)
	if err != nil {
		return nil, err
	}
	e := &expect{namespaces: len(p.Spaces), steps: p.Steps, pods: p.HasPods(), takes: namespacesGo}
	for _, b := range p.Batches {
		e.takes += max(time.Duration(b.Count)*eachRequest, b.Takes()) + b.Pause
		e.paused += b.Takes() + b.Pause + b.Timeout
	}
	for _, s := range p.Steps {
		if s.Pods {
			e.takes += podsTake(s.Requests, v) // as if each object had a pod
		}
	}
	return e, nil
}

// Estimates for the plan: about what the lab takes (docs/workloads/objects.md), whose two nodes share two processors.
const (
	namespacesGo  = 5500 * time.Millisecond // until they are gone, without pods
	eachRequest   = 5 * time.Millisecond
	eachStep      = 2 * time.Second        // of pods: a kubelet looks every second whether they run
	eachPod       = 450 * time.Millisecond // until it runs, and at the end until it is gone
	fullNodes     = 220 * eachPod
	eachSimulated = 30 * time.Millisecond
	eachMachine   = 200 * time.Millisecond // of KubeVirt, whose controller writes each several times
)

// podsTake is about how long the pods of a step take until they run, and at the end until they are gone.
func podsTake(pods int, v param.Values) time.Duration {
	each := eachSimulated
	if v.Str("object") == VM {
		each = eachMachine
	}
	took := eachStep + time.Duration(pods)*each
	if v.Str("nodes") != Simulated {
		// More pods than two nodes take have more nodes, which work at the same time.
		took = min(took+fullNodes, eachStep+time.Duration(pods)*eachPod)
	}
	return took
}

// planOf reads the file.
func planOf(v param.Values) (*loadfile.Plan, error) {
	vars, err := Vars(v.Str("vars"))
	if err != nil {
		return nil, &param.ValueError{Param: "vars", Err: err}
	}
	return loadfile.Parse(v.Str(loadfile.Param), vars) //nolint:wrapcheck // its errors have a place
}

// Vars reads NAME=VALUE NAME=VALUE.
func Vars(text string) (map[string]string, error) {
	vars := map[string]string{}
	for _, w := range strings.Fields(text) {
		name, value, ok := strings.Cut(w, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("vars: %q is not a pair; write NAME=VALUE", w)
		}
		vars[name] = value
	}
	return vars, nil
}

// open reports whether requests are due at moments, and so how many there are in a second is given.
func (e *expect) open() bool {
	for _, s := range e.steps {
		if s.Rate == 0 {
			return false
		}
	}
	return true
}

// waits is how long all steps may wait, with so much for one part of one.
func (e *expect) waits(timeout time.Duration) time.Duration {
	return time.Duration(len(e.steps))*2*timeout*2 + e.paused
}
