package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the SQLite that Grafana's plugin has too

	"tare/record"
	"tare/store"
)

// docs/tools.md is run as it stands, on a results folder of known values:
//
//	```sh tools       in the folder
//	```sql duckdb     one session of DuckDB a page
//	```python         one program a page
//
// and the queries of docs/grafana/dashboard.json by SQLite.

// toolsFolder makes a results folder: two workloads natively and in runc, five
// blocks of each, one failure, two time series a trial. It returns the ratios of
// latency_p99 by workload.
func toolsFolder(t *testing.T) (dir string, ratios map[string]float64) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "r")
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	db, err := store.Create(dir, store.Meta{StudySource: []byte("study: tools\nfactors: {sandbox: [process, runc]}\nworkloads: {cpu: {}, rr: {kind: net}}\n"),
		Seed: 1, TareVersion: "test", Started: at, Host: record.Host{Hostname: "h1", OS: "Debian", Kernel: "6.1", Threads: 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	logs := map[string]float64{}
	seq := 0
	for block := 1; block <= 5; block++ {
		for w, workload := range []string{"cpu", "rr"} {
			var values [2]float64
			for k, sandbox := range []string{"process", "runc"} {
				seq++
				values[k] = 1e-5 * (1 + 0.3*float64(w)) * math.Pow(1.2, float64(k)) * (1 + 0.01*float64(seq*seq%7))
				trial := &record.Trial{Seq: seq, Block: block, Attempt: 1, Status: record.OK, Start: at.Add(time.Duration(seq) * time.Second), Duration: time.Second,
					Cell:    record.Cell{{Factor: "workload", Value: workload}, {Factor: "sandbox", Value: sandbox}},
					Samples: []record.Sample{{Name: "latency_p99", Unit: record.Second, Kind: record.Value, Value: values[k]}}}
				var e record.Evidence
				for i := range 2 {
					s := record.Series{Name: [2]string{"cgroup_cpu", "cgroup_memory"}[i], Labels: "end=main", Unit: [2]record.Unit{record.Second, record.Byte}[i],
						Kind: [2]record.SampleType{record.Counter, record.Gauge}[i]}
					for n := range 10 {
						s.T, s.V = append(s.T, time.Duration(n)*100*time.Millisecond), append(s.V, [2]float64{0.09 * float64(n), 1e6 + float64(n)}[i])
					}
					e.Series = append(e.Series, s)
				}
				if err := db.Append(t.Context(), trial, e); err != nil {
					t.Fatal(err)
				}
			}
			logs[workload] += math.Log(values[1]/values[0]) / 5
		}
	}
	failed := &record.Trial{Seq: seq + 1, Block: 6, Attempt: 1, Status: record.Failed, Start: at.Add(time.Minute), Cell: record.Cell{{Factor: "workload", Value: "rr"}, {Factor: "sandbox", Value: "runc"}},
		Failure: &record.Failure{Phase: "run", Kind: "died", Reason: "it died"}}
	if err := db.Append(t.Context(), failed, record.Evidence{}); err != nil {
		t.Fatal(err)
	}
	ratios = map[string]float64{}
	for w, l := range logs {
		ratios[w] = math.Exp(l)
	}
	return dir, ratios
}

// python runs a program with what scripts/setup.sh installed.
func python(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join(top, ".cache/venv/bin/python"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(bin), "..", "wanted")); err != nil {
		t.Skip("needs DuckDB and pandas: `scripts/setup.sh test` installs them where it can")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, append([]string{"-c", program}, args...)...)
	cmd.Dir = dir
	// Nothing is written outside of the test's folder, and nothing drawn on a screen.
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "MPLBACKEND=Agg", "PYTHONWARNINGS=error::FutureWarning")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("python: %v\n%s\n%s", err, out, stderr.Bytes())
	}
	return string(out)
}

// duckRunner runs statements from files and prints each one's rows as JSON. The
// extension comes from the package beside DuckDB: INSTALL finds it there, and
// downloads nothing.
const duckRunner = `
import duckdb, glob, json, os, sys
import duckdb_extension_sqlite_scanner as e
con = duckdb.connect(config={"autoinstall_known_extensions": "false"})
con.execute("SET enable_progress_bar = false")  # it is written to standard output
for f in glob.glob(os.path.dirname(e.__file__) + "/extensions/*/*.duckdb_extension"):
    con.execute(f"INSTALL '{f}'")
out = []
for text in json.load(open(sys.argv[1])):
    for s in duckdb.extract_statements(text):
        r = con.execute(s)
        if s.type == duckdb.StatementType.SELECT:
            names = [d[0] for d in r.description]
            out.append([dict(zip(names, row)) for row in r.fetchall()])
print(json.dumps(out))
`

