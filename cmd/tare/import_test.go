package main

import (
	"strings"
	"testing"
)

// TestMappingMissing: a mapping file that is not there is named, with what it would hold.
func TestMappingMissing(t *testing.T) {
	for format, line := range map[string]string{"csv": "columns: {value: COLUMN}", "pbench": "trees: ["} {
		var out, errs strings.Builder
		code := execute(t.Context(), &out, &errs, []string{"import", format, "x", "--map", "nope.yaml", "--results", t.TempDir()})
		if code != exitUsage || !strings.Contains(errs.String(), "--map nope.yaml: the file does not exist") || !strings.Contains(errs.String(), line) {
			t.Errorf("%s: exit code %d: %s", format, code, errs.String())
		}
	}
}
