package httpload

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tare/param"
	"tare/record"
	"tare/trial/trialtest"
	"tare/workload"
)

func TestMain(m *testing.M) {
	os.Exit(trialtest.Main(m.Run, map[string]trialtest.Program{"http": Main, "crash": crash}))
}

// crash runs a command for a while, then kills it.
func crash(args []string, _, stderr io.Writer) int {
	cmd := exec.Command(args[1], args[2:]...)
	d, err := time.ParseDuration(args[0])
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	time.Sleep(d)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	fmt.Fprintln(stderr, "out of luck")
	return 7
}

// changed is a workload whose roles are not as they should be.
type changed struct {
	Workload
	change func(server, client *workload.Role)
}

func (c changed) Roles(v param.Values) ([]workload.Role, error) {
	roles, err := c.Workload.Roles(v)
	if err == nil {
		c.change(&roles[0], &roles[1])
	}
	return roles, err
}

// short gives the values the times of these trials. A busy host answers its first request late,
// and the load gives up after half of the warm-up.
func short(v param.Values) param.Values {
	out := param.Values{"warmup": "600ms", "duration": "400ms"}
	for name, x := range v {
		out[name] = x
	}
	return out
}

// TestTrials: each server under each load, the first natively and in sandboxes, the others in
// gVisor.
func TestTrials(t *testing.T) {
	for _, c := range []struct {
		load   Workload
		values []param.Values
	}{
		{Node(), []param.Values{
			{"load": "closed"},
			{"load": "open", "rate": "50", "connections": "4"},
			{"workers": "2", "texts": "9", "connections": "4", "check": "totals"},
		}},
		{Ruby(), []param.Values{
			{"load": "closed"},
			{"workers": "2", "server-threads": "2", "texts": "1", "connections": "4"},
		}},
		{Httpd(), []param.Values{
			{"connections": "5"},
			{"connections": "3", "mpm": "prefork", "workers": "3", "files": "disk", "size": "10KiB", "check": "every"},
			{"connections": "1", "workers": "1", "server-threads": "3", "load": "open", "rate": "50"},
		}},
		{Nginx(), []param.Values{
			{"connections": "4", "threads": "2"},
			{"connections": "1", "files": "disk", "size": "1MiB", "workers": "3"},
		}},
	} {
		t.Run(c.load.Name(), func(t *testing.T) {
			for i := range c.values {
				c.values[i] = short(c.values[i])
			}
			b := trialtest.New(t, c.load, c.values...)
			for i, v := range c.values {
				kinds := trialtest.Kinds()
				if i > 0 {
					kinds = []string{trialtest.GVisor}
				}
				t.Run(fmt.Sprint(v), func(t *testing.T) { b.In(t, kinds, v, "", func(t *testing.T, tr *record.Trial) { sound(t, tr, v) }) })
			}
		})
	}
}

// sound looks at what a trial measured. Lower bounds are far below what the slowest
// sandbox does on a busy machine; the open loop must not send more than it was told.
func sound(t *testing.T, tr *record.Trial, v param.Values) {
	t.Helper()
	if rate, ok := tr.Sample("rate"); !ok || rate < 5 || v["load"] == "open" && rate > 60 {
		t.Errorf("rate %g", rate)
	}
	p50, _ := tr.Sample("latency_p50")
	p99, _ := tr.Sample("latency_p99")
	if p50 <= 1e-6 || p99 < p50 || p99 > 6 {
		t.Errorf("latency %g s, %g s", p50, p99)
	}
	if len(tr.Histograms) != 1 {
		t.Errorf("%d histograms", len(tr.Histograms))
	}
}

// TestFailedTrials: a server that does not serve what is asked for fails the
// trial with a reason, whatever tells it.
func TestFailedTrials(t *testing.T) {
	url := func(r *workload.Role, from, to string) {
		for i := range r.Args {
			r.Args[i] = strings.Replace(r.Args[i], from, to, 1)
		}
	}
	for name, c := range map[string]struct {
		load   Workload
		values param.Values
		change func(server, client *workload.Role)
		want   string
	}{
		"404": {Httpd(), param.Values{"connections": "5"}, func(_, client *workload.Role) { url(client, "file.txt", "nothing.txt") },
			"GET /tmpfs/nothing.txt answers with status 404, want 200"},
		"404 in the open loop": {Node(), param.Values{"load": "open", "rate": "50"}, func(_, client *workload.Role) { url(client, ":8080/", ":8080/nothing") },
			"GET /nothing answers with status 404, want 200"},
		"short file": {Nginx(), param.Values{"connections": "5"}, func(server, _ *workload.Role) {
			server.Before[len(server.Before)-1], server.Probe.Size = "1000", 1000
		}, "a body of 1000 B, want 102400"},
		"crash": {Node(), param.Values{"duration": "5s"}, func(server, _ *workload.Role) {
			server.Args = append([]string{"/tare", "internal", "crash", "1s"}, server.Args...)
		}, "out of luck"},
		"crash before it is ready": {Ruby(), param.Values{"texts": "1"}, func(server, _ *workload.Role) { url(server, "server.rb", "nothing.rb") },
			"nothing.rb"},
		"no file": {Httpd(), param.Values{"connections": "5"}, func(server, _ *workload.Role) { server.Before = nil }, "403 Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			v := short(c.values)
			tr := trialtest.New(t, changed{c.load, c.change}, v).Trial(t, v, "process", "")
			if tr.Status != record.Failed {
				t.Fatalf("the trial is %s", tr.Status)
			}
			if f := tr.Failure; !strings.Contains(f.Reason, c.want) {
				t.Errorf("in %s, %s: %q, want %q in it\n%.600s", f.Phase, f.Kind, f.Reason, c.want, f.Tail)
			}
		})
	}
}
