package agent

import (
	"strings"
	"testing"
	"time"

	"tare/sandbox"
)

func TestClockOfTheSameKernel(t *testing.T) {
	c, _, _ := pair(t)
	got, err := c.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The agent has this kernel's clock, so the true offset is none. Goroutines that
	// wait for a processor make the estimate worse, and say so.
	if got.Uncertainty <= 0 || got.Offset.Abs() > got.Uncertainty+20*time.Microsecond {
		t.Errorf("%+v", got)
	}
	t.Logf("%+v", got)
}

func TestGuestReadings(t *testing.T) {
	c, _, _ := pair(t)
	g := c.Guest()
	if got, err := g.Take(); len(got) != 0 || err != nil {
		t.Fatalf("readings that nobody asked for: %v", got)
	}
	before := time.Now()
	g.Ask()
	g.Ask() // does nothing: the first is not answered, or one more reading comes
	var got []sandbox.GuestReading
	for end := time.Now().Add(time.Minute); len(got) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		got, _ = g.Take()
	}
	if len(got) == 0 {
		t.Fatal("no reading")
	}
	r := got[0]
	if r.At.Before(before) || r.At.After(time.Now()) || len(r.CPUs) == 0 || r.Runnable < 1 || r.Memory <= r.Free || r.Free <= 0 || r.Spent <= 0 {
		t.Errorf("%+v", r)
	}
	if cpu := r.CPUs[0]; cpu.User <= 0 || cpu.System <= 0 || cpu.Idle <= 0 {
		t.Errorf("%+v", cpu)
	}
}

// TestGuestSaysWhyThereIsNoReading: and goes on.
func TestGuestSaysWhyThereIsNoReading(t *testing.T) {
	c, _, _ := pair(t)
	now := time.Now()
	c.guest.answered(returnBody{Error: "no /proc here"}, 1, now, now)
	if got, err := c.Guest().Take(); len(got) != 0 || err == nil || !strings.Contains(err.Error(), "no /proc here") {
		t.Errorf("%v %v", got, err)
	}
	c.guest.answered(returnBody{Body: []byte(`{"readings":[{"at_ns":1,"cpus":[{"n":0}]}]}`)}, 1, now, now)
	if got, err := c.Guest().Take(); len(got) != 1 || err != nil {
		t.Errorf("%v %v", got, err)
	}
}

// TestGuestReadsInBatches: after a while several readings come at a time, at the rate
// at which they are asked for and with times of their own; and what there is when a
// command ends.
func TestGuestReadsInBatches(t *testing.T) {
	c, _, _ := pair(t)
	g := c.Guest()
	const every = 20 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	var got []sandbox.GuestReading
	most := 0
	for end := time.Now().Add(time.Minute); most < 4 && time.Now().Before(end); <-tick.C {
		some, err := g.Take()
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(some))
		got = append(got, some...)
		g.Ask()
	}
	if most < 4 {
		t.Fatalf("at most %d readings in an answer, after %d", most, len(got))
	}
	for i := 1; i < len(got); i++ {
		if !got[i].At.After(got[i-1].At) || got[i].CPUs[0].Idle < got[i-1].CPUs[0].Idle-1 {
			t.Errorf("%s after %s: %+v", got[i].At, got[i-1].At, got[i])
		}
	}

	c.guest.mu.Lock()
	c.guest.gaps, c.guest.seen = [nGaps]time.Duration{time.Second / 10}, 1000
	asked := c.guest.asked
	c.guest.mu.Unlock()
	for end := time.Now().Add(time.Minute); asked && time.Now().Before(end); time.Sleep(time.Millisecond) {
		c.guest.mu.Lock()
		asked = c.guest.asked
		c.guest.mu.Unlock()
	}
	_, _ = g.Take()
	before := time.Now()
	g.Ask()
	if _, err := c.Run(t.Context(), sandbox.Command{Args: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	got, err := g.Take()
	if err != nil || len(got) < 2 || len(got) > 1+int(ended.Sub(before)/(time.Second/10))+1 || got[len(got)-1].At.After(ended) {
		t.Errorf("%d readings when a command has ended after %s, %v", len(got), ended.Sub(before), err)
	}
}

// TestWants: how many readings are asked for at once.
func TestWants(t *testing.T) {
	for _, c := range []struct {
		gaps  []time.Duration
		seen  int
		count int
		every time.Duration
	}{
		{nil, 0, 1, time.Millisecond},
		{[]time.Duration{time.Second / 10}, 3, 1, time.Second / 10},
		{[]time.Duration{time.Second / 10, time.Second / 10}, 12, 3, time.Second / 10},
		{[]time.Duration{98 * time.Millisecond, 3 * time.Millisecond, 100 * time.Millisecond}, 500, 10, time.Second / 10}, // a reading out of turn
		{[]time.Duration{time.Millisecond}, 500, maxBatch / 2, time.Millisecond},
		{[]time.Duration{5 * time.Second}, 500, 1, 5 * time.Second},
		{[]time.Duration{time.Hour}, 500, 1, mostEvery},
	} {
		g := &guest{seen: c.seen}
		copy(g.gaps[:], c.gaps)
		if got := g.wants(); got.Count != c.count || got.Every != int64(c.every) {
			t.Errorf("%v after %d: %+v", c.gaps, c.seen, got)
		}
	}
}

// TestReadingsThatCannotBe are refused.
func TestReadingsThatCannotBe(t *testing.T) {
	c, _, _ := pair(t)
	now := time.Now()
	for body, want := range map[string]string{
		`{"readings":[]}`: "0 readings",
		`{"readings":[{"at_ns":1},{"at_ns":2},{"at_ns":3}]}`: "3 readings; 1 to 2 were asked for",
		`{"readings":[{"at_ns":2},{"at_ns":2}]}`:             "older than the one before",
		`{"readings":[{"at_ns":-1}]}`:                        "older than the one before",
		`{"readings":[{"at_ns":1},{"at_ns":9000000000}]}`:    "readings span 8.999",
		`{"readings":[{"at_ns":1,"runnable":-1}]}`:           "out of range",
	} {
		c.guest.answered(returnBody{Body: []byte(body)}, 2, now, now.Add(time.Second))
		if got, err := c.Guest().Take(); len(got) != 0 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
}
