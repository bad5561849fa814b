package kube

import (
	"context"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// levelHeader names, in each answer of the API server, the UID of the priority level that the request had
// (https://kubernetes.io/docs/reference/debug-cluster/flow-control/).
const levelHeader = "X-Kubernetes-PF-PriorityLevel-UID"

// level is the priority level of the last request that created something.
type level struct{ uid atomic.Value }

// wrap returns a transport that notes the priority level of each answer to a POST.
func (l *level) wrap(next http.RoundTripper) http.RoundTripper { return noting{next, l} }

type noting struct {
	next  http.RoundTripper
	level *level
}

// RoundTrip implements http.RoundTripper.
func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.next.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost {
		n.level.uid.Store(resp.Header.Get(levelHeader))
	}
	return resp, err
}

// PriorityLevel is the UID of the priority level that the API server gave the client's last request to create an object. It is "" if the
// server has no priority levels.
func (c *Client) PriorityLevel() string {
	uid, _ := c.level.uid.Load().(string)
	return uid
}

// mostLevels bounds the priority levels of a cluster. Kubernetes itself has eight.
const mostLevels = 500

// PriorityLevels reads the names of the cluster's priority levels, by UID. Kubernetes 1.29 and later have this version of the API.
func (c *Client) PriorityLevels(ctx context.Context) (map[string]string, error) {
	all, err := c.Untyped(ctx, schema.GroupVersionResource{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: "prioritylevelconfigurations"}, "", "", mostLevels)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i := range all {
		out[string(all[i].GetUID())] = all[i].GetName()
	}
	return out, nil
}
