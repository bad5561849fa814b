package study

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/record"
)

const tablesHead = `study: x
factors: {sandbox: [process, runc, vm], vcpus: [1, 2], cpu-limit: [none, 1]}
workloads: {stream: {kind: net, size: [64, 4KiB]}, rr: {kind: net, mode: rr}}
`

func TestTables(t *testing.T) {
	st := mustParse(t, tablesHead+`tables:
  bandwidth: {response: throughput, workload: stream, columns: cpu-limit, where: {size: 4096}}
  latency: {response: latency, rows: sandbox, columns: cpu-limit}
  both: {response: rate, rows: [sandbox, size], workload: [rr, stream]}
`)
	want := []Table{
		{Name: "bandwidth", Response: "throughput", Rows: []string{"sandbox", "vcpus"}, Columns: "cpu-limit",
			Where: []Factor{{Name: "size", Levels: []string{"4KiB"}}, {Name: "workload", Levels: []string{"stream"}}}},
		{Name: "latency", Response: "latency", Rows: []string{"sandbox"}, Columns: "cpu-limit"},
		{Name: "both", Response: "rate", Rows: []string{"sandbox", "size"}, Where: []Factor{{Name: "workload", Levels: []string{"stream", "rr"}}}},
	}
	want[2].Where[0].Levels = []string{"rr", "stream"}
	if d := cmp.Diff(want, st.Tables); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	tab := &st.Tables[0]
	for _, c := range []struct {
		size string
		want bool
	}{{"4KiB", true}, {"64", false}, {"", true}} {
		cell := record.Cell{{Factor: "workload", Value: "stream"}}
		if c.size != "" {
			cell = append(cell, record.Level{Factor: "size", Value: c.size})
		}
		if got := tab.Holds(cell); got != c.want {
			t.Errorf("holds %s: %v", cell, got)
		}
	}
}

func TestTablesUnderSet(t *testing.T) {
	file := tablesHead + "tables: {a: {response: throughput, columns: cpu-limit, where: {size: 4KiB}}, b: {response: latency}}\n"
	for set, want := range map[string]string{"stream.size=64": "b", "sandbox=process,runc": "a b", "workload=rr": "b", "workload=stream": "a", "cpu-limit=none": "a b"} {
		var names []string
		for _, tab := range mustParse(t, file, set).Tables {
			names = append(names, tab.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("--set %s leaves the tables %q, want %q", set, got, want)
		}
	}
}

func TestTableErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"tables: [a]\n", "t.yaml:4:9: tables is not a mapping"},
		{"tables: {a b: {response: throughput}}\n", `t.yaml:4:10: "a b" is not a name for a table`},
		{"tables: {a: {}}\n", `t.yaml:4:10: table "a" has no response`},
		{"tables: {a: {response: throuhput}}\n", `t.yaml:4:24: no workload of table "a" compares a response "throuhput"; did you mean "throughput"?`},
		{"tables: {a: {response: throughput, workload: rr}}\n", `t.yaml:4:24: no workload of table "a" compares a response "throughput"; write one of latency_p50, latency, rate`},
		{"tables: {a: {response: throughput, workload: steam}}\n", `t.yaml:4:46: "steam" is not a level of workload in this study; did you mean "stream"?`},
		{"tables: {a: {respons: throughput}}\n", `t.yaml:4:14: unknown key "respons" in table a; did you mean "response"?`},
		{"tables: {a: {response: throughput, rows: [vcpus]}}\n", `t.yaml:4:43: the rows of table "a" must begin with the compared factor sandbox; write rows: [sandbox, vcpus]`},
		{"tables: {a: {response: throughput, rows: [sandbox, vcpu]}}\n", `t.yaml:4:52: "vcpu" is not a factor of this study; did you mean "vcpus"?`},
		{"tables: {a: {response: throughput, columns: vcpus}}\n", `t.yaml:4:45: "vcpus" varies with sandbox, so the baseline has no such column; write it among the rows`},
		{"tables: {a: {response: throughput, columns: sandbox}}\n", `t.yaml:4:45: "sandbox" is a factor of the rows already; choose another factor`},
		{"tables: {a: {response: throughput, columns: [cpu-limit, size]}}\n", `t.yaml:4:57: columns is more than one factor`},
		{"tables: {a: {response: throughput, where: {size: 65}}}\n", `t.yaml:4:50: "65" is not a level of size in this study; did you mean "64"?`},
		{"tables: {a: {response: throughput, workload: rr, where: {size: 64}}}\n", `t.yaml:4:24: no workload`},
	} {
		_, err := Parse("t.yaml", []byte(tablesHead+c.src), testCatalogue(), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%v\nwant %s", c.src, err, c.want)
		}
	}
	schema := compiled(t, testCatalogue())
	if err := schema.Validate(instance(t, []byte(tablesHead+"tables: {a: {response: throughput, rows: [sandbox], columns: cpu-limit, where: {size: [64, 4KiB]}}}\n"))); err != nil {
		t.Error(err)
	}
	if err := schema.Validate(instance(t, []byte(tablesHead+"tables: {a: {rows: [sandbox]}}\n"))); err == nil {
		t.Error("the schema takes a table without a response")
	}
}
