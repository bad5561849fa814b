package study

import (
	"strings"
	"testing"
)

func TestPublished(t *testing.T) {
	file := func(sandboxes, more string) string {
		return "study: p\nfactors: {sandbox: " + sandboxes + "}\nworkloads: {cpu: {}}\n" + more
	}
	both := "[process, runc, runsc-systrap]"
	if st := mustParse(t, file(both, "published: gvisor-guide\n")); st.Published != "gvisor-guide" {
		t.Errorf("published is %q", st.Published)
	}
	if st := mustParse(t, file(both, "")); st.Published != "" {
		t.Errorf("published is %q, and nobody asked", st.Published)
	}
	// Fewer sandboxes by --set are a smaller study, not a mistake.
	if st := mustParse(t, file(both, "published: gvisor-guide\n"), "sandbox=process,runc"); st.Published != "gvisor-guide" {
		t.Errorf("published is %q under --set", st.Published)
	}
	for _, c := range []struct{ name, src, want string }{
		{"unknown", file(both, "published: gvisor-gude\n"), `p.yaml:4:12: there are no published figures "gvisor-gude"; did you mean "gvisor-guide"?`},
		{"a list", file(both, "published: [gvisor-guide]\n"), "p.yaml:4:12: "},
		{"no runc", file("[process, runsc-systrap]", "published: gvisor-guide\n"), "p.yaml:4:1: the published figures are ratios to runc, which this study does not measure; add runc"},
		{"no runsc", file("[process, runc]", "published: gvisor-guide\n"), "p.yaml:4:1: the published figures are for runsc, which this study does not measure; add runsc-ptrace"},
		{"another factor", file(both, "compare: cpu-limit\nbaseline: none\npublished: gvisor-guide\n"), "the published figures compare sandboxes"},
	} {
		src := c.src
		if c.name == "another factor" {
			src = strings.Replace(src, "]}", "], cpu-limit: [none, 1]}", 1)
		}
		_, err := Parse("p.yaml", []byte(src), testCatalogue(), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
