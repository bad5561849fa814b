package study

import (
	"errors"
	"fmt"
	"slices"
)

// Check finds names that would mean two things in a study file; Parse prefers tare's own
// factors, then workloads' parameters, then sandboxes'.
func (c Catalogue) Check() error {
	var errs []error
	owner := map[string]string{}
	for _, p := range Factors() {
		owner[p.Name] = "tare itself"
	}
	owner[FactorWorkload], owner[FactorCounting] = "tare itself", "tare itself"
	for _, kind := range sortedKeys(c.Workloads) {
		for _, p := range c.Workloads[kind].Params {
			if slices.Contains(workloadKeys(), p.Name) {
				errs = append(errs, fmt.Errorf("workload %s: parameter %q is a key of every workload; give it another name", kind, p.Name))
			} else if slices.Contains(sentinelKeys(), p.Name) {
				errs = append(errs, fmt.Errorf("workload %s: parameter %q is a key of the section sentinel; give it another name", kind, p.Name))
			} else if o := owner[p.Name]; o == "tare itself" {
				errs = append(errs, fmt.Errorf("workload %s: parameter %q is a factor of %s; give it another name", kind, p.Name, o))
			}
		}
	}
	for _, kind := range sortedKeys(c.Workloads) {
		for _, p := range c.Workloads[kind].Params {
			if owner[p.Name] == "" {
				owner[p.Name] = "workload " + kind
			}
		}
	}
	for _, kind := range sortedKeys(c.Sandboxes) {
		for _, p := range c.Sandboxes[kind].Params {
			if o := owner[p.Name]; o != "" {
				errs = append(errs, fmt.Errorf("sandbox %s: parameter %q belongs to %s already; give it another name", kind, p.Name, o))
			}
		}
	}
	return errors.Join(errs...)
}
