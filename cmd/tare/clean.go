package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tare/internal/state"
)

func (a *app) cleanVerb() *cobra.Command {
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what a killed run left on this host",
		Long: `Remove what a run that was killed left behind: processes, containers, mounts,
network namespaces, links, cgroups and directories. They are found by their
names, so nothing of another program is touched. While a study runs, clean
refuses: what is there is in use. Results are never removed.`,
		Example: "  tare clean --dry-run    list what would be removed\n  tare clean",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 {
				return coded(exitHost, "clean must be run as root: only root's runs leave things on the host")
			}
			lock, err := state.Hold(hostDirs().run, "clean")
			if err != nil {
				return err
			}
			defer func() { _ = lock.Release() }()
			found, err := state.Clean(cmd.Context(), dry)
			if asJSON {
				return firstError(a.printJSON(found), err)
			}
			verb := "removed"
			if dry {
				verb = "would remove"
			}
			for _, l := range found {
				if l.Err != nil {
					fmt.Fprintf(a.stdout, "cannot remove %s %s: %v\n", l.Kind, l.Name, l.Err)
					continue
				}
				fmt.Fprintf(a.stdout, "%s %s %s\n", verb, l.Kind, l.Name)
			}
			if len(found) == 0 && err == nil {
				fmt.Fprintln(a.stdout, "nothing is left of earlier runs")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list only")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
