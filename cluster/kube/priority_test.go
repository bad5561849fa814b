package kube

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPriorityLevel: the client knows the level of its last request that created something, and the names of levels.
func TestPriorityLevel(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set(levelHeader, map[string]string{http.MethodPost: "u1", http.MethodGet: "u2"}[r.Method])
		if r.Method == http.MethodPost {
			fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"n"}}`)
			return
		}
		fmt.Fprint(w, `{"kind":"PriorityLevelConfigurationList","apiVersion":"flowcontrol.apiserver.k8s.io/v1","items":[{"kind":"PriorityLevelConfiguration","apiVersion":"flowcontrol.apiserver.k8s.io/v1","metadata":{"name":"workload-low","uid":"u1"}}]}`)
	}))
	t.Cleanup(h.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + h.URL + "\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := FromKubeconfig(Where{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.PriorityLevel(); got != "" {
		t.Errorf("before any request: %q", got)
	}
	if err := c.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n"}}); err != nil {
		t.Fatal(err)
	}
	names, err := c.PriorityLevels(t.Context())
	if err != nil || names["u1"] != "workload-low" || c.PriorityLevel() != "u1" {
		t.Errorf("%v, %v, level %q", names, err, c.PriorityLevel())
	}
}
