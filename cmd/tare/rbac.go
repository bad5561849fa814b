package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tare/cluster"
)

func (a *app) rbacVerb() *cobra.Command {
	var namespace string
	var observe bool
	cmd := &cobra.Command{
		Use:   "rbac",
		Short: "Print the roles that studies on a Kubernetes cluster need",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			text, err := cluster.Roles(namespace, observe)
			if err != nil {
				return coded(exitUsage, "%w", err)
			}
			_, err = fmt.Fprint(a.stdout, text)
			return err
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "for studies in this existing namespace (default: each study makes its own)")
	cmd.Flags().BoolVar(&observe, "observe", false, "for studies with --observe too")
	return cmd
}
