package workload

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tare/param"
	"tare/record"
	"tare/volume"
)

// Dealer is a workload with parameters that copies of it must not have in common.
type Dealer interface {
	// Deal returns the parameters of the k-th of n copies, from 1, for the workload's, which it does
	// not change. n is 2 or more. The error names what does not suffice for all.
	Deal(v param.Values, k, n int) (param.Values, error)
}

// Dealt are the parameters of the k-th of n copies.
func Dealt(w Workload, v param.Values, k, n int) (param.Values, error) {
	if d, ok := w.(Dealer); ok && n > 1 {
		return d.Deal(v, k, n)
	}
	return v, nil
}

// more ends a placeholder for the range of Role.Addresses.
const more = "/more"

// Copies returns the roles of n copies of a workload: those of one, then those of the next. In the
// commands of a copy, {ROLE} is the copy's own. What copies would have to share is an error.
func Copies(w Workload, v param.Values, n int) ([]Role, error) {
	var out []Role
	for k := 1; k <= max(1, n); k++ {
		own, err := Dealt(w, v, k, n)
		if err != nil {
			return nil, err
		}
		roles, err := w.Roles(own)
		if err != nil {
			return nil, err
		}
		Rename(roles, func(name string) string { return record.CopyName(name, k) })
		out = append(out, roles...)
	}
	if n > 1 {
		if err := unshared(out); err != nil {
			return nil, &param.ValueError{Param: "copies", Err: fmt.Errorf("copies = %d: %w", n, err)}
		}
	}
	return out, nil
}

// Rename gives the roles of a workload other names, in each other's commands too.
func Rename(roles []Role, as func(name string) string) {
	var pairs []string
	for i := range roles {
		name, own := roles[i].Name, as(roles[i].Name)
		pairs = append(pairs, "{"+name+"}", "{"+own+"}", "{"+name+more+"}", "{"+own+more+"}")
	}
	names := strings.NewReplacer(pairs...)
	for i := range roles {
		r := &roles[i]
		r.Name, r.Args = as(r.Name), slices.Clone(r.Args)
		for j := range r.Args {
			r.Args[j] = names.Replace(r.Args[j])
		}
	}
}

// unshared refuses copies that would write to the same place, which is the user's own, and modes
// that start sandboxes one after another.
func unshared(roles []Role) error {
	owner := map[string]int{} // the copy that has a device
	for i := range roles {
		if roles[i].Mode != Exec {
			return errors.New("the workload starts its sandboxes itself; leave copies out for it")
		}
		_, k := record.CopyOf(roles[i].Name)
		for _, v := range roles[i].Volumes {
			if v.Medium == volume.Bind && !v.ReadOnly {
				return fmt.Errorf("they would all write to %s; make it read-only, or leave it out", v.Host)
			}
			if first := owner[v.Device]; v.Medium == volume.Device && first > 0 && first != k {
				return fmt.Errorf("they would share %s; name a device for each copy", v.Device)
			}
			owner[v.Device] = k
		}
	}
	return nil
}
