package trial

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

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

func (m *machine) Scope() sandbox.LocalScope { return sandbox.LocalScope{Guest: m.client.Guest()} }
func (*machine) Facts() map[string]string {
	return map[string]string{record.FactAccelerator: record.AcceleratorTCG}
}
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
