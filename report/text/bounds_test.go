package text

import (
	"fmt"
	"strings"
	"testing"

	"tare/analyse"
	"tare/record"
)

// TestReportIsBounded: somebody else's results may have a million reasons, or one of many
// megabytes.
func TestReportIsBounded(t *testing.T) {
	res := testResult()
	huge := strings.Repeat("\x1b[2J ", 1<<20)
	for i := range 5000 {
		res.Warnings = append(res.Warnings, analyse.Warning{Code: fmt.Sprint("code", i), Text: "x"})
		res.Compared[0].Failures = append(res.Compared[0].Failures, analyse.Reason{Kind: fmt.Sprint("kind", i), Count: 1, Text: "x"})
		res.Skips = append(res.Skips, record.Skip{Cell: record.Cell{{Factor: "workload", Value: "w"}}, Reason: fmt.Sprint("reason", i)})
	}
	res.Compared[0].Failed = 5000
	res.Compared[0].Failures[0].Text, res.Compared[0].Workload = huge, huge
	var b strings.Builder
	if err := Write(&b, res, []record.Host{{Hostname: huge, Warnings: []record.Warning{{Text: huge}}}}, Options{}); err != nil {
		t.Fatal(err)
	}
	if n := b.Len(); n > 1<<20 {
		t.Errorf("%d bytes", n)
	}
	for _, want := range []string{"more; --json has all", "and 4901 more"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not there", want)
		}
	}
}
