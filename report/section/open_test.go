package section

import (
	"encoding/json"
	"strings"
	"testing"

	"tare/analyse"
)

// TestOpen: a row that has surely no large cost may lack a verdict; nothing calls it undecided.
func TestOpen(t *testing.T) {
	r := &analyse.Result{Margin: 0.03, Finished: true, Compared: []analyse.Comparison{{Needs: &analyse.Shortage{Blocks: 29}}}}
	for _, s := range []*Section{ended(r, ""), Stops(r)} {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if !strings.Contains(text, "1 row without a verdict") || strings.Contains(text, "undecided") {
			t.Errorf("%s", text)
		}
	}
}
