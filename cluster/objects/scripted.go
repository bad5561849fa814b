package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"tare/cluster/pod"
	"tare/workload/inside"
	"tare/workload/objects"
	"tare/workload/objects/loadfile"
)

// scripted returns the script of a load that a file describes.
func scripted(l *load) (*script, error) {
	vars, err := objects.Vars(l.vars)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says where
	}
	plan, err := loadfile.Parse(l.file, vars)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says where
	}
	out := &script{spaces: plan.Spaces, pods: plan.HasPods(), accounts: plan.HasPods()}
	n := 0
	for i := range plan.Steps {
		p := &plan.Steps[i]
		s := step{objects: p.Objects, requests: p.Requests, pods: p.Pods}
		for range p.Batches {
			s.batches = append(s.batches, l.batch(&plan.Batches[n], n))
			n++
		}
		out.steps = append(out.steps, s)
	}
	return out, nil
}

// batch returns a batch of a file, by its number.
func (l *load) batch(b *loadfile.Batch, number int) batch {
	out := batch{count: b.Count, due: b.Due(number), takes: b.Takes(), timeout: b.Timeout, pause: b.Pause}
	out.send = func(ctx context.Context, i int, due time.Time) (time.Duration, error) {
		r, err := b.At(i)
		if err != nil {
			return 0, err
		}
		return l.request(ctx, b, r, fmt.Sprintf("%d-%d", number, i), due)
	}
	switch {
	case b.Wait && b.Verb == loadfile.Create:
		out.settle = func(ctx context.Context) {
			if l.pods != nil {
				l.pods.wait(ctx)
			}
		}
	case b.Wait && b.Verb == loadfile.Delete:
		out.settle = func(ctx context.Context) { l.gone(ctx, b) }
	}
	return out
}

// request sends one request. key is the key of its object in this load.
func (l *load) request(ctx context.Context, b *loadfile.Batch, r *loadfile.Request, key string, due time.Time) (time.Duration, error) {
	path := r.Kind.Path() + "/namespaces/" + l.spaces[r.Space] + "/" + r.Kind.Resource
	v := verb{string(b.Verb), r.Kind.Resource}
	switch b.Verb {
	case loadfile.Delete:
		policy := background
		if b.Wait {
			policy = foreground
		}
		busy, err := l.api.do(ctx, v, due, http.MethodDelete, path+"/"+r.Name, []byte(policy))
		if err == nil && l.pods != nil {
			l.pods.stopped(r.Pods)
		}
		return busy, err
	case loadfile.Get:
		return l.api.do(ctx, v, due, http.MethodGet, path+"/"+r.Name, nil)
	case loadfile.Patch:
		body, err := r.Change()
		if err != nil {
			return 0, err //nolint:wrapcheck // it says what
		}
		return l.api.do(ctx, v, due, http.MethodPatch, path+"/"+r.Name+r.Query(), body, r.Type)
	}
	body, err := l.dress(r, key)
	if err != nil {
		return 0, err
	}
	if r.Pods > 0 {
		l.pods.expect(key, due, r.Pods)
	}
	busy, err := l.api.do(ctx, v, due, http.MethodPost, path, body)
	if r.Pods > 0 {
		l.pods.answered(key, time.Now(), err)
	}
	return busy, err
}

// foreground is the body of a delete request that keeps the object until its pods are gone.
const foreground = `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Foreground"}`

// gone waits until the objects of a batch no longer exist. Only objects with pods, and claims, do not disappear immediately.
func (l *load) gone(ctx context.Context, b *loadfile.Batch) {
	for i := range b.Count {
		r, err := b.At(i)
		if err != nil {
			return // the script has deleted it already
		}
		if r.Kind.Pod == nil && r.Kind.Name != "PersistentVolumeClaim" {
			continue
		}
		path := r.Kind.Path() + "/namespaces/" + l.spaces[r.Space] + "/" + r.Kind.Resource + "/" + r.Name
		for !isCode(l.api.send(ctx, http.MethodGet, path, nil), http.StatusNotFound) {
			if !inside.SleepUntil(ctx, time.Now().Add(again)) {
				return
			}
		}
	}
}

// dress writes an object of a file, with what the load and the study's parameters add to it.
func (l *load) dress(r *loadfile.Request, key string) ([]byte, error) {
	labels(r.Fields, map[string]string{pod.LabelManaged: pod.Managed, pod.LabelStudy: l.study, labelLoad: l.id})
	if r.Kind.Pod != nil {
		of := r.Fields // what has the pods' metadata and spec
		for _, name := range r.Kind.Pod[:len(r.Kind.Pod)-1] {
			of = below(of, name)
		}
		labels(of, map[string]string{pod.LabelManaged: pod.Managed, pod.LabelStudy: l.study, labelLoad: l.id, labelObject: key})
		l.place(below(of, "spec"))
	}
	b, err := json.Marshal(r.Fields)
	if err != nil {
		return nil, fmt.Errorf("the %s %s: %w", r.Kind.Name, r.Name, err)
	}
	return b, nil
}

// below returns a mapping inside a mapping. It creates a missing one.
func below(of fields, name string) fields {
	m, ok := of[name].(fields)
	if !ok {
		m = fields{}
		of[name] = m
	}
	return m
}

func labels(of fields, more map[string]string) {
	all := below(below(of, "metadata"), "labels")
	for name, v := range more {
		all[name] = v
	}
}

// place puts a pod of a file where the study says, and has its containers wait.
func (l *load) place(spec fields) {
	own := podSpec(&l.options)
	if l.class != "" {
		spec["runtimeClassName"] = l.class
	}
	if l.nodes != objects.Untainted {
		for _, name := range []string{"nodeSelector", "affinity", "topologySpreadConstraints"} {
			delete(spec, name)
		}
		for _, name := range []string{"nodeSelector", "tolerations"} {
			if v, ok := own[name]; ok {
				spec[name] = v
			}
		}
	}
	if l.containers != objects.Pause {
		return
	}
	delete(spec, "initContainers")
	spec["terminationGracePeriodSeconds"] = own["terminationGracePeriodSeconds"] // the program does not end when it is asked to
	containers, _ := spec["containers"].([]any)
	for i, c := range containers {
		c, ok := c.(fields)
		if !ok {
			continue
		}
		c = maps.Clone(c)
		for _, name := range []string{"args", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "workingDir"} {
			delete(c, name)
		}
		c["image"], c["imagePullPolicy"], c["command"] = l.image, "IfNotPresent", []string{"/tare-pause"}
		if _, ok := c["name"]; !ok {
			c["name"] = "c" + strconv.Itoa(i)
		}
		containers[i] = c
	}
}
