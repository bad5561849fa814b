package main

import (
	"context"
	"errors"
	"fmt"

	"tare/cluster"
	"tare/cluster/kubevirt"
	"tare/cluster/objects"
	"tare/cluster/pod"
	"tare/record"
	"tare/report/terminal"
	"tare/report/text"
	"tare/report/words"
	"tare/sandbox"
	"tare/site"
	"tare/study"
	"tare/trial"
)

// checkCluster refuses flags of a plan that do not go with a cluster.
func (f planFlags) checkCluster() error {
	switch {
	case f.on != onCluster:
		return coded(exitUsage, "--manifests and --dry-run are for a cluster; add --on k8s")
	case f.host != "":
		return coded(exitUsage, "--host and --on exclude each other; leave one of them out")
	case f.from != "":
		return coded(exitUsage, "--from needs no cluster; leave --on k8s out")
	case f.dryRun != "" && f.dryRun != "server":
		return coded(exitUsage, "--dry-run=%s: write --dry-run=server; --manifests alone asks no server", f.dryRun)
	case f.manifests && f.json:
		return coded(exitUsage, "--manifests prints YAML; leave --json out")
	}
	return nil
}

// planOnCluster plans a study for a cluster, which is asked only if its answer is wanted.
func (a *app) planOnCluster(ctx context.Context, file string, f planFlags) error {
	s := &cluster.Site{Image: f.cluster.image, Workloads: workloads(), Apps: f.cluster.apps, Observe: f.cluster.observe, Namespace: f.cluster.Namespace, AtOnce: f.cluster.atOnce, Say: a.say}
	offers := offeredWithout
	var has *objects.Cluster
	switch {
	case f.dryRun != "":
		if err := s.Reach(f.cluster.where()); err != nil {
			return err
		}
		if err := s.Discover(ctx); err != nil {
			return err
		}
		offers, has = func() (study.Catalogue, error) { return offeredIn(s.Kinds()), nil }, s.Has()
	case !f.manifests && !f.dry:
		var err error
		if s, err = a.cluster(ctx, f.cluster); err != nil {
			return err
		}
		offers, has = a.offers, a.has
	}
	st, cat, err := readStudyOf(offers, has, file, f.sets)
	if err != nil {
		return err
	}
	a.sayDropped(st)
	r := site.Request{Study: st, Catalogue: cat, Wait: f.wait}
	if !f.manifests && f.dryRun == "" {
		var known site.Preview
		if f.dry {
			s.Without(st)
			known.Skips, err = s.Skips(r)
			known.Skips = append(known.Skips, trial.Uncounted(st)...)
		} else {
			known, err = a.preview(ctx, f.on, "", f.cluster, r, f.json)
		}
		if err != nil {
			return err
		}
		view, err := planView(r, known, s.Expected)
		if err != nil {
			return err
		}
		if f.json {
			return a.printJSON(view)
		}
		return text.WritePlan(a.stdout, view, a.textOptions(""))
	}
	if f.dryRun == "" {
		s.Without(st)
	}
	all, skips, err := s.Manifests(r, workloads())
	if err != nil {
		return err
	}
	a.sayWithout(skips)
	if f.dryRun != "" {
		return errors.Join(a.judged(ctx, s, all, f), s.Fits(ctx, r, workloads()))
	}
	return a.printManifests(all, nil)
}

// sayWithout says which cells have no pods.
func (a *app) sayWithout(skips []record.Skip) {
	if len(skips) > 0 {
		a.say("%s cannot run on a cluster:", words.Count(len(skips), "cell"))
		a.printSkips(skips)
	}
}

// judged asks the API server, and prints what it says.
func (a *app) judged(ctx context.Context, s *cluster.Site, all []cluster.Manifest, f planFlags) error {
	ctx, stop := a.interruptible(ctx)
	defer stop()
	said, err := s.Judge(ctx, all)
	if err != nil {
		return err
	}
	refused := 0
	for _, j := range said {
		if j.Refused != "" {
			refused++
		}
	}
	switch {
	case f.json:
		err = a.printJSON(said)
	case f.manifests:
		err = a.printManifests(all, said)
	default:
		for _, j := range said {
			fmt.Fprintln(a.stdout, judgement(j, j.About))
		}
	}
	if err == nil && refused > 0 {
		err = coded(exitHost, "the API server refuses %d of %s; the reasons are above", refused, words.Count(len(said), "object"))
	}
	return err
}

// judgement returns a line about an object and its purpose.
func judgement(j cluster.Judgement, about string) string {
	what := j.Kind + " " + j.Name
	if about != "" {
		what += " (" + about + ")"
	}
	switch {
	case j.Refused != "":
		return "refused  " + what + ": " + terminal.Line(j.Refused)
	case j.Unjudged != "":
		return "unjudged " + what + ": " + terminal.Line(j.Unjudged)
	case j.Warning != "":
		return "accepted " + what + ", but " + terminal.Line(j.Warning)
	}
	return "accepted " + what
}

// printManifests prints objects, each with what the server says of it if that is known.
func (a *app) printManifests(all []cluster.Manifest, said []cluster.Judgement) error {
	for i, m := range all {
		t, err := m.Text()
		if err != nil {
			return err
		}
		if i > 0 {
			t = "---\n" + t
		}
		if said != nil {
			t += "# " + judgement(said[i], "") + "\n"
		}
		fmt.Fprint(a.stdout, t)
	}
	return nil
}

// offeredWithout is what a study can be made of on a cluster that is not known: each level may be a
// RuntimeClass.
func offeredWithout() (study.Catalogue, error) {
	cat := offeredIn([]sandbox.Kind{pod.New(pod.Class{Name: sandbox.Native}, nil, nil, nil), kubevirt.New(nil, nil, nil, nil)})
	cat.Others = pod.ParamsOf
	cat.Elsewhere = append(cat.Elsewhere, pod.ParamsOf("kata")...)
	return cat, nil
}
