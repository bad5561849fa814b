package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"tare/host/image"
	"tare/host/state"
	"tare/site/claim"
)

func (a *app) cleanVerb() *cobra.Command {
	var dry, asJSON bool
	var on, study string
	var k clusterFlags
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what a killed run left on this host",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			clean := a.cleanHere
			switch {
			case on == onCluster:
				clean = func(ctx context.Context, dry bool) ([]claim.Leftover, error) { return k.clean(ctx, study, dry) }
			case on == "" && study != "":
				return coded(exitUsage, "--study %s needs --on k8s; a study on this host ends with its tare", study)
			case on != "":
				return coded(exitUsage, "--on %s: write --on k8s to clean a cluster, or leave it out to clean this host", on)
			}
			found, err := clean(cmd.Context(), dry)
			if asJSON {
				return errors.Join(a.printJSON(asRemovals(found, dry)), err, stays(found))
			}
			verb := "removed"
			if dry {
				verb = "would remove"
			}
			for _, l := range found {
				if l.Err != nil {
					a.line("%s", l.Why(dry))
					continue
				}
				a.line("%s %s %s", verb, l.Kind, l.Name)
			}
			if len(found) == 0 && err == nil {
				a.line("nothing is left of earlier runs")
			}
			return errors.Join(err, stays(found))
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list only")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&on, "on", "", "k8s: clean a Kubernetes cluster (default: this host)")
	cmd.Flags().StringVar(&study, "study", "", "with --on k8s: remove only the study with this `ID`, even if it is running")
	k.choose(cmd.Flags())
	cmd.Flags().Lookup("namespace").Usage = "with --on k8s: remove what studies with -n left in this namespace (default: the namespaces that studies created)"
	return cmd
}

// stays says how much cannot be removed; nil: nothing. What is kept because somebody may need it does not count.
func stays(found []claim.Leftover) error {
	n := 0
	for _, l := range found {
		if l.Err != nil && !l.Kept {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return coded(exitHost, "%d of %d cannot be removed; the reasons are above", n, len(found))
}

// cleanHere cleans this host.
func (a *app) cleanHere(ctx context.Context, dry bool) ([]claim.Leftover, error) {
	here := a.host()
	lock, err := here.Hold(ctx, "clean", false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Release() }()
	found, err := here.Clean(ctx, dry)
	images, ierr := cleanImages(here.Dirs.Cache, dry)
	return append(found, images...), errors.Join(err, ierr)
}

// cleanImages removes what killed builds of images left in the cache.
func cleanImages(cache string, dry bool) ([]claim.Leftover, error) {
	left, err := image.Leftovers(filepath.Join(cache, "images"), dry)
	var out []claim.Leftover
	for _, p := range left {
		out = append(out, claim.Leftover{Kind: state.KindDirectory, Name: p})
	}
	return out, err
}

// removal is one leftover as --json prints it.
type removal struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Removed bool   `json:"removed"`
	Error   string `json:"error,omitempty"`
}

func asRemovals(found []claim.Leftover, dry bool) []removal {
	out := make([]removal, 0, len(found)) // nothing left is [], not null
	for _, l := range found {
		r := removal{Kind: l.Kind, Name: l.Name, Removed: !dry && l.Err == nil}
		if l.Err != nil {
			r.Error = l.Err.Error()
		}
		out = append(out, r)
	}
	return out
}
