package command

import (
	"slices"
	"testing"

	"tare/param"
	"tare/record"
	"tare/workload"
	"tare/workload/workloadtest"
)

func serviceCases() []workloadtest.Case {
	refused := func(values ...string) workloadtest.Case {
		c := workloadtest.Case{Name: values[0] + "=" + values[1], Params: param.Values{}, Refused: true}
		for i := 0; i < len(values); i += 2 {
			c.Params[values[i]] = values[i+1]
		}
		return c
	}
	return []workloadtest.Case{
		{Name: "redis", Params: redis(), Outputs: map[string]string{"client": "testdata/redis.txt"}},
		{Name: "closed", Outputs: map[string]string{"client": "testdata/closed.json"}},
		{Name: "tls", Params: param.Values{"tls": "resume", "keep-alive": "false", "trust": "/tmp/ca.pem"}, Outputs: map[string]string{"client": "testdata/tls.json"}},
		{Name: "open", Params: param.Values{"loop": "open"}, Outputs: map[string]string{"client": "testdata/open.json"}},
		refused("server", " "), refused("server", "'"), refused("server", "a | b"), refused("load", "a > b"), refused("load", "true", "exit", "-1"),
		refused("ready", "8080"), refused("ready", "tcp:x"), refused("ready", "tcp:0"), refused("ready", "http:/"), refused("ready", "http:80/a b"), refused("ready", "output:"),
		refused("http", "x/"), refused("http", "80/{client}"), refused("figures", "a=x"), refused("format", "jmh"), refused("load", "true", "figures", "wall=x"),
		refused("tls", "full", "trust", "ca.pem"), refused("tls", "full", "server-name", ""),
		refused("image", "x", "load", "true", "mounts", "x"), refused("cwd", "."),
	}
}

func TestServiceContract(t *testing.T) { workloadtest.Run(t, NewService(), serviceCases()...) }

func FuzzServiceParse(f *testing.F) { workloadtest.Fuzz(f, NewService(), serviceCases()...) }

// TestReady: the three ways to know that a server is ready.
func TestReady(t *testing.T) {
	for text, want := range map[string]workload.Role{
		"tcp:6379":          {Probe: &workload.Probe{Port: 6379}},
		"http:80":           {Probe: &workload.Probe{Port: 80, Path: "/"}},
		"http:80/a/b?c=d":   {Probe: &workload.Probe{Port: 80, Path: "/a/b?c=d"}},
		"output: Listening": {Ready: "Listening", Networked: true},
	} {
		var got workload.Role
		if err := ready(text, &got); err != nil || got.Ready != want.Ready || got.Networked != want.Networked || (got.Probe == nil) != (want.Probe == nil) ||
			got.Probe != nil && *got.Probe != *want.Probe {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// TestPrimary: what a stopping rule looks at first is the user's figure, or the time.
func TestPrimary(t *testing.T) {
	for want, v := range map[string]param.Values{
		"rate": redis(), "wall": {"load": "true"}, "latency_p99": {"loop": "open"}, "benchmark": {"load": "x", "format": "jmh"},
	} {
		rs := NewService().Responses(workloadtest.Fill(t, NewService(), v))
		if rs[0].Name != want || slices.ContainsFunc(rs[1:], func(r record.Response) bool { return r.Name == want }) {
			t.Errorf("%+v, want %s first", rs, want)
		}
	}
}
