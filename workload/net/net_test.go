package netload

import (
	"slices"
	"testing"

	"tare/param"
	"tare/workload/workloadtest"
)

// cases were captured over the loopback of a two-core machine, with the
// warm-up of 200 ms and the window of 600 ms that the params say.
func cases() []workloadtest.Case {
	short := func(v param.Values) param.Values {
		v["warmup"], v["duration"] = "200ms", "600ms"
		return v
	}
	one := func(name string, v param.Values) workloadtest.Case {
		return workloadtest.Case{Name: name, Params: short(v), Outputs: map[string]string{
			"server": "testdata/server-" + name + ".txt", "client": "testdata/client-" + name + ".json"}}
	}
	refused := func(name string, v param.Values) workloadtest.Case {
		return workloadtest.Case{Name: name, Params: v, Refused: true}
	}
	prof := func(name string) workloadtest.Case {
		return workloadtest.Case{Name: "profile-" + name, Params: param.Values{"profile": shipped(name), "vars": shippedVars()[name]}, Outputs: map[string]string{
			"server": "testdata/server-profile-" + name + ".txt", "client": "testdata/client-profile-" + name + ".json"}}
	}
	return []workloadtest.Case{
		prof("request-response"), prof("stream"), prof("connections"), prof("voice"),
		refused("variables of nothing", param.Values{"vars": "n=1"}),
		refused("bad profile", param.Values{"profile": "<profile>"}),
		refused("mode beside profile", param.Values{"profile": shipped("stream"), "vars": "nthr=1 duration=1s", "mode": "stream"}),
		one("rr", param.Values{}),
		one("open", param.Values{"rate": "2000", "connections": "2"}),
		one("overload", param.Values{"rate": "500000", "connections": "2"}),
		one("udp", param.Values{"protocol": "udp"}),
		one("upload", param.Values{"mode": "stream", "size": "64KiB"}),
		one("download", param.Values{"mode": "stream", "size": "64KiB", "direction": "download", "connections": "2"}),
		refused("udp stream", param.Values{"mode": "stream", "protocol": "udp"}),
		refused("large datagram", param.Values{"protocol": "udp", "size": "64KiB"}),
		refused("paced stream", param.Values{"mode": "stream", "rate": "100"}),
		refused("stream with reply", param.Values{"mode": "stream", "reply": "1"}),
		refused("rr download", param.Values{"direction": "download"}),
		refused("no end", param.Values{"duration": "0s"}),
		refused("less than one each", param.Values{"count": "1", "connections": "2"}),
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, Workload{}, cases()...) }

func FuzzParse(f *testing.F) { workloadtest.Fuzz(f, Workload{}, cases()...) }

// TestDefaultSize: a stream of the small messages that a round trip has would
// show the price of a system call.
func TestDefaultSize(t *testing.T) {
	for mode, want := range map[string]string{"rr": "64", "stream": "65536"} {
		v, err := param.Fill(Workload{}.Params(), param.Values{"mode": mode})
		if err != nil {
			t.Fatal(err)
		}
		roles, err := Workload{}.Roles(v)
		if err != nil {
			t.Fatal(err)
		}
		args := roles[1].Args
		if i := slices.Index(args, "--size"); i < 0 || args[i+1] != want {
			t.Errorf("mode %s: %q, want --size %s", mode, args, want)
		}
	}
}
