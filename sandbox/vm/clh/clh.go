// Package clh is a client of cloud-hypervisor's control interface: HTTP with JSON over
// one stream socket.
// https://github.com/cloud-hypervisor/cloud-hypervisor/blob/main/docs/api.md, and
// vmm/src/api/openapi/cloud-hypervisor.yaml of the same repository.
//
// The data path: 1. Connect asks vmm.ping, which is answered once the program listens;
// 2. Resize asks vm.resize for the processors and the memory that a machine is to have;
// 3. Watch reads what the program tells of its own accord on its event monitor.
//
// The connection is made before the program starts, and there is one in its life: the
// program was given the listening socket, which has no name. Everything read is bounded.
package clh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// maxAnswer bounds one answer, in bytes. The one to vmm.ping has about 200, a refusal
// one for each error that led to it.
const maxAnswer = 1 << 20

// Client talks to one cloud-hypervisor. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	version string
}

// errGone is a wish for a second connection.
var errGone = errors.New("cloud-hypervisor has closed its control socket")

// Connect waits for the program's first answer on conn, which is the client's from now
// on, also when it fails.
func Connect(ctx context.Context, conn net.Conn) (*Client, error) {
	var taken atomic.Bool
	c := &Client{http: &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: 1,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if taken.Swap(true) {
				return nil, errGone
			}
			return conn, nil
		},
	}}}
	var pong struct {
		Build   string `json:"build_version"`
		Version string `json:"version"`
	}
	err := c.do(ctx, http.MethodGet, "vmm.ping", nil, &pong)
	if err == nil && pong.Version == "" {
		err = errors.New("cloud-hypervisor does not print its version")
	}
	if err != nil {
		return nil, errors.Join(err, ignoreClosed(conn.Close()))
	}
	c.version = pong.Version
	return c, nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Version is the program's own, such as "54.0.0".
func (c *Client) Version() string { return c.version }

// Resize asks for so many processors, and memory of so many bytes, in all; 0 leaves the
// memory as it is. The guest has yet to bring them online.
func (c *Client) Resize(ctx context.Context, vcpus int, memory int64) error {
	return c.do(ctx, http.MethodPut, "vm.resize", struct {
		VCPUs  int   `json:"desired_vcpus"`
		Memory int64 `json:"desired_ram,omitempty"`
	}{vcpus, memory}, nil)
}

// Close ends the connection. It is idempotent.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Refusal is an answer that is not a success; find it with errors.As.
type Refusal struct {
	Action string // vm.resize
	Status string // 500 Internal Server Error
	Says   string // the body: a list of errors, each the cause of the one before it
}

// Error tells the action and what the program said.
func (r *Refusal) Error() string {
	s := fmt.Sprintf("cloud-hypervisor refuses %s: %s", r.Action, r.Status)
	if r.Says != "" {
		s += ": " + r.Says
	}
	return s
}

// do asks for an action; body and answer may be nil.
func (c *Client) do(ctx context.Context, method, action string, body, answer any) (err error) {
	var send io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		send = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost/api/v1/"+action, send)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("cloud-hypervisor does not answer %s: %w", action, err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("cloud-hypervisor's answer to %s: %w", action, err)
	case len(b) > maxAnswer:
		return fmt.Errorf("cloud-hypervisor's answer to %s is longer than %d bytes", action, maxAnswer)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return &Refusal{Action: action, Status: resp.Status, Says: said(b)}
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("cloud-hypervisor's answer to %s cannot be parsed: %w", action, err)
	}
	return nil
}

// said makes a refusal's body fit for a message: one line, a list's elements in order.
func said(body []byte) string {
	const most = 2000
	text := string(body)
	var list []string
	if json.Unmarshal(body, &list) == nil {
		text = strings.Join(list, ": ")
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// Event is what the program tells of its own accord, by --event-monitor:
//
//	{"timestamp":{"secs":0,"nanos":52611903},"source":"vm","event":"booted","properties":null}
type Event struct {
	Source string `json:"source"` // vmm, vm, guest, virtio-device
	Event  string `json:"event"`
}

// Resets says whether the guest has reset its processor, as a kernel that panicked does:
// the program then boots it once more.
func (e Event) Resets() bool { return e.Source == "vm" && e.Event == "rebooting" }

// Watch calls heard for each event until r ends or what it has is not an event any more. What
// follows is read and left.
func Watch(r io.Reader, heard func(Event)) {
	d := json.NewDecoder(io.LimitReader(r, maxEvents))
	for {
		var e Event
		if err := d.Decode(&e); err != nil {
			break
		}
		heard(e)
	}
	_, _ = io.Copy(io.Discard, r) // a full pipe would halt the program
}

// maxEvents bounds the events of a machine's life, in bytes: it has some dozens of about
// 100, and more only where a guest resets its devices over and over.
const maxEvents = 16 << 20
