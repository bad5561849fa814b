package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"

	"tare/analyse/advice"
	"tare/analyse/stat"
	"tare/plan"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// unpackedStudy says what STUDY stands for in the commands of a bundle, whose folder is gone when the verb ends.
const unpackedStudy = "STUDY: the study.yaml of the folder that `tare bundle --unpack` makes"

// completed has the commands that measure more whole: with the study as it is kept in the folder, what it was run with, a
// budget that is enough, and a folder of their own.
func (r *analysed) completed(items []advice.Item) []advice.Item {
	begin, search := strings.TrimSpace("tare run STUDY "+r.result.On())+" ", advice.Continue(r.result.On())
	items = slices.Clone(items)
	for i := range items {
		x := &items[i]
		complete := func(text, note string) string {
			before, line, ok := strings.Cut(text, begin)
			switch {
			case strings.Contains(text, search) && unpackedBundle(r.dir):
				return fmt.Sprintf(note, text, unpackedStudy)
			case strings.Contains(text, search):
				return strings.Replace(text, search, r.continuing(), 1)
			case !ok:
				return text
			case unpackedBundle(r.dir):
				return fmt.Sprintf(note, text, unpackedStudy)
			}
			base := filepath.Clean(r.dir)
			return before + fmt.Sprintf("tare run %s --results %s %s%s", words.Path(filepath.Join(base, "study.yaml")), words.Path(fmt.Sprintf("%s-advice-%d", base, i+1)), r.flags(line), line)
		}
		x.Text, x.Unproven = complete(x.Text, "%s (%s)"), complete(x.Unproven, "%s (%s)")
		x.Patches = slices.Clone(x.Patches)
		for k := range x.Patches {
			x.Patches[k].Text = complete(x.Patches[k].Text, "%[1]s# %[2]s\n")
		}
	}
	return items
}

// ownSets are the overrides that a command begins with.
var ownSets = regexp.MustCompile(`^(?:--set (?:'(?:[^']|'\\'')*'|[^\s']+)+\s*)+`)

// flags are those of the first run that a command for more trials needs, with a space after each: the site, and the
// overrides that the command does not replace. The budget is kept if it is enough for the blocks that the command is about:
// its time, and its number of blocks, with less of which the study would be refused.
func (r *analysed) flags(line string) string {
	sets, err := shellquote.Split(ownSets.FindString(line))
	if err != nil {
		sets = nil
	}
	sets = slices.DeleteFunc(sets, func(s string) bool { return s == "--set" })
	if n := len(sets); n > 0 {
		sets[n-1] = strings.TrimRight(sets[n-1], ".;,") // of the sentence
	}
	kept := slices.DeleteFunc(slices.Clone(r.study.Overrides), func(s string) bool {
		key, _, _ := strings.Cut(s, "=")
		return slices.ContainsFunc(sets, func(own string) bool { return strings.HasPrefix(own, key+"=") })
	})
	if asked := fixedBy(sets); asked > r.study.Budget.Blocks && r.study.Budget.Blocks > 0 {
		kept = slices.DeleteFunc(kept, func(s string) bool { return strings.HasPrefix(s, "budget.blocks=") })
		kept = append(kept, "budget.blocks="+strconv.Itoa(asked))
	}
	var out strings.Builder
	if on := r.result.On(); on != "" {
		out.WriteString(on + " ")
	}
	key, larger := r.larger(append(slices.Clone(kept), sets...))
	for _, s := range kept {
		if !strings.HasPrefix(s, key) || key == "" {
			out.WriteString("--set " + words.Shell(s) + " ")
		}
	}
	return out.String() + larger
}

// fixedBy is the number of blocks that overrides ask for; 0: none.
func fixedBy(sets []string) int {
	for _, s := range sets {
		if text, ok := strings.CutPrefix(s, "stop.fixed="); ok {
			n, _ := strconv.Atoi(text)
			return n
		}
	}
	return 0
}

// larger is a budget for a study with these overrides, as a flag, and the override that it replaces; "" if the study's own
// is enough for the blocks that are asked for, or for a verdict.
func (r *analysed) larger(sets []string) (key, flag string) {
	st, err := study.Parse(r.meta.StudyFile, r.meta.StudySource, r.cat, sets)
	if err != nil || st.Budget.Time <= 0 || st.Stop.Searches() {
		return "", ""
	}
	if need := plan.Takes(st, r.skips, nil, cmp.Or(st.Stop.Fixed, stat.MinN), r.took); need > st.Budget.Time {
		return "budget.time=", "--budget " + words.AtLeast(need+need/10) + " "
	}
	return "", ""
}

// took is how long a trial of a cell took, in the mean; as long as one of any cell if there was none.
func (r *analysed) took(c record.Cell) time.Duration {
	if r.times == nil {
		r.times = make(map[string]mean)
		for i := range r.trials {
			t := &r.trials[i]
			for _, key := range []string{t.Cell.Key(), ""} {
				m := r.times[key]
				r.times[key] = mean{m.sum + t.Duration, m.n + 1}
			}
		}
	}
	m, ok := r.times[c.Key()]
	if !ok {
		m = r.times[""]
	}
	return m.sum / time.Duration(max(m.n, 1))
}

// mean is of durations.
type mean struct {
	sum time.Duration
	n   int
}
