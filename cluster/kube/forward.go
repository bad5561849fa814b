package kube

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/transport/spdy"
)

// IsGone reports whether an error says that an object does not exist.
func IsGone(err error) bool { return apierrors.IsNotFound(err) }

// IsForbidden reports whether an error says that the user lacks a right.
func IsForbidden(err error) bool { return apierrors.IsForbidden(err) }

// protocol is that of port forwarding: two streams for each connection, for errors and data
// (https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/client-go/tools/portforward/portforward.go).
const protocol = "portforward.k8s.io"

// Forward connects to a port of a pod through the API server and the pod's node.
func (c *Client) Forward(namespace, pod string, port int) (net.Conn, error) {
	pods, _ := c.of(&corev1.Pod{})
	at := pods.Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	conn, _, err := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at).Dial(protocol)
	if err != nil {
		return nil, fmt.Errorf("cannot forward a port of pod %s: %w", pod, err)
	}
	h := http.Header{}
	h.Set(corev1.PortHeader, strconv.Itoa(port))
	h.Set(corev1.PortForwardRequestIDHeader, "0")
	h.Set(corev1.StreamType, corev1.StreamTypeError)
	errs, err := conn.CreateStream(h)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	_ = errs.Close() // nothing is written to it
	h.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(h)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	f := &forwarded{Stream: data, conn: conn}
	go func() {
		text, _ := io.ReadAll(io.LimitReader(errs, 4<<10))
		if len(text) > 0 {
			f.mu.Lock()
			f.why = fmt.Errorf("forwarding to pod %s: %s", pod, text)
			f.mu.Unlock()
			_ = conn.Close()
		}
	}()
	return f, nil
}

// forwarded is a stream as a connection. It has no deadlines.
type forwarded struct {
	httpstream.Stream
	conn httpstream.Connection
	mu   sync.Mutex
	why  error
}

func (f *forwarded) Read(p []byte) (int, error) {
	n, err := f.Stream.Read(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && f.why != nil {
		err = f.why
	}
	return n, err
}

func (f *forwarded) Close() error { return f.conn.Close() }

type nowhere struct{}

func (nowhere) Network() string { return "tcp" }
func (nowhere) String() string  { return "forwarded" }

func (*forwarded) LocalAddr() net.Addr              { return nowhere{} }
func (*forwarded) RemoteAddr() net.Addr             { return nowhere{} }
func (*forwarded) SetDeadline(time.Time) error      { return nil }
func (*forwarded) SetReadDeadline(time.Time) error  { return nil }
func (*forwarded) SetWriteDeadline(time.Time) error { return nil }
