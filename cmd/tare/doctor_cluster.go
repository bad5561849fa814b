package main

import (
	"context"
	"slices"
	"strings"

	"tare/cluster"
	"tare/record"
)

// examineCluster is doctor on a cluster.
func (a *app) examineCluster(ctx context.Context, k clusterFlags, asJSON bool) error {
	s := &cluster.Site{Image: k.image, Observe: k.observe, Namespace: k.Namespace, Say: a.say}
	if err := s.Reach(k.where()); err != nil {
		return err
	}
	ctx, stop := a.interruptible(ctx)
	defer stop()
	t := a.newTries(ctx, asJSON)
	seen, err := s.Examine(ctx, t.begin)
	if err := t.interrupted(err); err != nil {
		return err
	}
	found := make([]finding, len(seen))
	for i, f := range seen {
		found[i] = finding{Area: f.Area, Name: f.Name, Family: f.Family, Detail: bounded(f.Detail), Optional: f.Optional && f.Err != nil}
		if f.Err != nil {
			found[i].Problem = bounded(strings.TrimSpace(f.Err.Error()))
		}
	}
	if asJSON {
		err = a.printJSON(map[string]any{"server": s.Server(), "findings": found})
	} else {
		a.line("cluster %s", s.Server())
		a.printAreas(found)
	}
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(found, func(f finding) bool { return f.Area == cluster.AreaNamespace && f.Problem != "" }):
		return coded(exitHost, "no study can run in namespace %s; its line with -- says what to do", k.Namespace)
	case slices.ContainsFunc(found, func(f finding) bool { return f.Area == cluster.AreaQuota && f.Problem != "" }):
		return coded(exitHost, "no study fits in the namespace; the lines with -- say why")
	case !enoughCluster(found):
		return coded(exitHost, "a study needs all rights that are not optional, the baseline (process) and at least one RuntimeClass; the lines with -- say what is missing")
	case slices.ContainsFunc(found, func(f finding) bool { return f.Area == cluster.AreaPods && f.Problem != "" }):
		return coded(exitHost, "doctor could not test pods; the lines with -- say why")
	}
	return nil
}

// bounded cuts a text of the API server.
func bounded(s string) string {
	const most = 1000 // bytes
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + " [cut]"
	}
	return s
}

// enoughCluster says whether a study can compare something.
func enoughCluster(found []finding) bool {
	base, others := false, false
	for _, f := range found {
		switch {
		case f.Area == cluster.AreaPermission && f.Problem != "" && !f.Optional:
			return false
		case f.Area == cluster.AreaClass && f.Problem == "":
			base = base || f.Family == record.FamilyNative
			others = others || f.Family != record.FamilyNative
		}
	}
	return base && others
}
