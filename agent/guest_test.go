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
	for end := time.Now().Add(5 * time.Second); len(got) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
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
	c.guest.answered(returnBody{Error: "no /proc here"}, now, now)
	if got, err := c.Guest().Take(); len(got) != 0 || err == nil || !strings.Contains(err.Error(), "no /proc here") {
		t.Errorf("%v %v", got, err)
	}
	c.guest.answered(returnBody{Body: []byte(`{"at_ns":1,"cpus":[{"n":0}]}`)}, now, now)
	if got, err := c.Guest().Take(); len(got) != 1 || err != nil {
		t.Errorf("%v %v", got, err)
	}
}
