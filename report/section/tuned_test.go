package section

import (
	"strings"
	"testing"

	"tare/analyse"
	"tare/analyse/tune"
	"tare/record"
)

// TestTunedSays: the sentence says what its confidence is of, and the note how the chances differ from it: they do not allow for the
// margin.
func TestTunedSays(t *testing.T) {
	for _, c := range []struct {
		reach  float64
		stage  tune.Stage
		answer string
		note   string
	}{
		{0.9, tune.Found, "Set io_threads to 12: it is the lowest that reaches 90 % of the best, within the margin of 1 %, with a confidence of 99 %. The best is 16.",
			"exactly the lowest that reaches 90 % of the best. The confidence in an answer allows for the margin: the answer reaches at least 89.1 %, and no lower level reaches 90.9 %."},
		{0.9, tune.Narrowing, "Not clear yet: io_threads 12 is the most probable for the lowest that reaches 90 % of the best, within the margin of 1 % (100 %). Run more blocks.", "89.1 %"},
		{1, tune.Found, "Set io_threads to 12: it is the lowest within 1 % of the best, with a confidence of 99 %. The best is 16.",
			"exactly the lowest that reaches 99.5 % of the best. The confidence in an answer allows for the margin: the answer reaches at least 99 %, and no lower level reaches 99.7 %."},
	} {
		r := &analyse.Result{Confidence: 0.95, Margin: 0.01, Tuned: []analyse.Tuned{{Workload: "read", Response: "throughput", Factor: "io_threads", Reach: c.reach, Stage: c.stage,
			Care: []string{"io_threads 12: much"}, Answer: "12", Best: "16", Set: record.Cell{{Factor: "io_threads", Value: "12"}}, Sure: 0.999,
			Levels: []analyse.TunedLevel{{Level: "12", Blocks: 4, Share: 0.9, Lo: 0.89, Hi: 0.91, Chance: 0.79}, {Level: "16", Blocks: 4, Share: 1, Lo: 1, Hi: 1, Chance: 0.21}}}}}
		var text, notes []string
		for _, b := range Tuned(r).Blocks {
			text, notes = append(text, b.Text), append(notes, b.Note)
		}
		if all := strings.Join(text, "\n"); !strings.Contains(all, c.answer) {
			t.Errorf("reach %v, %s: %q, want %q", c.reach, c.stage, all, c.answer)
		}
		if all := strings.Join(text, "\n"); !strings.Contains(all, "Take care: io_threads 12: much.") {
			t.Errorf("the answer does not say what to take care of: %q", all)
		}
		if b := tunedAnswers(r).Blocks[0]; len(b.List) != 2 || b.List[1] != (Item{Lead: "take care", Text: "io_threads 12: much"}) {
			t.Errorf("the short answer is %+v", b.List)
		}
		if all := strings.Join(notes, "\n"); strings.Count(all, "chance:") != 1 || !strings.Contains(all, c.note) {
			t.Errorf("reach %v: the note is %q, want %q", c.reach, all, c.note)
		}
	}
}

// TestTunedThin: with too few blocks for chances, neither the answer nor the table shows one.
func TestTunedThin(t *testing.T) {
	r := &analyse.Result{Confidence: 0.95, Margin: 0.03, Tuned: []analyse.Tuned{{Workload: "read", Response: "throughput", Factor: "io_threads", Reach: 0.9, Stage: tune.Narrowing, Thin: true,
		Answer: "none", Best: "none", Set: record.Cell{{Factor: "io_threads", Value: "none"}}, Ended: "the budget of 1 block is used up",
		Levels: []analyse.TunedLevel{{Level: "none", Blocks: 1, Share: 1, Lo: 1, Hi: 1}, {Level: "2", Blocks: 1, Share: 0.1, Lo: 0.05, Hi: 0.35}}}}}
	var text string
	for _, b := range Tuned(r).Blocks {
		text += b.Text + "\n"
		if b.Table == nil {
			continue
		}
		for _, row := range b.Table.Rows {
			if last := row[len(row)-1].First; last != "-" {
				t.Errorf("the chance of %v is %q", row[0].First, last)
			}
		}
	}
	if want := "Not clear yet: io_threads none comes first so far for the lowest that reaches 90 % of the best, within the margin of 3 %, but there are too few blocks for a chance. The search ended: the budget of 1 block is used up."; !strings.Contains(text, want) {
		t.Errorf("%q, want %q", text, want)
	}
}
