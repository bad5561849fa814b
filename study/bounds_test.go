package study

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestManyMistakesAreBounded: a text that is not a study is refused quickly, with a short
// message.
func TestManyMistakesAreBounded(t *testing.T) {
	var many strings.Builder
	many.WriteString("study: x\n")
	for i := range 60_000 {
		fmt.Fprintf(&many, "k%d:\n", i)
	}
	for name, src := range map[string]string{
		"unknown keys": many.String(),
		"equal keys":   "study: x\n" + strings.Repeat("a:\n", 60_000),
		"aliases":      "a: &a [1,1,1]\nb: &b [*a,*a,*a]\nc: [" + strings.Repeat("*b,", 60_000) + "]\n",
		"a long tag":   "study: !" + strings.Repeat("x", 500_000) + " a\n",
		"a long alias": "study: *" + strings.Repeat("x", 500_000) + "\n",
		"a long name":  "study: [" + strings.Repeat("x", 500_000) + "\n",
		"too large":    strings.Repeat("#", MaxSource+1),
	} {
		began := time.Now()
		_, err := Parse("s.yaml", []byte(src), Catalogue{}, nil)
		if err == nil || strings.Count(err.Error(), "\n") > maxErrors || len(err.Error()) > 50_000 {
			t.Errorf("%s: %.300v", name, err)
		}
		if name == "unknown keys" && err != nil && !strings.Contains(err.Error(), "and 5998") {
			t.Errorf("%s: %.300v", name, err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}
