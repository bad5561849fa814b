package advice

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of docs/advice.md anew")

// TestDocs holds the table of docs/advice.md to the rules.
func TestDocs(t *testing.T) {
	const path, head = "../../docs/advice.md", "| rule | cause | where | when | what | not beside | from |\n|---|---|---|---|---|---|---|\n"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), head)
	if !ok {
		t.Fatalf("%s has no table of rules", path)
	}
	end := strings.Index(rest, "\n\n") + 1
	if end == 0 {
		end = len(rest)
	}
	var want strings.Builder
	for _, r := range Rules() {
		where := strings.Join(r.In, ", ")
		if where == "" {
			where = "any"
		}
		var causes []string
		for _, c := range r.Causes {
			causes = append(causes, string(c))
		}
		switch {
		case r.Name == "vcpus-or-limit":
			causes = append(causes, "any, by what was measured")
		case r.Name == "search-continue":
			causes = append(causes, "a search is not finished")
		case r.Name == "undecided":
			causes = append(causes, "nothing is decided")
		case len(causes) == 0:
			causes = append(causes, "nothing costs")
		}
		what := r.Does
		for _, s := range r.Set {
			what += fmt.Sprintf("; `%s`: %s", s.Factor, s.To)
		}
		kind := strings.Join(causes, ", ")
		if len(r.Roles) > 0 {
			kind += " (" + strings.Join(r.Roles, ", ") + ")"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s | %s | %s | %s |\n", r.Name, kind, where, strings.Join(r.When, ", "), what, strings.Join(r.NotWith, ", "), strings.Join(r.Source, "; "))
	}
	diff := cmp.Diff(want.String(), rest[:end])
	switch {
	case diff != "" && *update:
		if err := os.WriteFile(path, []byte(before+head+want.String()+rest[end:]), 0o600); err != nil {
			t.Fatal(err)
		}
	case diff != "":
		t.Errorf("%s is not what the rules say (-rules +shown); run this test with -update:\n%s", path, diff)
	}
	for word := range conditions() {
		if !strings.Contains(string(raw), "| `"+word+"` |") {
			t.Errorf("%s does not say what the condition %s is", path, word)
		}
	}
	for _, word := range append([]string{toDouble, toEnough, toMore, toFewest}, PatchesFor()...) {
		if !strings.Contains(string(raw), "`"+word+"`") {
			t.Errorf("%s does not say what %s is", path, word)
		}
	}
}
