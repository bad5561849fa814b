package objects

import "strings"

// remedy adds what to do to the API server's reason for the end of a load: "WHAT; WHAT TO DO". The texts are those of Kubernetes and etcd.
func remedy(why string) string {
	said := strings.ToLower(why)
	for _, r := range []struct{ says, do string }{
		{"does not serve the virtual machines of kubevirt", "install KubeVirt, or create other objects"},
		{"exceeded quota", "raise the ResourceQuota, or create fewer objects"},
		{"failed calling webhook", "repair or remove the webhook (`kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations`), then repeat the command"},
		{"database space exceeded", "etcd is full: compact and defragment it, and disarm its alarm (`etcdctl alarm disarm`), then repeat the command"},
		{"unauthorized", "the API server no longer accepts the load's token: its service account is gone, or the server's keys have changed; repeat the command"},
		{"too many requests", "the API server sheds load: write fewer workers or a lower rate, or give the load a priority level with more seats"},
	} {
		if strings.Contains(said, r.says) {
			return why + "; " + r.do
		}
	}
	return why
}
