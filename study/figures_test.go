package study

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFigures(t *testing.T) {
	st := mustParse(t, tablesHead+`tables:
  best: {figure: best of vcpus, response: throughput, rows: [size], columns: [cpu-limit], total: size}
  few: {figure: fewest 80% of vcpus, response: throughput, columns: cpu-limit}
  few-90: {figure: fewest of  vcpus, response: throughput, where: {size: 64}}
  gain: {figure: gain of size, response: throughput, where: {sandbox: runc, cpu-limit: none}}
  over: {figure: vm over runc, response: latency}
  value: {figure: value, response: latency, rows: [sandbox, vcpus], columns: cpu-limit}
`)
	where := []Factor{{Name: "size", Levels: []string{"64"}}}
	want := []Figure{
		{Name: "best", Kind: FigureBest, Text: "best of vcpus", Response: "throughput", Share: 0.9, Of: "vcpus", Rows: []string{"size"}, Columns: []string{"cpu-limit"}, Total: "size"},
		{Name: "few", Kind: FigureFewest, Text: "fewest 80% of vcpus", Response: "throughput", Share: 0.8, Of: "vcpus", Rows: []string{"size"}, Columns: []string{"cpu-limit"}},
		{Name: "few-90", Kind: FigureFewest, Text: "fewest of vcpus", Response: "throughput", Share: 0.9, Of: "vcpus", Rows: []string{"cpu-limit"}, Where: where},
		{Name: "gain", Kind: FigureGain, Text: "gain of size", Response: "throughput", Share: 0.9, Of: "size",
			Where: []Factor{{Name: "sandbox", Levels: []string{"runc"}}, {Name: "cpu-limit", Levels: []string{"none"}}}},
		{Name: "over", Kind: FigureOver, Text: "vm over runc", Response: "latency", One: "vm", Other: "runc", Rows: []string{"cpu-limit"}},
		{Name: "value", Kind: FigureValue, Text: "value", Response: "latency", Rows: []string{"sandbox", "vcpus"}, Columns: []string{"cpu-limit"}},
	}
	if d := cmp.Diff(want, st.Figures); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(st.Tables) != 0 {
		t.Errorf("%d summary tables", len(st.Tables))
	}
}

func TestFiguresUnderSet(t *testing.T) {
	file := tablesHead + "tables: {a: {figure: best of vcpus, response: throughput}, b: {figure: vm over runc, response: latency}, c: {figure: value, response: latency, rows: sandbox, where: {vcpus: 1}, columns: cpu-limit}}\n"
	for set, want := range map[string]string{"sandbox=process,runc": "", "vcpus=1": "b c", "workload=rr": "b c", "cpu-limit=none": "a b c"} {
		var names []string
		for _, f := range mustParse(t, file, set).Figures {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("--set %s leaves the figures %q, want %q", set, got, want)
		}
	}
}

func TestFigureErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"{figure: best}", `t.yaml:4:22: "best" is not a figure of merit; write value, best of FACTOR,`},
		{"{figure: [best]}", `t.yaml:4:22: figure is a list or a mapping`},
		{"{figure: most of vcpus, response: throughput}", `t.yaml:4:22: "most of vcpus" is not a figure of merit`},
		{"{figure: best of vcpu, response: throughput}", `t.yaml:4:30: "vcpu" is not a factor of this study; did you mean "vcpus"?`},
		{"{figure: 'best of vcpu', response: throughput}", `t.yaml:4:31: "vcpu" is not a factor`},
		{"{figure: fewest 0% of vcpus, response: throughput}", `t.yaml:4:29: the share "0%" is not possible; write a value between 0% and 100%`},
		{"{figure: vm over pod, response: throughput}", `t.yaml:4:30: "pod" is not a level of sandbox in this study`},
		{"{figure: best of vcpus}", `t.yaml:4:10: table "a" has no response`},
		{"{figure: best of vcpus, response: thruput}", `t.yaml:4:47: no workload of table "a" compares a response "thruput"; did you mean "throughput"?`},
		{"{figure: best of vcpus, response: throughput, rows: size}", `t.yaml:4:10: the cells of table "a" differ in cpu-limit; add it to rows or columns, or write where: {cpu-limit: none}`},
		{"{figure: best of cpu-limit, response: throughput, rows: size}", `t.yaml:4:10: the cells of table "a" differ in sandbox;`},
		{"{figure: best of vcpus, response: throughput, rows: [vcpus, size]}", `t.yaml:4:66: "vcpus" is what table "a" is already over, or in its rows; remove it`},
		{"{figure: best of vcpus, response: throughput, rows: size, columns: [cpu-limit, size]}", `t.yaml:4:92: "size" is what table "a" is already over`},
		{"{figure: best of vcpus, response: throughput, rows: [size, cpu-limit], total: size}", `t.yaml:4:91: a total is over the last factor of the rows, which "size" is not; write total: cpu-limit`},
		{"{figure: best of vcpus, response: throughput, columns: size, total: size}", `t.yaml:4:81: "size" is not in the rows of table "a"`},
		{"{figure: best of vcpus, response: throughput, where: {vcpus: 1}}", `t.yaml:4:30: vcpus has one level in the cells of table "a"`},
		{"{figure: best of vcpus, response: throughput, where: {sandbox: runc}}", `t.yaml:4:10: table "a" matches no cell of this study`},
		{"{figures: best of vcpus, response: throughput}", `t.yaml:4:14: unknown key "figures" in table a; did you mean "figure"?`},
	} {
		_, err := Parse("t.yaml", []byte(tablesHead+"tables: {a: "+c.src+"}\n"), testCatalogue(), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n%v\nwant %s", c.src, err, c.want)
		}
	}
	schema := compiled(t, testCatalogue())
	for text, good := range map[string]bool{"value": true, "best of vcpus": true, "fewest 90% of vcpus": true, "vm over runc": true, "best": false, "most of vcpus": false} {
		src := tablesHead + "tables: {a: {figure: " + text + ", response: throughput, columns: [cpu-limit, size], total: size}}\n"
		if err := schema.Validate(instance(t, []byte(src))); (err == nil) != good {
			t.Errorf("the schema on %q: %v", text, err)
		}
	}
}
