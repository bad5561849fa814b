package main

import (
	"errors"
	"fmt"
	"slices"
)

// mustRun returns an error unless all daemons that have been started run.
func (l *lab) mustRun() error {
	all, err := l.recorded()
	if err != nil {
		return err
	}
	alive := map[string]bool{}
	for _, r := range all {
		if alive[r.Name] = r.alive(); !alive[r.Name] {
			return fmt.Errorf("%s has ended; look at %s, then run down and up", r.Name, l.log(r.Name))
		}
	}
	// The last one that up starts.
	if last := nodes()[len(nodes())-1].name + "-kubelet"; !alive[last] {
		return errors.New("no cluster runs; run up")
	}
	return nil
}

// runs says whether a daemon runs.
func (l *lab) runs(name string) (bool, error) {
	all, err := l.recorded()
	return slices.ContainsFunc(all, func(r record) bool { return r.Name == name && r.alive() }), err
}

// status prints a line for each daemon, and where the kubeconfig is.
func (l *lab) status() error {
	all, err := l.recorded()
	if err != nil {
		return err
	}
	for _, r := range all {
		state := "ended"
		if r.alive() {
			state = "runs"
		}
		fmt.Fprintf(l.out, "%-6s %7d  %s\n", state, r.PID, r.Name)
	}
	if err := l.mustRun(); err != nil {
		return err
	}
	fmt.Fprintf(l.out, "kubeconfig: %s\nregistry:   %s\n", l.kubeconfig(), l.registryName())
	return nil
}
