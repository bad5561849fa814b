package kube

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestFormats: a watch asks for protobuf, and accepts JSON from a server that has no protobuf.
func TestFormats(t *testing.T) {
	accept := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accept <- r.Header.Get("Accept")
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		for _, node := range []string{"", "n1"} {
			_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","spec":{"nodeName":%q}}}`, node)
		}
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, s.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := FromKubeconfig(Where{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WatchPods(t.Context(), "space", "x=y", func(p *corev1.Pod) (bool, error) { return p.Spec.NodeName == "n1", nil }); err != nil {
		t.Fatal(err)
	}
	if a := <-accept; !strings.HasPrefix(a, runtime.ContentTypeProtobuf) || !strings.Contains(a, runtime.ContentTypeJSON) {
		t.Errorf("it accepts %s", a)
	}
}
