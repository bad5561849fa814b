package kube

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLimit: the client counts its requests and the time that its own limit takes.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{limit: newLimit(10, 5)}
		wait := func(n int) {
			for range n {
				if err := c.limit.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		wait(5)
		if c.HeldUp() || !strings.HasPrefix(c.Rate(), "5 requests to the API server, at most 5 in a second") {
			t.Error(c.Rate())
		}
		begun := time.Now()
		wait(20)
		if took := time.Since(begun); took < 1900*time.Millisecond || took > 2100*time.Millisecond || !c.HeldUp() {
			t.Errorf("20 requests took %s: %s", took, c.Rate())
		}
		if !strings.Contains(c.Rate(), "25 requests") || !strings.Contains(c.Rate(), "limit of 10 per second on average (--kube-api-qps) delayed them by 2.0 s") {
			t.Error(c.Rate())
		}
	})
}
