package netload

import (
	"os"
	"slices"
	"strings"
	"testing"

	"tare/param"
	"tare/record"
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
		one("neighbours", param.Values{"protocol": "udp", "neighbours": "1500"}), // with a table of 1024
		one("upload", param.Values{"mode": "stream", "size": "64KiB"}),
		one("download", param.Values{"mode": "stream", "size": "64KiB", "direction": "download", "connections": "2"}),
		refused("udp stream", param.Values{"mode": "stream", "protocol": "udp"}),
		refused("large datagram", param.Values{"protocol": "udp", "size": "64KiB"}),
		refused("neighbours over TCP", param.Values{"neighbours": "10"}),
		refused("paced stream", param.Values{"mode": "stream", "rate": "100"}),
		refused("stream with reply", param.Values{"mode": "stream", "reply": "1"}),
		refused("rr download", param.Values{"direction": "download"}),
		refused("no end", param.Values{"duration": "0s"}),
		refused("less than one each", param.Values{"count": "1", "connections": "2"}),
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, Workload{}, cases()...) }

func FuzzParse(f *testing.F) { workloadtest.Fuzz(f, Workload{}, cases()...) }

// TestFullTable: the report of a client with more neighbours than its kernel's ARP table has room for says so.
func TestFullTable(t *testing.T) {
	f, err := os.Open("testdata/client-neighbours.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rd, err := Workload{}.Parse("client", param.Values{"mode": "rr"}, f)
	if err != nil {
		t.Fatal(err)
	}
	dropped := slices.IndexFunc(rd.Samples, func(s record.Sample) bool { return s.Name == "no_room" })
	if dropped < 0 || rd.Samples[dropped].Value != 4 {
		t.Errorf("samples %+v", rd.Samples)
	}
	if !slices.ContainsFunc(rd.Warnings, func(w record.Warning) bool {
		return w.Code == "net-arp-full" && strings.Contains(w.Text, "4 requests to new neighbours were dropped; raise its limit")
	}) {
		t.Errorf("warnings %+v", rd.Warnings)
	}
}

// TestUnanswered: a client that gives up says that the table was full, if it was.
func TestUnanswered(t *testing.T) {
	for dropped, want := range map[int64]string{0: "the server died", 7: "no room in its ARP table for 7 requests"} {
		w := &worker{sock: &socket{peer: "198.18.0.2:17202"}, noRoom: dropped}
		if err := w.unanswered(25); !strings.Contains(err.Error(), want) {
			t.Errorf("%d dropped: %v, want %q", dropped, err, want)
		}
	}
}

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
