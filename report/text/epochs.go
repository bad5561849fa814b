package text

import (
	"fmt"
	"strconv"
	"strings"

	"tare/analyse"
	"tare/plan"
	"tare/report/words"
)

// writeEpochs says what the sentinel saw of the machine: that it stayed as it
// was, or where it changed and which blocks ran again for that.
func writeEpochs(b *strings.Builder, res *analyse.Result, opt Options) {
	s := res.Sentinel
	if s == nil || s.Skipped != "" && len(s.Points) == 0 {
		return // what the host cannot do is listed with the skips
	}
	b.WriteString("\nthe machine meanwhile:\n")
	seen := fmt.Sprintf("%s of the sentinel (%s %s, %s of the time", words.Count(len(s.Points), "trial"), s.Kind, s.Response.Name, share(s.Share))
	if s.Scatter > 0 {
		seen += ", scatter " + share(s.Scatter)
	}
	seen += ")"
	if s.Failed > 0 {
		seen += fmt.Sprintf(", and %d that failed", s.Failed)
	}
	switch {
	case len(res.Epochs) > 1:
		seen += " saw " + words.Count(len(res.Epochs), "epoch")
	case len(s.Points) < analyse.MinSentinels:
		seen += fmt.Sprintf(": too few to see a change, which takes %d", analyse.MinSentinels)
	default:
		seen += " saw no change"
	}
	item(b, opt, seen)
	if busy := s.Busy(); busy != "" {
		item(b, opt, "warning: "+busy)
	}
	for i := 1; i < len(res.Epochs); i++ {
		item(b, opt, epochLine(&res.Epochs[i-1], &res.Epochs[i]))
	}
}

// epochLine tells of one change.
func epochLine(before, e *analyse.Epoch) string {
	var what []string
	for _, w := range e.What {
		switch w {
		case plan.ChangedTime:
			what = append(what, fmt.Sprintf("sentinel x %s", words.Ratio(e.Ratio)))
		case plan.ChangedWait:
			what = append(what, fmt.Sprintf("run-queue wait %s, then %s of the time", share(before.Wait), share(e.Wait)))
		}
	}
	again := 0
	for _, x := range e.Blocks {
		if x.Again {
			again++
		}
	}
	line := fmt.Sprintf("it changed after trial %d and before %d (%s): ", e.After, e.Seq, strings.Join(what, "; "))
	switch {
	case len(e.Blocks) == 0:
		return line + "no block lies there"
	case again == len(e.Blocks):
		return line + words.Count(again, "block") + " ran again"
	case again == 0:
		return line + words.Count(len(e.Blocks), "block") + " about it did not run again, for want of time"
	}
	return line + fmt.Sprintf("%d of %d blocks ran again", again, len(e.Blocks))
}

func share(x float64) string { return strconv.FormatFloat(100*x, 'g', 2, 64) + " %" }
