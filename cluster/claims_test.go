package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tare/catalogue"
	"tare/cluster/kube"
	"tare/cluster/pod"
	"tare/sandbox"
	"tare/study"
	"tare/volume"
	"tare/workload"
	"tare/workload/fio"
)

// TestClaims: the sandboxes of a role share a claim, and a trial's end waits until it is gone. A trial
// without claims asks for nothing.
func TestClaims(t *testing.T) {
	var asked []string
	left := 2 // answers to a list, until the claim is gone
	api := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method)
		switch r.Method {
		case http.MethodPost:
			if slices.Index(asked, http.MethodPost) < len(asked)-1 {
				w.WriteHeader(http.StatusConflict)
				fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`)
				return
			}
			_, _ = io.Copy(w, r.Body)
		case http.MethodDelete:
			if got := r.URL.Query().Get("labelSelector"); got != "tare/study=t1,tare/trial=t1-4" {
				t.Errorf("deletes %q", got)
			}
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		case http.MethodGet:
			list := corev1.PersistentVolumeClaimList{}
			list.Kind, list.APIVersion = "PersistentVolumeClaimList", "v1"
			if left--; left > 0 {
				list.Items = make([]corev1.PersistentVolumeClaim, 1)
			}
			_ = json.NewEncoder(w).Encode(list)
		}
	})
	c := &claims{api: api, study: &pod.Study{ID: "t1", Namespace: "ns"}, trials: map[string]bool{}}
	if errs := c.remove(t.Context(), "t1-4"); len(errs) > 0 || len(asked) > 0 {
		t.Errorf("without claims: %v, %v", errs, asked)
	}
	want := sandbox.Want{Trial: "t1-4", Role: "main", Options: map[string]string{"storage-class": "local", "claim-size": "1GiB"}, Volumes: []volume.Volume{{Name: "data"}}}
	for range 2 {
		if err := c.provide(t.Context(), &want); err != nil {
			t.Fatal(err)
		}
	}
	if errs := c.remove(t.Context(), "t1-4"); len(errs) > 0 {
		t.Error(errs)
	}
	if want := []string{"POST", "POST", "DELETE", "GET", "GET"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
}

// apiServer is an API server whose answers a test makes.
func apiServer(t *testing.T, answer http.HandlerFunc) *kube.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
"users": [{"name": "x"}], "clusters": [{"name": "x", "cluster": {"server": %q}}]}`, s.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	api, err := kube.FromKubeconfig(kube.Where{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// TestStorageIsAFactor: pods of all classes have the setting, and a study compares them with the same storage.
func TestStorageIsAFactor(t *testing.T) {
	kinds := []sandbox.Kind{pod.New(pod.Class{Name: "process"}, nil, nil, nil), pod.New(pod.Class{Name: "runc", Class: "runc", Handler: "runc"}, nil, nil, nil)}
	cat := catalogue.Of([]workload.Workload{fio.New()}, kinds, nil)
	parse := func(classes string) (*study.Study, error) {
		return study.Parse("s.yaml", []byte("study: s\nfactors: {sandbox: [process, runc], storage-class: ["+classes+"]}\nworkloads:\n  read: {kind: fio, target: block}\n"), cat, nil)
	}
	st, err := parse("default, fast")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range st.Strata {
		if _, shared := s.Shared.Get("storage-class"); !shared || len(s.Cells) != 2 {
			t.Errorf("%s: %v; a class is compared with another class", s.Key, s.Cells)
		}
		for _, cell := range s.Cells {
			res, err := st.Resolve(cat, cell)
			if err != nil {
				t.Fatal(err)
			}
			seen[res.Sandbox+" "+res.Options["storage-class"]+" "+res.Options["claim-size"]] = true
		}
	}
	if len(seen) != 4 || !seen["process fast 10GiB"] {
		t.Errorf("%v", seen)
	}
	if _, err := parse("Fast"); err == nil || !strings.Contains(err.Error(), "kubectl get storageclass") {
		t.Errorf("no name of a class: %v", err)
	}
}
