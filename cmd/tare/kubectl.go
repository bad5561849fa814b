package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// asPlugin has usage lines and examples say `kubectl tare` where the program was started as a
// plugin of kubectl, which looks for programs by the name kubectl-NAME
// (https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/).
func asPlugin(root *cobra.Command, argv0 string) {
	if !strings.HasPrefix(filepath.Base(argv0), "kubectl-tare") {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl tare"}
	rename(root)
}

func rename(c *cobra.Command) {
	lines := strings.Split(c.Example, "\n")
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, "  tare "); ok {
			lines[i] = "  kubectl tare " + rest
		}
	}
	c.Example = strings.Join(lines, "\n")
	for _, sub := range c.Commands() {
		rename(sub)
	}
}
