package objects

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/flowcontrol"

	"tare/cluster/kube"
	"tare/workload/objects"
)

// api is the API server, as a load sees it. It is safe for concurrent use.
type api struct {
	http  *http.Client // for the load's own requests
	one   *http.Client // for watches, lists, and readings of one server
	base  string
	limit flowcontrol.RateLimiter // nil: no limit

	mu      sync.Mutex
	tally   map[verb]*figures
	limited time.Duration // that the limit held requests back, summed over them
	down    time.Duration // that the server could not be reached
	lost    time.Time     // when the first request since the last answer did not reach it; zero: it answers
	back    time.Time     // when it answered again
	warned  []string      // see objects.End
}

// verb is what a request does, to what.
type verb struct{ name, resource string }

// Media types of what is sent and of answers. The API server encodes and decodes protobuf in less time than JSON.
const (
	usualType = "application/json"
	protoType = "application/vnd.kubernetes.protobuf"
)

// figures are those of a verb since they were last taken.
type figures struct {
	latency, server          *hdrhistogram.Histogram
	count, failed, throttled int64
}

func newAPI(c *kube.Client, qps float64) (*api, error) {
	spread, base, err := c.Bare(true)
	if err != nil {
		return nil, err
	}
	one, _, err := c.Bare(false)
	if err != nil {
		return nil, err
	}
	a := &api{http: spread, one: one, base: strings.TrimSuffix(base, "/"), tally: map[verb]*figures{}}
	if qps > 0 {
		a.limit = flowcontrol.NewTokenBucketRateLimiter(float32(qps), int(max(1, 2*qps)))
	}
	return a, nil
}

// refusal is an answer that says that a request did not work.
type refusal struct {
	code    int
	reason  string
	message string
}

func (r *refusal) Error() string {
	if r.message != "" {
		return r.message
	}
	return fmt.Sprintf("status %d", r.code)
}

// isCode reports whether an error is an answer with this status.
func isCode(err error, code int) bool {
	var r *refusal
	return errors.As(err, &r) && r.code == code
}

// passes reports whether an error may go away: the server has too much to do, restarts, or is not reached.
func passes(err error) bool {
	var r *refusal
	if !errors.As(err, &r) {
		return err != nil
	}
	return r.code == http.StatusTooManyRequests || r.code >= http.StatusInternalServerError
}

// settling is how long a server that has restarted may refuse what it allows: it reads the roles and the tokens first.
const settling = 10 * time.Second

// reached notes whether a request reached the server, and reports whether the server has just restarted.
func (a *api) reached(ctx context.Context, err error, sent, now time.Time) (restarted bool) {
	var r *refusal
	a.mu.Lock()
	defer a.mu.Unlock()
	switch yes := err == nil || errors.As(err, &r); {
	case !yes && ctx.Err() == nil && a.lost.IsZero() && sent.After(a.back): // not a request of before
		a.lost = sent
	case yes && !a.lost.IsZero() && sent.After(a.lost):
		a.down, a.lost, a.back = a.down+now.Sub(a.lost), time.Time{}, now
	}
	return !a.back.IsZero() && now.Sub(a.back) < settling
}

// maxStatus bounds the answer of a refusal, in bytes.
const maxStatus = 16 << 10

// send sends one request. kind is the media type of its body; the default is JSON. It reads the whole answer and discards it, so that
// the connection can be used again.
func (a *api) send(ctx context.Context, method, path string, body []byte, kind ...string) error {
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", cmp.Or(strings.Join(kind, ""), usualType))
	}
	req.Header.Set("Accept", protoType+","+usualType)
	resp, err := answered(a.http.Do(req))
	if err != nil {
		return err
	}
	if w := resp.Header["Warning"]; len(w) > 0 {
		a.warn(w)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// warn keeps warnings that it has not seen, such as that of a field that the server does not know (RFC 7234, section 5.5).
func (a *api) warn(headers []string) {
	all, _ := utilnet.ParseWarningHeaders(headers) // it skips malformed headers
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range all {
		text := strings.ToValidUTF8(w.Text[:min(len(w.Text), objects.MaxWarning)], "")
		if len(a.warned) < objects.MaxWarnings && !slices.Contains(a.warned, text) {
			a.warned = append(a.warned, text)
		}
	}
}

// warnings are those so far.
func (a *api) warnings() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.warned)
}

