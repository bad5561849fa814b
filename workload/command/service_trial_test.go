package command

import (
	"strings"
	"testing"

	"tare/param"
	"tare/record"
	"tare/trial/trialtest"
)

// redis is a server of the host, with its own generator of load.
func redis() param.Values {
	return param.Values{
		"server": "redis-server --save '' --protected-mode no --bind 0.0.0.0 --port 6400", "ready": "tcp:6400",
		"load": "redis-benchmark -h {server} -p 6400 -q -t get -n 2000", "warmup": "1ms",
		"figures": `rate[1/s]='GET: ([0-9.]+) requests' p50[ms]='p50=([0-9.]+)'`,
	}
}

// TestServices: servers in each sandbox, with load from outside.
func TestServices(t *testing.T) {
	http := func(more ...string) param.Values {
		v := param.Values{"server": "/usr/bin/python3 -m http.server 8080 --directory /etc/apt", "duration": "300ms", "warmup": "100ms", "connections": "2"}
		for i := 0; i < len(more); i += 2 {
			v[more[i]] = more[i+1]
		}
		return v
	}
	b := trialtest.New(t, NewService(), redis())
	for name, v := range map[string]param.Values{
		"redis": redis(),
		"ready": {"server": redis()["server"] + " --loglevel notice", "ready": "output:* Ready", "shell": "sh", "warmup": "0s",
			"load": "sleep 0.1; redis-benchmark -h {server} -p 6400 -q -t get -n 100 | tr '\\r' '\\n'", "figures": `rate[1/s]='GET: ([0-9.]+) requests'`},
		"closed":     http(),
		"open":       http("loop", "open", "rate", "50"),
		"keep-alive": http("keep-alive", "false"),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "ready" { // redis-server has the time and its number before the text
				v["server"] += " | while read -r pid role rest; do echo \"${rest#*'* '}\"; case $rest in *Ready*) echo '* Ready';; esac; done"
			}
			b.Each(t, v, serverRole, func(t *testing.T, tr *record.Trial) {
				rate, _ := tr.Sample("rate")
				t.Logf("rate %.0f/s", rate)
				if rate < 1 {
					t.Errorf("rate = %g", rate)
				}
			})
		})
	}
}

// TestServiceFailures: a server that ends, or is never ready, and load that fails.
func TestServiceFailures(t *testing.T) {
	with := func(more ...string) param.Values {
		v := redis()
		for i := 0; i < len(more); i += 2 {
			v[more[i]] = more[i+1]
		}
		return v
	}
	b := trialtest.New(t, NewService(), redis())
	for name, c := range map[string]struct {
		v    param.Values
		says string
	}{
		"ends":    {with("server", "sh -c 'echo the reason >&2; exit 3'"), "the reason"},
		"missing": {with("server", "no-such-server"), "no-such-server"},
		"load":    {with("load", "sh -c 'echo the reason >&2; exit 4'"), "the reason"},
		"figure":  {with("figures", "x=(never)"), `nothing in the output matches "(never)"`},
		"refused": {with("load", "redis-benchmark -h {server} -p 6401 -q -t get -n 10"), "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"process", "runsc-systrap"} {
				tr := b.Trial(t, c.v, kind, serverRole)
				if tr.Failure == nil || !strings.Contains(strings.ToLower(tr.Failure.Reason+tr.Failure.Tail), c.says) {
					t.Errorf("%s: %+v, want %q", kind, tr.Failure, c.says)
				}
			}
		})
	}
}
