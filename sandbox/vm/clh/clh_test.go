package clh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// What cloud-hypervisor 54.0 answered.
const (
	pong = "HTTP/1.1 200 \r\nServer: Cloud Hypervisor API\r\nConnection: keep-alive\r\nContent-Type: application/json\r\nContent-Length: 89\r\n\r\n" +
		`{"build_version":"v54.0.0","version":"54.0.0","pid":22875,"features":["io_uring","kvm"]}` + "\n"
	done    = "HTTP/1.1 204 \r\nServer: Cloud Hypervisor API\r\nConnection: keep-alive\r\n\r\n"
	refused = "HTTP/1.1 500 \r\nServer: Cloud Hypervisor API\r\nConnection: keep-alive\r\nContent-Type: application/json\r\nContent-Length: 106\r\n\r\n" +
		`["Error from API","The VM could not be resized","Error from CPU manager","Requested vCPUs exceed maximum"]`
)

// played is the other end of a client: it notes what it is asked, and answers in turn.
func played(t *testing.T, answers ...string) (ours net.Conn, asked <-chan string) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = theirs.Close() })
	out := make(chan string, len(answers))
	go func() {
		defer close(out)
		defer theirs.Close()
		r := bufio.NewReader(theirs)
		for _, a := range answers {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(req.Body)
			out <- fmt.Sprintf("%s %s %s", req.Method, req.URL.Path, body)
			if _, err := io.WriteString(theirs, a); err != nil {
				return
			}
		}
	}()
	return ours, out
}

func TestClient(t *testing.T) {
	conn, asked := played(t, pong, done, done, refused)
	c, err := Connect(t.Context(), conn)
	if err != nil || c.Version() != "54.0.0" {
		t.Fatal(c, err)
	}
	if err := errors.Join(c.Resize(t.Context(), 3, 640<<20), c.Resize(t.Context(), 2, 0)); err != nil {
		t.Error(err)
	}
	var r *Refusal
	err = c.Resize(t.Context(), 9, 0)
	if !errors.As(err, &r) || !strings.Contains(err.Error(), "refuses vm.resize: 500") || !strings.Contains(err.Error(), "Error from CPU manager: Requested vCPUs exceed") {
		t.Error(err)
	}
	want := []string{
		"GET /api/v1/vmm.ping ", `PUT /api/v1/vm.resize {"desired_vcpus":3,"desired_ram":671088640}`,
		`PUT /api/v1/vm.resize {"desired_vcpus":2}`, `PUT /api/v1/vm.resize {"desired_vcpus":9}`,
	}
	for _, w := range want {
		if got := <-asked; got != w {
			t.Errorf("asked %q, want %q", got, w)
		}
	}
	// The program has gone: there is no second connection.
	if err := c.Resize(t.Context(), 2, 0); err == nil {
		t.Error("answered by nobody")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestConnectFails(t *testing.T) {
	for name, answer := range map[string]string{
		"another program": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "no HTTP": "hello\r\n\r\n", "its end": "",
		"too much": fmt.Sprintf("HTTP/1.1 200 \r\nContent-Length: %d\r\n\r\n%s", maxAnswer+10, strings.Repeat(" ", maxAnswer+10)),
	} {
		conn, _ := played(t, answer)
		if c, err := Connect(t.Context(), conn); err == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	silent, other := net.Pipe()
	defer other.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = http.ReadRequest(bufio.NewReader(other))
		cancel()
	}()
	if _, err := Connect(ctx, silent); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestWatch: events as cloud-hypervisor 54.0 wrote them, over several lines; what is none
// ends them, and is read all the same.
func TestWatch(t *testing.T) {
	const text = `{
  "timestamp": {
    "secs": 0,
    "nanos": 172653654
  },
  "source": "vm",
  "event": "booted",
  "properties": null
}

{"timestamp":{"secs":6,"nanos":1},"source":"virtio-device","event":"reset","properties":{"id":"_vsock1"}}
{"timestamp":{"secs":6,"nanos":2},"source":"vm","event":"rebooting","properties":null}
no event`
	r := strings.NewReader(text + strings.Repeat("x", 1<<20))
	var got []string
	Watch(r, func(e Event) { got = append(got, fmt.Sprint(e.Source, " ", e.Event, " ", e.Resets())) })
	want := "vm booted false, virtio-device reset false, vm rebooting true"
	if s := strings.Join(got, ", "); s != want || r.Len() > 0 {
		t.Errorf("%s, want %s; %d bytes left", s, want, r.Len())
	}
}

func FuzzSaid(f *testing.F) {
	f.Add([]byte(`["Error from API","The VM could not be resized"]`))
	f.Add([]byte("\xff\n<html>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if s := said(body); strings.ContainsAny(s, "\n\r") || len(s) > 2100 {
			t.Errorf("%q", s)
		}
	})
}
