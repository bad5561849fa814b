package words

import (
	"slices"
	"testing"

	"tare/analyse/published"
	"tare/analyse/stat"
)

// The answer counts what agrees with published figures, once there is something.
func TestAnswerCountsPublished(t *testing.T) {
	r := result(of("net", latency, 2, stat.Slower))
	r.Published = &published.Table{Summary: "1 of 2 agree."}
	said := func() bool {
		return slices.Contains(Answer(r, Options{}), Sentence{Tone: Note, Text: "1 of 2 agree."})
	}
	if said() {
		t.Error("nothing is measured, and it is counted")
	}
	r.Published.Agree, r.Published.Disagree = 1, 1
	if !said() {
		t.Errorf("the answer lacks it: %v", Answer(r, Options{}))
	}
}