func TestDocsToolsDuckDB(t *testing.T) {
	dir, ratios := toolsFolder(t)
	var blocks []string
	for _, b := range readPage(t, "docs/tools.md").blocks {
		switch {
		case b.is("sql", "duckdb"):
			blocks = append(blocks, b.text)
		case b.is("sh", "tools"):
			for line := range strings.Lines(b.text) {
				if out, code := shell(t, dir, line, true); code != 0 {
					t.Fatalf("docs/tools.md:%d: %s: %d\n%s", b.line, line, code, out)
				}
			}
		}
	}
	raw, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "blocks.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	var got [][]map[string]any
	out := python(t, dir, duckRunner, file)
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%.300s", err, out)
	}
	if len(got) != 4 {
		t.Fatalf("%d queries, want 4: %.300s", len(got), out)
	}
	for i, rows := range got {
		if len(rows) == 0 {
			t.Errorf("query %d finds nothing", i+1)
		}
	}
	for _, r := range got[0] {
		want := ratios[r["workload"].(string)]
		if g := r["ratio"].(float64); math.Abs(g-want) > 6e-5 || r["blocks"].(float64) != 5 {
			t.Errorf("%v, want the ratio %.4f of 5 blocks", r, want)
		}
	}
	// Four cells of one gauge that ends at 1e6+9; counters rise by 0.9 a second.
	if len(got[0]) != 2 || len(got[1]) != 4 || got[1][0]["most"].(float64) != 1e6+9 {
		t.Errorf("ratios %v, gauges %v", got[0], got[1])
	}
	for _, r := range got[2] {
		if v, ok := r["per_second"].(float64); ok && math.Abs(v-0.9) > 1e-9 {
			t.Errorf("a rate is %v, want 0.9", v)
		}
	}
	if n := got[3][0]["trials"].(float64); len(got[3]) != 2 || n != 10 {
		t.Errorf("from Parquet: %v", got[3])
	}
}

func TestDocsToolsPandas(t *testing.T) {
	dir, ratios := toolsFolder(t)
	var program strings.Builder
	for _, b := range readPage(t, "docs/tools.md").blocks {
		if b.is("python") {
			program.WriteString(b.text)
		}
	}
	// What the page computed, without print's rounding.
	program.WriteString(`
import json
print("=" + json.dumps({"ratios": np.exp(np.log(ratios).groupby("workload").mean())["runc"].to_dict(),
    "gauge": gauges.iloc[-1, 0], "rate": rates.mean().iloc[0], "rows": len(order)}))
`)
	out := python(t, dir, program.String())
	_, last, _ := strings.Cut(out, "\n=")
	var got struct {
		Ratios      map[string]float64
		Gauge, Rate float64
		Rows        int
	}
	if err := json.Unmarshal([]byte(last), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for w, want := range ratios {
		if math.Abs(got.Ratios[w]/want-1) > 1e-12 {
			t.Errorf("%s: ratio %v, want %v", w, got.Ratios[w], want)
		}
	}
	if got.Gauge != 1e6+9 || math.Abs(got.Rate-0.9) > 1e-9 || got.Rows != 20 {
		t.Errorf("%+v", got)
	}
	png, err := os.ReadFile(filepath.Join(dir, "order.png"))
	if err != nil || !bytes.HasPrefix(png, []byte("\x89PNG")) {
		t.Errorf("order.png: %v", err)
	}
}

// TestDocsToolsGrafana runs each query of the dashboard with its variables put in.
func TestDocsToolsGrafana(t *testing.T) {
	dir, ratios := toolsFolder(t)
	raw, err := os.ReadFile(filepath.Join(top, "docs/grafana/dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	type query struct {
		QueryText, RawQueryText, QueryType string
		TimeColumns                        []string
	}
	var dash struct {
		Panels []struct {
			Title   string
			Targets []query
		}
		Templating struct {
			List []struct {
				Name  string
				Query query
			}
		}
	}
	if err := json.Unmarshal(raw, &dash); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "results.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	values := []string{"$__from", fmt.Sprint(time.Now().Add(-2 * time.Hour).UnixMilli()), "$__to", fmt.Sprint(time.Now().UnixMilli())}
	for _, v := range dash.Templating.List {
		rows := queried(t, db, v.Query.RawQueryText)
		if len(rows) == 0 {
			t.Fatalf("the variable %s has no value", v.Name)
		}
		for _, x := range rows[0] {
			values = append(values, "$"+v.Name, fmt.Sprint(x))
		}
	}
	if strings.Join(values[4:], " ") != "$response latency_p99 $baseline process" {
		t.Errorf("the variables are %v", values)
	}
	put := strings.NewReplacer(values...)
	if len(dash.Panels) != 5 {
		t.Errorf("%d panels", len(dash.Panels))
	}
	for _, p := range dash.Panels {
		for _, q := range p.Targets {
			if q.QueryText != q.RawQueryText {
				t.Errorf("%s: the query and its raw form are not the same", p.Title)
			}
			rows := queried(t, db, put.Replace(q.RawQueryText))
			if len(rows) == 0 {
				t.Errorf("%s: nothing is found", p.Title)
				continue
			}
			for _, c := range q.TimeColumns {
				if s, ok := rows[0][c].(int64); !ok || time.Since(time.Unix(s, 0)) > 2*time.Hour {
					t.Errorf("%s: %s is %v, no time of the study", p.Title, c, rows[0][c])
				}
			}
			for _, r := range rows {
				if g, ok := r["ratio"].(float64); ok && math.Abs(g/ratios[r["workload"].(string)]-1) > 1e-12 {
					t.Errorf("%s: %v, want %v", p.Title, r, ratios)
				}
			}
		}
	}
}

func queried(t *testing.T, db *sql.DB, query string) []map[string]any {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for rows.Next() {
		v, p := make([]any, len(names)), make([]any, len(names))
		for i := range v {
			p[i] = &v[i]
		}
		if err := rows.Scan(p...); err != nil {
			t.Fatal(err)
		}
		row := map[string]any{}
		for i, n := range names {
			row[n] = v[i]
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	return out
}