// open sends a GET request for an answer in the given format. The caller reads and closes the body.
func (a *api) open(ctx context.Context, path, format string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", format)
	return answered(a.one.Do(req))
}

// answered returns an error if the answer is a refusal.
func answered(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return resp, nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxStatus)) // what there is of it
	_ = resp.Body.Close()
	r := &refusal{code: resp.StatusCode}
	var status metav1.Status
	if raw, is := bytes.CutPrefix(text, []byte(protoPrefix)); is {
		var wrapped runtime.Unknown
		if err = wrapped.Unmarshal(raw); err == nil {
			err = status.Unmarshal(wrapped.Raw)
		}
	} else {
		err = json.Unmarshal(text, &status)
	}
	if err == nil {
		r.message, r.reason = status.Message, string(status.Reason)
	}
	return nil, r
}

// again is the pause before a request is sent again that may work then.
const again = 250 * time.Millisecond

// do sends a request that was due at a moment, until it works, fails for good or ctx ends. It returns how long the requests
// took, without what the limit held back and the pauses. The time of the last one is the server's.
func (a *api) do(ctx context.Context, v verb, due time.Time, method, path string, body []byte, kind ...string) (busy time.Duration, err error) {
	var said error // what the server said last, if it said anything
	for tried := false; ; tried = true {
		if a.limit != nil {
			from := time.Now()
			if err := a.limit.Wait(ctx); err != nil {
				return busy, err
			}
			a.hold(time.Since(from))
		}
		sent := time.Now()
		err = a.send(ctx, method, path, body, kind...)
		now := time.Now()
		busy += now.Sub(sent)
		early := a.reached(ctx, err, sent, now) && (isCode(err, http.StatusUnauthorized) || isCode(err, http.StatusForbidden))
		if tried && (isCode(err, http.StatusConflict) || isCode(err, http.StatusNotFound)) {
			err = nil // an earlier try has arrived
		}
		a.note(v, err, now.Sub(due), now.Sub(sent))
		if r := (*refusal)(nil); errors.As(err, &r) {
			said = err
		} else if err != nil && ctx.Err() != nil && said != nil {
			err = said // the last request had no time for an answer
		}
		if err == nil || !passes(err) && !early || ctx.Err() != nil {
			return busy, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return busy, err
		}
	}
}

func (a *api) hold(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limited += d
}

// note counts an answer.
func (a *api) note(v verb, err error, latency, server time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.tally[v]
	if f == nil {
		f = &figures{latency: objects.NewHistogram(), server: objects.NewHistogram()}
		a.tally[v] = f
	}
	switch {
	case err == nil:
		f.count++
		objects.Note(f.latency, latency)
		objects.Note(f.server, server)
	case isCode(err, http.StatusTooManyRequests):
		f.throttled++
	default:
		f.failed++
	}
}

// take gives a step the figures since it was last called.
func (a *api) take(s *objects.Step) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for v, f := range a.tally {
		c := objects.Call{Verb: v.name, Resource: v.resource, Count: f.count, Errors: f.failed, Throttled: f.throttled}
		if c.Latency, err = objects.Encode(f.latency); err != nil {
			return err
		}
		if c.Server, err = objects.Encode(f.server); err != nil {
			return err
		}
		s.Calls = append(s.Calls, c)
	}
	if now := time.Now(); !a.lost.IsZero() {
		a.down, a.lost = a.down+now.Sub(a.lost), now
	}
	s.Limited, s.Down = a.limited.Seconds(), a.down.Seconds()
	a.tally, a.limited, a.down = map[verb]*figures{}, 0, 0
	return nil
}
