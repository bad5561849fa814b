package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// limit is the client's own limit of requests, for all groups of the API together. It counts what waits for it: a pod
// that tare itself creates late must not pass for a slow cluster.
type limit struct {
	flowcontrol.RateLimiter

	mu       sync.Mutex
	requests int
	waited   time.Duration
	second   int64 // of the Unix epoch, and
	within   int   // requests in it
	busiest  int   // requests in a second
}

func newLimit(qps float32, burst int) *limit {
	return &limit{RateLimiter: flowcontrol.NewTokenBucketRateLimiter(qps, burst)}
}

// Wait implements flowcontrol.RateLimiter.
func (l *limit) Wait(ctx context.Context) error {
	begun := time.Now()
	err := l.RateLimiter.Wait(ctx)
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	l.waited += now.Sub(begun)
	if s := now.Unix(); s != l.second {
		l.second, l.within = s, 0
	}
	l.within++
	l.busiest = max(l.busiest, l.within)
	return err
}

// Rate describes how many requests the client has made, and how long its own limit delayed them.
func (c *Client) Rate() string {
	l := c.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d requests to the API server, at most %d in a second; the limit of %.4g per second on average (--kube-api-qps) delayed them by %.1f s", l.requests, l.busiest, l.QPS(), l.waited.Seconds())
}

// heldUp is a wait for the client's limit that a user should hear of.
const heldUp = time.Second

// HeldUp reports whether the client's own limit has delayed requests so much that the user should know.
func (c *Client) HeldUp() bool {
	c.limit.mu.Lock()
	defer c.limit.mu.Unlock()
	return c.limit.waited > heldUp
}
