package store

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedQueries runs every query of docs/results.md, by the driver and by
// sqlite3 where that is installed: each must give rows.
func TestDocumentedQueries(t *testing.T) {
	queries := blocks(t, "sql")
	if len(queries) != 6 {
		t.Fatalf("%d queries are documented, want 6", len(queries))
	}
	s := newStore(t)
	appendN(t, s, 1, 12)
	for i, q := range queries {
		rows, err := s.db.Query(q)
		if err != nil {
			t.Errorf("query %d: %v\n%s", i+1, err, q)
			continue
		}
		n := 0
		for rows.Next() {
			n++
		}
		if err := rows.Err(); err != nil || n == 0 {
			t.Errorf("query %d: %d rows, %v\n%s", i+1, n, err, q)
		}
		_ = rows.Close()
	}
	// The third query's ratios are known: testTrial makes them 2 and 3.
	rows, err := s.db.Query("SELECT sandbox, round(avg(ratio), 3) FROM (" + strings.TrimSuffix(strings.TrimSpace(queries[2]), ";") + ") GROUP BY sandbox")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	got := map[string]float64{}
	for rows.Next() {
		var name string
		var ratio float64
		if err := rows.Scan(&name, &ratio); err != nil {
			t.Fatal(err)
		}
		got[name] = ratio
	}
	if got["runc"] != 2 || got["crun"] != 3 {
		t.Errorf("ratios %v, want runc 2 and crun 3", got)
	}
	t.Run("sqlite3", func(t *testing.T) {
		bin, err := exec.LookPath("sqlite3")
		if err != nil {
			t.Skip("no sqlite3 here")
		}
		for i, q := range queries {
			out, err := exec.CommandContext(t.Context(), bin, "-readonly", "-batch", filepath.Join(s.Dir(), dbName), q).CombinedOutput()
			if err != nil || len(bytes.TrimSpace(out)) == 0 {
				t.Errorf("query %d: %v\n%s", i+1, err, out)
			}
		}
	})
}

// TestDocumentedSchema finds every table, view and column in the page.
func TestDocumentedSchema(t *testing.T) {
	s := newStore(t)
	page := readPage(t)
	rows, err := s.db.Query("SELECT m.name, p.name FROM sqlite_schema m, pragma_table_info(m.name) p WHERE m.type IN ('table', 'view')")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	n := 0
	for rows.Next() {
		var tab, col string
		if err := rows.Scan(&tab, &col); err != nil {
			t.Fatal(err)
		}
		n++
		line := regexp.MustCompile("(?m)^\\| `" + tab + "` \\|.*`" + col + "`")
		if !line.MatchString(page) {
			t.Errorf("docs/results.md does not describe %s.%s", tab, col)
		}
	}
	if n < 60 {
		t.Fatalf("only %d columns were looked at", n)
	}
}

// TestDocumentedGo runs the page's Go code, which must be the body of
// documentedGo below.
func TestDocumentedGo(t *testing.T) {
	code := blocks(t, "go")
	self, err := os.ReadFile("docs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	body := "\t" + strings.ReplaceAll(strings.TrimSpace(code[0]), "\n", "\n\t") + "\n}"
	if !strings.Contains(string(self), body) {
		t.Error("documentedGo is not the code of docs/results.md")
	}
	s := newStore(t)
	appendN(t, s, 1, 3)
	if err := documentedGo(s.Dir()); err != nil {
		t.Fatal(err)
	}
}

// documentedGo is word for word as in docs/results.md.
func documentedGo(dir string) error {
	db, err := sql.Open("sqlite", "file:"+dir+"/results.db?mode=ro")
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.Query("SELECT sandbox, value FROM responses WHERE response = ? ORDER BY seq", "latency_p99")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var sandbox string
		var seconds float64
		if err := rows.Scan(&sandbox, &seconds); err != nil {
			return err
		}
		fmt.Printf("%s %.1f us\n", sandbox, seconds*1e6)
	}
	return rows.Err()
}

func readPage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func blocks(t *testing.T, language string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(readPage(t), -1) {
		out = append(out, m[1])
	}
	return out
}
