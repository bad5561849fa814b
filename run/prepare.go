package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tare/param"
	"tare/record"
	"tare/sandbox"
	"tare/study"
	"tare/workload"
)

// Needs lists the host programs that the study's workloads run, sorted. The
// cells must resolve, which Parse has checked.
func (e *Engine) Needs() ([]string, error) {
	found := map[string]bool{}
	for i := range e.Study.Strata {
		_, roles, err := e.rolesOf(e.Study.Strata[i].Cells[0])
		if err != nil {
			return nil, err
		}
		for _, r := range roles {
			for _, n := range r.Needs {
				found[n] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func (e *Engine) rolesOf(cell record.Cell) (study.Resolved, []workload.Role, error) {
	res, err := e.Study.Resolve(e.Catalogue, cell)
	if err != nil {
		return res, nil, err
	}
	w := e.Workloads[res.Workload.Kind]
	if w == nil {
		return res, nil, fmt.Errorf("there is no workload %q", res.Workload.Kind)
	}
	roles, err := w.Roles(res.Params)
	return res, roles, err
}

// Skips says which cells this host cannot run, and why, by trying each sandbox
// that the study names. missing are the host programs that were not found,
// processors how many the host has.
func (e *Engine) Skips(ctx context.Context, missing []string, processors int) ([]record.Skip, error) {
	checked := map[string]error{}
	check := func(kind string) error {
		if err, ok := checked[kind]; ok {
			return err
		}
		k := e.Kinds[kind]
		if k == nil {
			checked[kind] = fmt.Errorf("there is no sandbox %q", kind)
		} else {
			checked[kind] = k.Check(ctx)
		}
		return checked[kind]
	}
	var out []record.Skip
	for i := range e.Study.Strata {
		s := &e.Study.Strata[i]
		for _, cell := range s.Cells {
			res, roles, err := e.rolesOf(cell)
			if err != nil {
				return nil, err
			}
			if why := e.whyNot(res, roles, check, missing, processors); why != "" {
				out = append(out, record.Skip{Cell: cell, Reason: why})
			}
		}
	}
	return out, ctx.Err()
}

func (e *Engine) whyNot(res study.Resolved, roles []workload.Role, check func(string) error, missing []string, processors int) string {
	for _, r := range roles {
		for _, n := range r.Needs {
			if slices.Contains(missing, n) {
				return fmt.Sprintf("%s is not installed; apt-get install %s", n, n)
			}
		}
		if r.Mode != workload.Exec {
			if k, ok := e.Kinds[res.Sandbox]; ok {
				if _, ok := k.(sandbox.Launcher); !ok {
					return fmt.Sprintf("sandbox %s cannot be launched with a command as its whole life", res.Sandbox)
				}
			}
		}
	}
	kinds := []string{res.Sandbox}
	if len(roles) > 1 && res.Isolate != "both" && res.Sandbox != "process" {
		kinds = append(kinds, "process") // the other end
	}
	for _, k := range kinds {
		if err := check(k); err != nil {
			return named(k, strings.TrimSpace(err.Error()))
		}
	}
	if res.CPUs != "" {
		if cpus, err := param.ParseCPUs(res.CPUs); err == nil && cpus[len(cpus)-1] >= processors {
			return fmt.Sprintf("cpus %s: this host has the processors 0-%d", res.CPUs, processors-1)
		}
	}
	return ""
}

// named puts the sandbox's name before what its Check says, unless Check has
// said it, as most do.
func named(kind, text string) string {
	if rest, ok := strings.CutPrefix(text, kind); ok && strings.HasPrefix(strings.TrimPrefix(rest, ":"), " ") {
		return text
	}
	return kind + ": " + text
}

// Expected is how long a trial of the cell should take before any has run: the
// workload's own word, and what starting and stopping sandboxes usually takes.
func (e *Engine) Expected(cell record.Cell) time.Duration {
	const overhead = 700 * time.Millisecond
	_, roles, err := e.rolesOf(cell)
	if err != nil {
		return overhead
	}
	return overhead + workload.Total(roles)
}
