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
		Long: `Print the rights that --on k8s needs, as YAML for kubectl, each with its reason.
There are two tiers: studies alone, and with --observe studies with observers on the
nodes. Without -n it is a ClusterRole for studies that make their own namespaces. With
-n it is a Role for an existing namespace, and a small ClusterRole to find nodes and
RuntimeClasses.

Nothing is asked of a cluster, and nothing is changed there.`,
		Example: `  tare rbac | kubectl apply -f -
  kubectl create clusterrolebinding tare --clusterrole=tare --user=ann
  tare rbac -n bench --observe`,
		Args: exactly(0, "no arguments"),
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
