package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tare/cluster"
)

func (a *app) rbacVerb() *cobra.Command {
	var namespace string
	var tier cluster.Tier
	cmd := &cobra.Command{
		Use:   "rbac",
		Short: "Print the roles that studies on a Kubernetes cluster need",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			text, err := cluster.Roles(namespace, tier)
			if err != nil {
				return coded(exitUsage, "%w", err)
			}
			_, err = fmt.Fprint(a.stdout, text)
			return err
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "for studies in this existing namespace (default: each study creates its own)")
	cmd.Flags().BoolVar(&tier.Observe, "observe", false, "for studies with --observe too")
	cmd.Flags().BoolVar(&tier.VMs, "vms", false, "for studies with virtual machines of KubeVirt too")
	cmd.Flags().BoolVar(&tier.Objects, "objects", false, "for studies with the workloads objects and claims too")
	return cmd
}
