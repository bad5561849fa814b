package study

import (
	"os"
	"strings"
	"testing"
)

// The documentation's studies are studies, and its overrides work on them.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/study.md")
	if err != nil {
		t.Fatal(err)
	}
	schema := compiled(t, testCatalogue())
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	if len(blocks) != 2 {
		t.Fatalf("%d studies in docs/study.md", len(blocks))
	}
	var full string
	for _, b := range blocks {
		full, _, _ = strings.Cut(b, "```")
		mustParse(t, full)
		if err := schema.Validate(instance(t, []byte(full))); err != nil {
			t.Error(err)
		}
	}
	for _, set := range []string{"sandbox=process,runc", "workload=rr,noop", "rr.size=1B", "rr.size=1B,64KiB", `cpus=0,0-1\,3`,
		"stop.fixed=3", "stop.looks=3,4,6", "stop.width=10%", "budget.time=1m", "budget.blocks=6", "collect.rate=2Hz", "collect.use=proc", "seed=7"} {
		if !strings.Contains(string(text), set) {
			t.Errorf("%q is not in the page", set)
		}
		mustParse(t, full, set)
	}
	// The mistakes shown are what these mistakes give.
	wrong := strings.NewReplacer("[process, runc, crun", "[process, rucn, crun", "[1B, 4KiB]", "[1B, 4KX]", "{blocks: 16", "{blcks: 16").Replace(full)
	_, err1 := Parse("network.yaml", []byte(wrong), testCatalogue(), nil)
	_, err2 := Parse("network.yaml", []byte(full), testCatalogue(), []string{"sandbox=crun"})
	if err1 == nil || err2 == nil {
		t.Fatalf("%v, %v", err1, err2)
	}
	if shown := "```text\n" + err1.Error() + "\n" + err2.Error() + "\n```"; !strings.Contains(string(text), shown) {
		t.Errorf("the page does not show:\n%s", shown)
	}
	// Every key is explained.
	for _, k := range rootKeys() {
		if !strings.Contains(string(text), "| `"+k+"` |") {
			t.Errorf("key %q is not in the table", k)
		}
	}
}
