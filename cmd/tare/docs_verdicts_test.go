package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tare/analyse/stat"
	"tare/record"
)

// TestDocsVerdicts: no table in the documents shows a difference that the present rule does
// not call, because it rests on a few noisy blocks.
func TestDocsVerdicts(t *testing.T) {
	pages := []string{filepath.Join("..", "..", "README.md")}
	if err := filepath.WalkDir(filepath.Join("..", "..", "docs"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	called := regexp.MustCompile(`([0-9.]+) ([▲▼])~? ([0-9.]+)–([0-9.]+)`)
	rule := stat.NewRule(0.95, 0, 0.03, nil, 1)
	seen := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		column := -1 // where the table's column n ends
		for i, line := range strings.Split(string(text), "\n") {
			runes := []rune(line)
			switch at := strings.Index(line, " n "); {
			case strings.HasPrefix(line, "workload") && at >= 0:
				column = len([]rune(line[:at])) + 1
				continue
			case strings.HasPrefix(line, "```"):
				column = -1
			}
			if column < 0 || column >= len(runes) {
				continue
			}
			fields := strings.Fields(string(runes[:column+1]))
			if len(fields) == 0 {
				continue
			}
			n, err := strconv.Atoi(fields[len(fields)-1])
			if err != nil {
				continue
			}
			for _, m := range called.FindAllStringSubmatch(line, -1) {
				e := stat.Estimate{N: n}
				for k, to := range map[int]*float64{1: &e.Ratio, 3: &e.Lo, 4: &e.Hi} {
					if *to, err = strconv.ParseFloat(m[k], 64); err != nil {
						t.Fatal(err)
					}
				}
				seen++
				if v, why := rule.Judge(e, record.Lower); v == stat.Undecided {
					t.Errorf("%s:%d: %s from %d blocks: %s", page, i+1, m[0], n, why)
				}
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d differences were found in the documents' tables", seen)
	}
}
