package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/cluster/kube"
)

// ending is a cluster with a namespace that is on its way out, and, in another, a study whose coordinator has ended.
type ending struct{ dry bool }

func (e *ending) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	kind := map[string]string{"pods": "Pod", "secrets": "Secret", "serviceaccounts": "ServiceAccount", "persistentvolumeclaims": "PersistentVolumeClaim"}[filepath.Base(r.URL.Path)]
	const label = `"labels": {"app.kubernetes.io/managed-by": "tare", "tare/study": "t1"}`
	switch {
	case r.URL.Path == "/api/v1/namespaces":
		_, _ = io.WriteString(w, `{"kind":"NamespaceList","apiVersion":"v1","items":[{"metadata":{"name":"tare-t1","deletionTimestamp":"2026-01-01T00:00:00Z",`+label+`}}]}`)
	case kind == "Secret" && r.Method == http.MethodDelete, kind == "ServiceAccount":
		body, _ := io.ReadAll(r.Body)
		e.dry = e.dry || strings.Contains(string(body), `"dryRun":["All"]`)
		fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"v1","items":[{"metadata":{"name":"tare-t1-%s","creationTimestamp":"2026-01-01T00:00:00Z",%s}}]}`, kind, strings.ToLower(kind), label)
	case kind == "Pod" && r.Method == http.MethodGet:
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[]}`)
	case r.Method == http.MethodDelete: // an API server that does not say what it has deleted
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

// TestCleanNames: what is removed is named, and what the cluster is removing already is not counted as found.
func TestCleanNames(t *testing.T) {
	for namespace, want := range map[string]string{
		"":      "namespace tare-t1: would leave tare-t1: the cluster is already removing it",
		"bench": "Secret tare-t1-secret, ServiceAccount tare-t1-serviceaccount, study t1",
	} {
		e := &ending{}
		h := httptest.NewServer(e)
		file := filepath.Join(t.TempDir(), "kubeconfig")
		text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + h.URL + "\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &Site{Namespace: namespace}
		if err := s.Reach(kube.Where{Kubeconfig: file, QPS: 1000}); err != nil {
			t.Fatal(err)
		}
		found, err := s.Clean(t.Context(), "", true)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range found {
			text := l.Kind + " " + l.Name
			if l.Err != nil {
				text += ": " + l.Why(true)
			}
			got = append(got, text)
		}
		if strings.Join(got, ", ") != want || e.dry != (namespace != "") {
			t.Errorf("%q: %s, want %s; a dry run: %t", namespace, strings.Join(got, ", "), want, e.dry)
		}
		h.Close()
	}
}

// TestCleanWithoutRights: the message names the right that the user lacks to look at or remove something, and does not say that a study uses it.
func TestCleanWithoutRights(t *testing.T) {
	for _, test := range []struct{ namespace, denies, want string }{
		{"", "pods", `cannot tell whether it is in use: user "ann" may not get pods in namespace tare-t1`},
		{"", "namespaces", `user "ann" may not delete namespaces in namespace tare-t1`},
		{"bench", "secrets", "you may not delete (deletecollection) secrets in namespace bench; `tare rbac -n bench` prints the roles to ask for"},
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
			resource, in := parts[2], parts[len(parts)-1]
			if len(parts) > 4 {
				resource, in = parts[4], parts[3]
			}
			verb := map[string]string{http.MethodGet: "get", http.MethodDelete: "delete"}[r.Method]
			if verb == "delete" && len(parts) == 5 {
				verb += "collection"
			}
			const item = `{"metadata":{"name":"tare-t1","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"tare/study":"t1"}}}`
			switch {
			case len(parts) == 3:
				fmt.Fprint(w, `{"kind":"NamespaceList","apiVersion":"v1","items":[`+item+`]}`)
			case resource == test.denies && (verb != "get" || len(parts) > 5):
				w.WriteHeader(http.StatusForbidden)
				text := fmt.Sprintf("it is forbidden: User %q cannot %s resource %q in API group %q in the namespace %q", "ann", verb, resource, "", in)
				fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":%q}`, text)
			case verb == "get" && resource == "serviceaccounts":
				fmt.Fprint(w, `{"kind":"ServiceAccountList","apiVersion":"v1","items":[`+item+`]}`)
			case verb == "get" && len(parts) == 5:
				fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[]}`)
			case verb == "get":
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
			default:
				fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
			}
		}))
		file := filepath.Join(t.TempDir(), "kubeconfig")
		text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + h.URL + "\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &Site{Namespace: test.namespace}
		if err := s.Reach(kube.Where{Kubeconfig: file, QPS: 1000}); err != nil {
			t.Fatal(err)
		}
		found, err := s.Clean(t.Context(), "", false)
		if err != nil || len(found) == 0 {
			t.Fatalf("%v, %v", found, err)
		}
		if l := found[len(found)-1]; l.Err == nil || l.Kept || !strings.Contains(l.Err.Error(), test.want) {
			t.Errorf("without %s: %+v, want %s", test.denies, l, test.want)
		}
		h.Close()
	}
}

// TestCleanVolumes: clean waits for the volumes of claims in removed namespaces only, and names those that remain.
func TestCleanVolumes(t *testing.T) {
	volume := func(name, namespace string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"claimRef":{"namespace":%q,"name":"c"}},"status":{"phase":"Released"}}`, name, namespace)
	}
	for want, stays := range map[string]bool{"": false, "pv-1": true} {
		lists := 0
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			items := volume("pv-2", "others")
			if lists++; lists == 1 || stays {
				items += "," + volume("pv-1", "tare-t1")
			}
			fmt.Fprintf(w, `{"kind":"PersistentVolumeList","apiVersion":"v1","items":[%s]}`, items)
		}))
		file := filepath.Join(t.TempDir(), "kubeconfig")
		text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + h.URL + "\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &Site{}
		if err := s.Reach(kube.Where{Kubeconfig: file, QPS: 1000}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if stays {
			time.AfterFunc(time.Second, cancel)
		}
		var names []string
		for _, l := range s.volumesOf(ctx, map[string]bool{"tare-t1": true}) {
			names = append(names, l.Name)
			if l.Err == nil || !strings.Contains(l.Err.Error(), "Released") {
				t.Error(l.Err)
			}
		}
		if got := strings.Join(names, " "); got != want || lists < 2 {
			t.Errorf("%q after %d lists, want %q", got, lists, want)
		}
		cancel()
		h.Close()
	}
}
