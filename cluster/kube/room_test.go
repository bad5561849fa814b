package kube

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCreateOnceFree: a quota that is full is asked again, and the time until it has room is no part of the start. Other refusals stand.
func TestCreateOnceFree(t *testing.T) {
	for message, tries := range map[string]int{"exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2": 3, "violates PodSecurity": 1} {
		made := 0
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if made++; made < 3 {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods \"p\" is forbidden: %s"}`, message)
				return
			}
			fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"n"}}`)
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
		from := time.Now()
		begun, err := c.CreateOnceFree(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n"}})
		if made != tries || (err == nil) != (tries == 3) || err != nil && !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %d tries, want %d: %v", message, made, tries, err)
		}
		if waited := begun.Sub(from); (waited >= 2*roomEvery) != (tries == 3) {
			t.Errorf("%s: the last try began after %s", message, waited)
		}
	}
}
