package analyse

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tare/record"
)

// TestLabelNamesAreAll: each label that a file of this package asks for is among
// LabelNames; else an analysis of trials loaded with them would lack something,
// and nobody would see it.
func TestLabelNamesAreAll(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	asked := regexp.MustCompile(`Labels\.(Get|Pairs)\(([^)]*)\)`)
	n := 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range asked.FindAllSubmatch(b, -1) {
			n++
			name := strings.Trim(string(m[2]), `"`)
			if word, ok := map[string]string{"record.LabelResponse": record.LabelResponse, "record.LabelSandbox": record.LabelSandbox, "record.LabelTurn": record.LabelTurn, "record.LabelStep": record.LabelStep}[name]; ok {
				name = word
			}
			if f == "loadsteps.go" && slices.Contains([]string{"record.LabelBound", "record.LabelVerb", "record.LabelResource", "record.LabelFigure"}, name) || f == "placement.go" && name == "record.LabelEndpoint" || f == "boots.go" && name == "record.LabelPhase" || f == "carry.go" && name == "record.LabelEndpoint" {
				continue // of samples that have the label sandbox or step, too, or are among SampleNames, and come with all their labels
			}
			if !slices.Contains(LabelNames(), name) {
				t.Errorf("%s asks for %s, which LabelNames does not name", f, m[0])
			}
		}
	}
	if n < 3 {
		t.Errorf("only %d places ask for a label: look at this test", n)
	}
}
