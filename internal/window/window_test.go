package window

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/record"
)

func TestStampedSeriesOverAWindow(t *testing.T) {
	counter := &Series{Stamped: true, Series: record.Series{Name: "guest_cpu", Unit: record.Second, Kind: record.Counter}}
	// One core that is busy from 1 s on, looked at every second, a little late.
	for i, v := range []float64{0, 0.1, 1.1, 2.1, 3.1} {
		counter.T, counter.V = append(counter.T, time.Duration(i)*time.Second+100*time.Millisecond), append(counter.V, v)
	}
	for name, c := range map[string]struct {
		w    Span
		want float64
	}{
		"between points":       {Span{1500 * time.Millisecond, 3500 * time.Millisecond}, 1},
		"on points":            {Span{1100 * time.Millisecond, 4100 * time.Millisecond}, 1},
		"shorter than a step":  {Span{2200 * time.Millisecond, 2300 * time.Millisecond}, 1},
		"ends after the last":  {Span{2100 * time.Millisecond, 5 * time.Second}, 1},
		"begins before it all": {Span{0, 1100 * time.Millisecond}, 0.1},
	} {
		got := counter.Summarise(c.w)
		if len(got) != 1 || got[0].Unit != record.Cores || got[0].Value < c.want-1e-9 || got[0].Value > c.want+1e-9 {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
	if got := counter.Summarise(Span{4 * time.Second, 10 * time.Second}); got != nil {
		t.Errorf("a window that was hardly seen gave %v", got)
	}
	if got := (&Series{Stamped: true, Series: record.Series{Kind: record.Counter}}).Summarise(Span{1, 2}); got != nil {
		t.Errorf("no points gave %v", got)
	}
}

func TestGuestFigures(t *testing.T) {
	rate := func(cpu, mode string, v float64) record.Sample {
		return record.Sample{Name: "guest_cpu_rate", Labels: record.MakeLabels("end", "client", "cpu", cpu, "mode", mode), Unit: record.Cores, Kind: record.Value, Value: v}
	}
	got := guest([]record.Sample{
		rate("0", "user", 0.7), rate("0", "softirq", 0.2), rate("0", "idle", 0.1),
		rate("1", "user", 0.1), rate("1", "idle", 0.5), rate("1", "iowait", 0.4),
		{Name: "cpu_time_rate", Labels: "end=client", Value: 5},
	})
	want := map[string]float64{"mode=user": 0.8, "mode=softirq": 0.2, "mode=idle": 0.6, "mode=iowait": 0.4, "": 0.9}
	sums := map[string]float64{}
	for _, s := range got {
		l := strings.TrimPrefix(strings.TrimPrefix(string(s.Labels), "end=client"), ",")
		sums[l] = float64(int(s.Value*1e6+0.5)) / 1e6
	}
	if d := cmp.Diff(want, sums); d != "" {
		t.Error(d)
	}
}

func TestSummariseOverAWindow(t *testing.T) {
	counter := &Series{Series: record.Series{Name: "cpu", Unit: record.Second, Kind: record.Counter,
		T: []time.Duration{0, 1e9, 2e9, 3e9}, V: []float64{0, 5, 5.5, 6}}}
	got := counter.Summarise(Span{1e9, 3e9})
	want := []record.Sample{{Name: "cpu_rate", Unit: record.Cores, Kind: record.Value, Value: 0.5}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// A role whose first thread came within the window has used all of it there.
	late := &Series{Series: record.Series{Name: "cpu", Unit: record.Second, Kind: record.Counter, T: []time.Duration{2e9, 3e9}, V: []float64{0.5, 1}}}
	if got := late.Summarise(Span{1e9, 3e9}); len(got) != 1 || got[0].Value != 0.5 {
		t.Errorf("a late counter gave %+v, want 0.5", got)
	}
	if got := counter.Summarise(Span{}); got != nil {
		t.Errorf("a window of nothing gave %v", got)
	}
}

// TestBusiestThread: of each role the one thread that used most, and how long that one waited.
func TestBusiestThread(t *testing.T) {
	thread := func(name, role, tid string, v float64) *Series {
		return &Series{Series: record.Series{Name: name, Labels: record.MakeLabels("end", "server", "role", role, "thread", "x", "tid", tid),
			Unit: record.Second, Kind: record.Counter, T: []time.Duration{0, 2e9}, V: []float64{0, v}}}
	}
	got := Figures([]*Series{
		thread("thread_cpu_time", "vhost", "7", 1.8), thread("thread_run_wait", "vhost", "7", 0.2),
		thread("thread_cpu_time", "vhost", "8", 0.4), thread("thread_run_wait", "vhost", "8", 1),
		thread("thread_cpu_time", "vcpu", "9", 1),
	}, Span{0, 2e9})
	want := []record.Sample{
		{Name: record.ThreadBusiest, Labels: "end=server,role=vcpu", Unit: record.Cores, Kind: record.Value, Value: 0.5},
		{Name: record.ThreadBusiest, Labels: "end=server,role=vhost", Unit: record.Cores, Kind: record.Value, Value: 0.9},
		{Name: record.ThreadBusiestWait, Labels: "end=server,role=vhost", Unit: record.Cores, Kind: record.Value, Value: 0.1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
