package document

import (
	"fmt"
	"strconv"

	"tare/analyse"
	"tare/report/words"
)

// notes tell how the figures are computed, in the terms of docs/method.md, whose
// headings they cite; a test holds them to it.
func notes(r *analyse.Result) []Note {
	confidence, level, margin, baseline := 0.95, 0.95, 0.03, "the baseline"
	if r != nil {
		confidence, level, margin, baseline = r.Confidence, r.Level, r.Margin, r.Baseline
	}
	interval := "Student's t on the logarithms of the quotients, its variance moderated over the study. "
	if level > confidence {
		interval += fmt.Sprintf("The study stops where intervals are narrow, so scatter looks smaller than it is. Each interval has a level of %s %%, and misses the truth in about %s %% of comparisons. ",
			percent(level), percent(1-confidence))
	}
	interval += "Fewer than three blocks give no interval."
	out := []Note{
		{"baseline", "What is compared with what", fmt.Sprintf("Each treatment is compared with %s on the same machine, in the same block: both run once, "+
			"back to back, in random order. process is native: the same files, limits and network, without the isolation.", baseline), "What is compared with what"},
		{"response", "A response", "One figure of one trial, over its measured time alone; the time before is warm-up. Within a trial it may be a percentile of " +
			"thousands of events; for the study it is one value. Values of trials are shown with six digits.", "A response"},
		{"ratio", "A ratio", "The treatment's value divided by the baseline's of the same block; the geometric mean of these quotients over all blocks that have both. " +
			"n is the number of those blocks. 2 is twice the baseline.", "A ratio"},
		{"interval", "An interval", interval, "An interval"},
		{"verdict", "A verdict", fmt.Sprintf("Equivalent: the whole interval lies between 1/(1+m) and 1+m, m = %s %%. Else better or worse (faster, slower): it lies "+
			"wholly on one side of 1, by the response's better side; higher or lower where it has none. Anything else is undecided, which is not the same as equal. So is a difference that rests on fewer than five blocks and whose interval is wider than 10 %%.",
			percent(margin)), "A verdict"},
		{"stop", "When a study stops", "A workload variant ends at a declared look when the interval of each of its first responses is as narrow as requested, or narrow compared with a large effect; at the last look; or at the budget. It does not end because a difference is clear.",
			"When a study stops"},
		{"level", "The level of a cell", "The geometric mean over its good trials, or the median if a value is not positive. Least and greatest are over the same trials.", "Levels and overheads"},
		{"cost", "What measuring costs", "Medians over good trials. noop is a whole trial that does nothing: the overhead of tare itself. The CPU of each collector is in cores.", "Levels and overheads"},
		{"curve", "A distribution", "The histograms of all good trials of a cell, merged event by event, also those of blocks that ran again. It is not a mean of percentiles; the ratio of a percentile still uses one value from each trial.",
			"Levels and overheads"},
		{"series", "Time series", "One trial, as sampled. Counters are shown as rates over each sampling interval: seconds of CPU per second are cores. " +
			"Long series show the extremes of each stretch; stacked CPU and guests' processors show its mean. The sum is over all roles of one side; the quota is that of its cgroup. Samples within a trial never count towards n.", "A ratio"},
		{"order", "The order of trials", "Trials in the order in which they ran. A drift of the machine shows here as a slope that all cells share; comparing within blocks cancels it.",
			"Machines that misbehave"},
	}
	if r != nil && len(r.Structural) > 0 {
		out = append(out, Note{"structural", "Structural cost", "The isolated side's system calls are counted natively, in a separate trial. The explained time is the calls per operation times the extra time of getpid in the sandbox, " +
			"divided by the processors that make calls at once. The rest is the extra time minus that. Of the rest, the calls' own work is what the measured kinds of calls cost more than getpid. " +
			"A bar is the time of one operation in the sandbox.", "Structural cost"})
	}
	if r != nil && r.Published != nil {
		p := r.Published
		out = append(out, Note{"published", "Beside published figures", fmt.Sprintf("The measured ratio is %s, from the same blocks as all others. It agrees if the published ratio lies in its "+
			"interval, widened by a factor of %g at both ends, and the two do not point in opposite directions; an interval wider than %s %% either way never agrees. Otherwise the direction counts: higher, lower, or equal within the margin.",
			p.Ratio, p.Factor, percent(p.Widest)), "Beside published figures"})
	}
	if r != nil && len(r.Tables) > 0 {
		out = append(out, Note{"tables", "Summary tables", "A cell is the geometric mean over all levels that are not in the table. Its ratio combines the ratios of its variants, each made within blocks, over the variants in which both have values; " +
			"it has an interval and a verdict like any ratio. The colour is the ratio to the baseline's cell of the same column. The bars below are single comparisons.", ""})
	}
	if r != nil && len(r.Figures) > 0 {
		out = append(out, Note{"merit", "Figures of merit", "The value of a level is the geometric mean over its blocks. The best is that of the best level. The fewest level is the first one, in rising order, that reaches the share of the best; the first of all is the baseline. " +
			"A gain is the best over that baseline. A total is the arithmetic mean of the rows above it. Intervals come from resamples of whole blocks; a figure whose interval holds several levels is not decided, and marked with ?. Fewer than 3 blocks give no interval.", ""})
	}
	if r != nil && len(r.Causes) > 0 {
		out = append(out, Note{"causes", "What bounds a cell", "The readings of each cell's good trials over the measured time are compared with limits: some support a cause, some exclude it. The report names the cause that most trials show and that nothing excludes, " +
			"with the confidence that it is this and no other; where several causes fit equally well, the cause is unclear, and readings that are missing are named. A cell costs where the verdict on its first response is worse than the baseline, is without cost where that is equivalent or better, and is undecided where there are too few blocks or the interval holds 1. " +
			"A constant added time is fitted over the sizes, a factor over the connections or jobs, of cells that differ in nothing else.", ""})
	}
	if r != nil && len(r.CPUCosts) > 0 {
		out = append(out, Note{"cpucost", "CPU per unit of work", "CPU seconds per second of the isolated sides, with all threads that the host runs for them, divided by the rate of work; in the baseline, of the same sides. " +
			"The ratio is made within blocks. The harness's own threads are left out, and so is what the kernel does for a sandbox and charges to nobody.", ""})
	}
	if r != nil && len(r.Quotas) > 0 {
		out = append(out, Note{"quota", "CPU against the quota", words.QuotasAbout, ""})
	}
	return out
}

func percent(x float64) string { return strconv.FormatFloat(100*x, 'g', 3, 64) }
