package cluster

import (
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestRests: if the user does not return, the coordinator gives up its nodes and keeps its trials. When the user returns, it
// holds the nodes again. A coordinator without trials ends instead.
func TestRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, users := new(insideSite), make(chan net.Conn)
		ended := make(chan error, 1)
		await := func(patience time.Duration) {
			go func() {
				_, err := s.await(t.Context(), users, patience)
				ended <- err
			}()
		}
		rests := func(after time.Duration, want bool) {
			t.Helper()
			time.Sleep(after)
			if synctest.Wait(); s.resting.Load() != want {
				t.Errorf("resting = %t, want %t", !want, want)
			}
		}
		await(lonelyAfter)
		rests(lonely-time.Second, false)
		rests(2*time.Second, true)
		users <- nil
		if err := <-ended; err != nil || s.resting.Load() {
			t.Errorf("after the user returned: error %v, resting = %t", err, s.resting.Load())
		}
		await(lonelyAfter)
		rests(lonelyAfter-time.Second, true)
		time.Sleep(2 * time.Second)
		if err := <-ended; err == nil {
			t.Error("the coordinator did not end")
		}
		await(lonely)
		rests(lonely-time.Second, false)
		time.Sleep(2 * time.Second)
		if err := <-ended; err == nil {
			t.Error("a coordinator without trials did not end")
		}
	})
}

// TestTellHold: the kubelet's probe succeeds while the study holds its nodes.
func TestTellHold(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, ended := new(insideSite), make(chan error, 1)
	go func() { ended <- s.tellHold(l) }()
	for _, rests := range []bool{false, true, false} {
		s.resting.Store(rests)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = got.Body.Close(); (got.StatusCode < 400) == rests { // as the kubelet judges
			t.Errorf("resting = %t, but the answer is %s", rests, got.Status)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}
