package run

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/agent"
	"tare/collect"
	"tare/collect/guest"
	"tare/record"
	"tare/sandbox"
)

// virtual is a kind whose sandboxes say that they have a kernel of their own. It is
// this host's, read by a real agent.
type virtual struct{ kind }

func (v *virtual) Start(ctx context.Context, spec sandbox.Spec) (sandbox.Instance, error) {
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	go func() {
		_ = agent.Serve(context.Background(), toAgent, fromAgent, nil)
		_ = fromAgent.Close()
	}()
	c, err := agent.Connect(ctx, toClient, fromClient)
	if err != nil {
		return nil, err
	}
	return &machine{instance: instance{k: &v.kind, end: endOf(spec.Name)}, client: c, end: fromClient}, nil
}

type machine struct {
	instance
	client *agent.Client
	end    io.Closer
}

func (m *machine) Scope() sandbox.Scope   { return sandbox.Scope{Guest: m.client.Guest()} }
func (*machine) Facts() map[string]string { return map[string]string{record.FactAccelerator: "tcg"} }
func (*machine) Boot() []sandbox.BootPhase {
	return []sandbox.BootPhase{{Name: "kernel", Took: time.Second}}
}
func (m *machine) Stop(context.Context) error { return m.end.Close() }
func (m *machine) Exec(ctx context.Context, c sandbox.Command) (sandbox.Exit, error) {
	if m.instance.end == "client" {
		_ = sleep(ctx, 150*time.Millisecond) // a few readings
	}
	return m.instance.Exec(ctx, c)
}

func TestTrialInMachines(t *testing.T) {
	e, j := engine(t, "")
	e.Study.Timeout = 10 * time.Second
	e.Study.Collect.Interval = 10 * time.Millisecond
	e.Kinds["process"] = &virtual{kind{j: j, name: "process"}}
	e.Collectors = []collect.Collector{guest.New()}
	trial, evidence := e.Trial(t.Context(), first(e))
	if trial.Status != record.OK {
		t.Fatalf("%+v", trial.Failure)
	}
	got := map[string]float64{}
	for _, s := range trial.Samples {
		got[s.Name+"{"+string(s.Labels)+"}"] = s.Value
	}
	for _, name := range []string{
		"sandbox_boot{end=client,phase=kernel,sandbox=process}", "clock_uncertainty{end=client,phase=start}", "clock_uncertainty{end=server,phase=stop}",
		"guest_cores{end=client,mode=user}", "guest_cores{end=server,mode=idle}", "guest_busiest{end=client}", "agent_cpu_rate{end=client}", "guest_runnable_mean{end=server}",
	} {
		if v, ok := got[name]; !ok || v < 0 {
			t.Errorf("%s is %v, %v", name, v, ok)
		}
	}
	if got["sandbox_boot{end=client,phase=kernel,sandbox=process}"] != 1 {
		t.Error("the kernel's phase is not the second that it took")
	}
	if v, ok := got["sandbox_start{end=client,sandbox=process}"]; !ok || v != 1 {
		t.Errorf("the start took %v, its steps 1 s", v)
	}
	if trial.Facts["client.where"] != "native (TCG)" || trial.Facts["client.accelerator"] != "tcg" {
		t.Errorf("%v", trial.Facts)
	}
	for i := range evidence.Series {
		s := &evidence.Series[i]
		for k := 1; k < len(s.T); k++ {
			if s.T[k] <= s.T[k-1] {
				t.Errorf("%s{%s}: %v after %v", s.Name, s.Labels, s.T[k], s.T[k-1])
			}
		}
	}
	for _, w := range trial.Warnings {
		if w.Code == record.ClockDrift {
			t.Errorf("one clock is said to be two: %s", w.Text)
		}
	}
}

func TestStampedSeriesOverAWindow(t *testing.T) {
	counter := &line{stamped: true, Series: record.Series{Name: "guest_cpu", Unit: record.Second, Kind: record.Counter}}
	// One core that is busy from 1 s on, looked at every second, a little late.
	for i, v := range []float64{0, 0.1, 1.1, 2.1, 3.1} {
		counter.add(time.Duration(i)*time.Second+100*time.Millisecond, v)
	}
	counter.add(4*time.Second, 9) // before the last one: a stamp that goes back
	for name, c := range map[string]struct {
		w    window
		want float64
	}{
		"between points":       {window{1500 * time.Millisecond, 3500 * time.Millisecond}, 1},
		"on points":            {window{1100 * time.Millisecond, 4100 * time.Millisecond}, 1},
		"shorter than a step":  {window{2200 * time.Millisecond, 2300 * time.Millisecond}, 1},
		"ends after the last":  {window{2100 * time.Millisecond, 5 * time.Second}, 1},
		"begins before it all": {window{0, 1100 * time.Millisecond}, 0.1},
	} {
		got := summarise(counter, c.w)
		if len(got) != 1 || got[0].Unit != record.Cores || got[0].Value < c.want-1e-9 || got[0].Value > c.want+1e-9 {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
	if got := summarise(counter, window{4 * time.Second, 10 * time.Second}); got != nil {
		t.Errorf("a window that was hardly seen gave %v", got)
	}
	if got := summarise(&line{stamped: true, Series: record.Series{Kind: record.Counter}}, window{1, 2}); got != nil {
		t.Errorf("no points gave %v", got)
	}
}

func TestGuestFigures(t *testing.T) {
	rate := func(cpu, mode string, v float64) record.Sample {
		return record.Sample{Name: "guest_cpu_rate", Labels: record.MakeLabels("end", "client", "cpu", cpu, "mode", mode), Unit: record.Cores, Kind: record.Value, Value: v}
	}
	got := guestFigures([]record.Sample{
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

func TestDrift(t *testing.T) {
	u := 300 * time.Microsecond
	for by, want := range map[time.Duration]string{
		time.Millisecond: "", -3 * time.Millisecond: "", 8 * time.Millisecond: "fell behind the host's by 8ms in 10s", -8 * time.Millisecond: "ran ahead of the host's by 8ms",
	} {
		w := drift("client", sandbox.Clock{Offset: time.Hour, Uncertainty: u}, sandbox.Clock{Offset: time.Hour + by, Uncertainty: u}, 10*time.Second)
		if (w == nil) != (want == "") || w != nil && !strings.Contains(w.Text, want) {
			t.Errorf("%v: %+v, want %q", by, w, want)
		}
	}
}
