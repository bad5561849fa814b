package csv

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTables: the tables of a mapping are the report's, and a mistake in them has its place in
// the mapping.
func TestTables(t *testing.T) {
	const data = "sandbox,threads,v\npod,,1\nvm,0,1\nvm,2,2\n"
	const head = "baseline: pod\ncolumns: {sandbox: sandbox, threads: threads, value: v}\nconstants: {response: rate, unit: ops/s}\n"
	for tables, want := range map[string]string{
		"tables: {a: {figure: best of threads, response: rate}}\n":                    "",
		"tables:\n  a: {figure: best of thread, response: rate}\n":                    `map.yaml:5:23: "thread" is not a factor of this study; did you mean "threads"?`,
		"tables:\n  a: {figure: best of threads, response: rate, rows: [sandbx]}\n":   `map.yaml:5:55: "sandbx" is not a factor of this study; did you mean "sandbox"?`,
		"tables:\n  a: {figure: vm over pot, response: rate}\n  b: {response: rte}\n": `map.yaml:5:23: "pot" is not a level of sandbox`,
	} {
		m, err := ParseMapping("map.yaml", []byte(head+tables))
		if err != nil {
			t.Fatal(err)
		}
		set, err := Read("data.csv", strings.NewReader(data), m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = set.Write(t.Context(), filepath.Join(t.TempDir(), "results"), "test", time.Now())
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s%v\nwant %s", tables, err, want)
		}
	}
}
