package run

import (
	"errors"
	"fmt"
	"testing"
)

// TestSkipNamesTheSandboxOnce: Check mostly begins with the sandbox's name, but
// need not.
func TestSkipNamesTheSandboxOnce(t *testing.T) {
	for says, want := range map[string]string{
		"process: needs root":           "process: needs root",
		"process does not work here\n":  "process does not work here",
		"needs root":                    "process: needs root",
		"processes cannot be made":      "process: processes cannot be made",
		"runc: the process: needs root": "process: runc: the process: needs root",
	} {
		e, _ := engine(t, "")
		e.Kinds["process"].(*kind).check = errors.New(says)
		skips, err := e.Skips(t.Context(), nil, 1)
		if err != nil || len(skips) != 1 {
			t.Fatalf("%q: %v, %v", says, skips, err)
		}
		if got := skips[0].Reason; got != want {
			t.Errorf("%q is reported as %q, want %q", says, got, want)
		}
	}
	e, _ := engine(t, "")
	if skips, err := e.Skips(t.Context(), nil, 1); err != nil || len(skips) != 0 {
		t.Errorf("a sandbox that works: %s", fmt.Sprint(skips, err))
	}
}
