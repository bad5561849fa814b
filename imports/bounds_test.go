package imports

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// soon is far above what a parse takes on a busy machine, and far below a quadratic one.
const soon = 20 * time.Second

// TestDecodeMappingIsBounded: the errors of a mapping of equal keys took more memory than a
// machine has, and the error of a mapping of unknown keys had megabytes.
func TestDecodeMappingIsBounded(t *testing.T) {
	var unknown strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&unknown, "k%d: 1\n", i)
	}
	for name, text := range map[string]string{
		"equal keys": strings.Repeat("a:\n", 20_000), "many keys": strings.Repeat("x:\n", 1) + unknown.String(),
		"aliases": "a: &a [1,1,1,1,1,1,1,1]\n" + "b: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ncolumns: *d\n",
	} {
		var m struct {
			Columns map[string]string `yaml:"columns"`
		}
		began := time.Now()
		err := DecodeMapping("m.yaml", []byte(text), &m, "columns")
		if err == nil || len(err.Error()) > 1000 || !strings.HasPrefix(err.Error(), "m.yaml: ") {
			t.Errorf("%s: %.300v", name, err)
		}
		if took := time.Since(began); took > soon {
			t.Errorf("%s took %v", name, took)
		}
	}
}

// TestOfIsQuick: tare checks every study file for imported results.
func TestOfIsQuick(t *testing.T) {
	for name, text := range map[string]string{
		"equal keys":        strings.Repeat("a:\n", 50_000),
		"equal keys inside": "files:\n  \"" + carried + "\": x\n" + strings.Repeat("  a:\n", 50_000),
		"twice":             "files:\n  \"" + carried + "\": \"{}\"\n  \"" + carried + "\": \"{}\"\n",
	} {
		began := time.Now()
		if cat, ok := Of([]byte(text)); ok {
			t.Errorf("%s: %+v", name, cat)
		}
		if took := time.Since(began); took > soon {
			t.Errorf("%s took %v", name, took)
		}
	}
}
