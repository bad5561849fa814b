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
		interval += fmt.Sprintf("The study stops where intervals are narrow, so scatter looks smaller than it is. Each interval is made at %s %%, and misses the truth in about %s %% of comparisons. ",
			percent(level), percent(1-confidence))
	}
	interval += "There is none from fewer than three blocks."
	out := []Note{
		{"baseline", "What is compared with what", fmt.Sprintf("Each treatment is compared with %s on the same machine, in the same block: both are run once, "+
			"back to back, in random order. process is native: the same files, limits and network, without the isolation.", baseline), "What is compared with what"},
		{"response", "A response", "One figure of one trial, over its measured time alone: what came before is warm-up. Within a trial it may be a percentile of " +
			"thousands of events; for the study it is one value. The trials' values are shown with six digits.", "A response"},
		{"ratio", "A ratio", "The treatment's value divided by the baseline's of the same block; the geometric mean of these quotients over all blocks that have both. " +
			"n is the number of those blocks. 2 is twice the baseline.", "A ratio"},
		{"interval", "An interval", interval, "An interval"},
		{"verdict", "A verdict", fmt.Sprintf("Equivalent: the whole interval lies between 1/(1+m) and 1+m, m = %s %%. Else better or worse (faster, slower): it lies "+
			"wholly on one side of 1, by the response's better side; higher or lower where it has none. Anything else is undecided, which is not the same as equal. So is a difference that rests on fewer than five blocks and whose interval is wider than 10 %%.",
			percent(margin)), "A verdict"},
		{"stop", "When a study stops", "A workload variant ends at a declared look when the interval of each of its first responses is as narrow as asked, or as a part of a large effect; at the last look; or at the budget. It does not end because a difference is clear.",
			"When a study stops"},
		{"level", "The level of a cell", "The geometric mean over its good trials; the median where a value is not positive. Least and greatest are of the same trials.", "Levels and overheads"},
		{"cost", "What measuring costs", "Medians over good trials. noop is a whole trial that does nothing: the harness's own cost. The collectors' CPU is theirs, in cores.", "Levels and overheads"},
		{"curve", "A distribution", "The histograms of all good trials of a cell, merged event by event, also those of blocks that ran again. It is not a mean of percentiles; the ratio of a percentile is still made of one value a trial.",
			"Levels and overheads"},
		{"series", "Time series", "One trial, as sampled. Counters are shown as rates over each interval of sampling: seconds of CPU a second are cores. " +
			"Of long series the extremes of each stretch are shown, of stacked CPU and of guests' processors its mean. The sum is of all roles of one end; the quota is its cgroup's. Samples within a trial are never counted into n.", "A ratio"},
		{"order", "The order of trials", "Trials in the order in which they ran. A drift of the machine shows here as a slope that all cells share; comparing within blocks cancels it.",
			"Machines that misbehave"},
	}
	if r != nil && len(r.Structural) > 0 {
		out = append(out, Note{"structural", "Structural cost", "The isolated end's system calls are counted in a trial of their own, natively; calls an operation times what getpid takes longer in the sandbox is explained, " +
			"shared among the processors that make calls at once. The rest is the extra time less that; of it, the calls' own work is what the kinds of calls that the study measures cost more than getpid. " +
			"A bar is the time of one operation in the sandbox.", "Structural cost"})
	}
	if r != nil && r.Published != nil {
		p := r.Published
		out = append(out, Note{"published", "Beside published figures", fmt.Sprintf("The measured ratio is %s, made in the same blocks as all others. It agrees when the published ratio lies in its "+
			"interval, widened by a factor of %g at both ends, and the two do not point in opposite directions; an interval wider than %s %% either way never agrees. Else the direction counts: higher, lower, or equal within the margin.",
			p.Ratio, p.Factor, percent(p.Widest)), "Beside published figures"})
	}
	if r != nil && len(r.Tables) > 0 {
		out = append(out, Note{"tables", "Summary tables", "A cell is the geometric mean over all levels that are not in the table. Its ratio is combined of those of its variants, each made within blocks, over the variants in which both have values; " +
			"it has an interval and a verdict like any ratio. The colour is the ratio to the baseline's cell of the same column. The bars below are single comparisons.", ""})
	}
	if r != nil && len(r.Causes) > 0 {
		out = append(out, Note{"causes", "What bounds a cell", "The readings of each cell's good trials over the measured time are held against limits: some support a cause, some exclude it. The cause that is seen most and that nothing excludes is named, " +
			"with the confidence that it is this and no other; not told apart is said, and so is what was not read. A cell costs where the verdict on its first response is worse than the baseline, is without cost where that is equivalent or better, and is undecided where there are too few blocks or the interval holds 1. " +
			"A constant added time is fitted over the sizes, a factor over the connections or jobs, of cells that differ in nothing else.", ""})
	}
	if r != nil && len(r.CPUCosts) > 0 {
		out = append(out, Note{"cpucost", "CPU per unit of work", "CPU seconds a second of the ends that are sandboxed, with all threads that the host runs for them, divided by the rate of work; of the same ends in the baseline. " +
			"The ratio is made within blocks. The harness's own threads are left out, and so is what the kernel does for a sandbox and charges to nobody.", ""})
	}
	if r != nil && len(r.Quotas) > 0 {
		out = append(out, Note{"quota", "CPU against the quota", words.QuotasAbout, ""})
	}
	return out
}

func percent(x float64) string { return strconv.FormatFloat(100*x, 'g', 3, 64) }
