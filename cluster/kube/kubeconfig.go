package kube

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// unusable says why the kubeconfig names no cluster, and what to do.
func unusable(rules *clientcmd.ClientConfigLoadingRules, w Where, why error) error {
	const instead = "give another with --kubeconfig FILE, or set KUBECONFIG"
	files := rules.GetLoadingPrecedence()
	var missing []string
	for _, f := range files {
		if _, err := os.Stat(f); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, f)
		}
	}
	if len(missing) == len(files) {
		return fmt.Errorf("cannot find a cluster: there is no kubeconfig %s; %s", strings.Join(missing, ", "), instead)
	}
	config, err := rules.Load()
	if err != nil {
		if file, _, is := strings.Cut(err.Error(), ": couldn't get version/kind"); is { // what follows is about types of Go
			return fmt.Errorf("%s is not a kubeconfig; %s", strings.TrimPrefix(file, "error loading config file "), instead)
		}
		return fmt.Errorf("cannot read the kubeconfig %s; correct it, or %s", strings.TrimPrefix(err.Error(), "error loading config file "), instead)
	}
	context := cmp.Or(w.Context, config.CurrentContext)
	var has []string
	for _, name := range slices.Sorted(maps.Keys(config.Contexts)) {
		has = append(has, fmt.Sprintf("%q", name))
	}
	switch {
	case len(has) == 0:
		return fmt.Errorf("the kubeconfig %s has no context, and so names no cluster; %s", strings.Join(files, ", "), instead)
	case context == "":
		return fmt.Errorf("the kubeconfig has no current context; give --context with one of %s", strings.Join(has, ", "))
	case config.Contexts[context] == nil:
		return fmt.Errorf("the kubeconfig has no context %q; give --context with one of %s", context, strings.Join(has, ", "))
	}
	return fmt.Errorf("cannot use context %q of the kubeconfig: %w; correct it, or choose another with --context", context, why)
}
