package all

import (
	"os"
	"path/filepath"
	"testing"
)

// TestListed: no workload is there twice, each has its page, and no page is of a
// workload that is not listed.
func TestListed(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range Workloads() {
		if seen[w.Name()] {
			t.Errorf("%s is listed twice", w.Name())
		}
		seen[w.Name()] = true
		if _, err := os.Stat(filepath.Join("..", "..", "docs", "workloads", w.Name()+".md")); err != nil {
			t.Errorf("the page of %s: %v", w.Name(), err)
		}
	}
	pages, err := filepath.Glob("../../docs/workloads/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen["uperf"] = seen["net"]             // a separate page for the profiles of net
	seen["objects-files"] = seen["objects"] // a separate page for the files of objects
	for _, p := range pages {
		if name := filepath.Base(p[:len(p)-len(".md")]); !seen[name] {
			t.Errorf("%s describes a workload that is not listed", p)
		}
	}
}
