// Package observer reads what a node knows about its pods: the figures that collectors read on a
// host, and the limits that are in force. It runs in a privileged pod on each node of a study.
//
// The data path: 1. Serve, on the node, keeps connections to the coordinator open; 2. the
// coordinator takes one when it needs it: Find asks for a pod's control groups, Collector opens a
// collector on them; 3. Serve replaces the connection that was taken.
//
// docs/design/0032-observers.md gives the reasons.
package observer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"tare/agent"
	"tare/collect"
	collecthost "tare/collect/host"
	"tare/collect/remote"
	"tare/host/cgroup"
	"tare/host/freemem"
	"tare/record"
	"tare/sandbox"
)

// Waiting is how many unused connections an observer keeps: a trial opens one for each collector,
// and a lost round trip costs little.
const Waiting = 4

// Name is the name under which the observer of a node connects.
func Name(node string) string { return "observer/" + node }

// Found is what a node knows about a pod.
type Found struct {
	Cgroup  string  `json:"cgroup"`            // the pod's group; see sandbox.LocalScope.Cgroups
	Limited string  `json:"limited,omitempty"` // see sandbox.LocalScope.Limited
	CPU     float64 `json:"cpu,omitempty"`     // cores that the CPU quota in force allows; 0: there is none
	Memory  int64   `json:"memory,omitempty"`  // bytes that the limit in force allows; 0: there is none
	Shims   []shim  `json:"shims,omitempty"`   // those of the pod that are not in its group
	// Stored says what the volumes are stored on, by their paths in the pod. What is not known is "", or missing.
	Stored map[string]string `json:"stored,omitempty"`
	Around
}

// Scope returns what collectors read of the pod, whose threads have these roles. It is empty if the pod's
// group was not found.
func (f *Found) Scope(roles sandbox.ThreadRoles) sandbox.LocalScope {
	if f.Cgroup == "" {
		return sandbox.LocalScope{}
	}
	s := sandbox.LocalScope{Cgroups: []string{f.Cgroup}, Limited: f.Limited}
	for _, one := range f.Shims {
		s.Alone = append(s.Alone, one.Pid)
		s.Roles = append(s.Roles, sandbox.RoleRule{Role: record.RoleShim, Program: one.Program})
	}
	s.Roles = append(s.Roles, roles...)
	return s
}

// Limit returns a limit in the form of facts.
func Limit(n float64) string {
	if n == 0 {
		return "none"
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// Operations of an observer, beside those of its collectors.
const (
	opFind = "find" // body: findBody; answer: Found
	opHost = "host" // no body; answer: record.Host
	opFree = "free" // no body; answer: bytes of memory that are available
)

// findBody names a pod, and the paths in it of the volumes that are to be described.
type findBody struct {
	UID     string   `json:"uid"`
	Volumes []string `json:"volumes,omitempty"`
}

func free(json.RawMessage) (any, error) { return freemem.Read() }

// host describes the node, but for what a pod does not see: the node's programs and devices.
func host(json.RawMessage) (any, error) {
	h := collecthost.Describe(context.Background(), "/", nil)
	h.KVM = ""
	return h, nil
}

// find reads the control groups of this node. The kubelet names a pod's group after the pod's UID,
// with underscores where systemd makes the groups. The limits are those of the container with
// the most threads: a pod's first container only waits.
func find(body json.RawMessage) (any, error) {
	var b findBody
	if err := json.Unmarshal(body, &b); err != nil || b.UID == "" {
		return nil, errors.New("no pod is named")
	}
	uid := b.UID
	h, err := cgroup.Detect()
	if err != nil {
		return nil, err
	}
	plain, systemd := "pod"+uid, "pod"+strings.ReplaceAll(uid, "-", "_")
	pod, err := h.Find(func(name string) bool {
		return strings.HasSuffix(strings.TrimSuffix(name, ".slice"), plain) || strings.HasSuffix(strings.TrimSuffix(name, ".slice"), systemd)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot find the control group of pod %.100s: %w", uid, err)
	}
	busiest, err := pod.Busiest()
	if err != nil {
		return nil, err
	}
	l, limited, err := busiest.InForce(pod)
	if err != nil {
		return nil, err
	}
	if limited == "" {
		limited = busiest.Rel()
	}
	f := Found{Cgroup: pod.Rel(), Limited: limited, CPU: l.CPU, Memory: l.Memory, Shims: shims("/proc", pod), Around: around(busiest)}
	if len(b.Volumes) > 0 {
		f.Stored = stored(f.Shims, containersOf(pod), b.Volumes)
	}
	return f, nil
}

// Dial connects to the coordinator. It returns an error if that takes too long.
type Dial func(context.Context) (net.Conn, error)

// Serve keeps Waiting connections to the coordinator until ctx ends or a connection fails, which means that the
// coordinator is gone.
func Serve(ctx context.Context, dial Dial, collectors []collect.Collector) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	room := make(chan struct{}, Waiting)
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		go func() {
			conn, err := dial(ctx)
			if err != nil {
				cancel(err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, err = io.ReadFull(conn, make([]byte, len(wake))) // the protocol's deadlines count from here
			<-room
			if err == nil {
				_ = remote.Serve(ctx, conn, conn, collectors,
					agent.Operations{opFind: find, opHost: host, opFree: free}) // who asks hears of errors
			}
		}()
	}
}
