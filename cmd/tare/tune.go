package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tare/ordered"
	"tare/report/section"
	"tare/report/terminal"
	"tare/report/text"
	"tare/report/words"
	"tare/site"
	"tare/study"
)

type tuneFlags struct {
	run     runFlags
	factors []string
	reach   string
	mix     string
	aim     string // the objective
	width   string

	written map[string]string // the overrides that flags stand for, to the flags as they were written
}

func (a *app) tuneVerb() *cobra.Command {
	var f tuneFlags
	cmd := &cobra.Command{
		Use:   "tune STUDY --factor FACTOR",
		Short: "Find the level of a factor to set, or of several, with few trials",
		Args:  exactly(1, "one study file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.aim != "" && cmd.Flags().Changed("reach"):
				return coded(exitUsage, "--reach is a share of the best, which --objective does not look for; remove one of them")
			case f.aim == "" && cmd.Flags().Changed("width"):
				return coded(exitUsage, "--width is of --objective; add that, or remove it")
			}
			return a.tune(cmd.Context(), args[0], f)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.factors, "factor", nil, "the factor to tune, or FACTOR=level,... with its levels in order (repeatable: several together)")
	fl.StringVar(&f.reach, "reach", "90%", "share of the best level's value that the level must reach, from 50% on, or best")
	fl.StringVar(&f.aim, "objective", "", "find the highest load that meets it, such as 'latency_p99<2ms', instead of a share of the best")
	fl.StringVar(&f.width, "width", "10%", "with --objective and --factor LOAD=low..high: how near each other the bounds are to be (the goal width of MLRsearch)")
	fl.StringVar(&f.mix, "mix", "", "find one level for several workloads, WORKLOAD=weight,... (default: one for each)")
	fl.StringVarP(&f.run.results, "results", "o", "", "results folder (default results/NAME-tune-FACTOR)")
	fl.StringVar(&f.run.on, "on", "", onHelp)
	hostFlag(cmd, &f.run.host)
	f.run.cluster.addImage(fl)
	f.run.cluster.addApps(fl)
	f.run.cluster.addAtOnce(fl)
	fl.StringArrayVar(&f.run.sets, "set", nil, "override the study: factor=level,... (repeatable)")
	budgetFlag(fl)
	fl.StringVar(&f.run.data, "data", "", "directory on the disk to measure")
	fl.BoolVar(&f.run.fresh, "fresh", false, "start again in a new folder instead of resuming")
	fl.BoolVar(&f.run.wait, "wait", false, waitHelp)
	fl.BoolVar(&f.run.json, "json", false, "print JSON")
	return cmd
}

// asked are the factors to tune, and the overrides of the study that the flags stand for.
func (f *tuneFlags) asked() (names, sets []string, err error) {
	sets = slices.Clone(f.run.sets)
	f.written = make(map[string]string)
	for _, factor := range f.factors {
		name, levels, given := strings.Cut(factor, "=")
		if name != "" {
			names = append(names, name)
		}
		if given && f.aim != "" {
			if levels, err = loads(name, levels, f.width); err != nil {
				return nil, nil, err
			}
		}
		if given && f.aim == "" && strings.Contains(levels, "..") {
			return nil, nil, coded(exitUsage, "--factor %s: a range low..high is for the load of --objective; write the levels one by one, such as --factor %s=1,2,4,8", factor, name)
		}
		if given {
			sets = append(sets, name+"="+levels)
			f.stands(name+"="+levels, "--factor", factor)
		}
	}
	switch {
	case len(names) == 0:
		return nil, nil, coded(exitUsage, "tune needs the factor: write --factor io_threads, or another factor of the study")
	case f.aim != "" && len(names) > 1:
		return nil, nil, coded(exitUsage, "--objective finds the highest level of one factor, the load; remove a --factor")
	case f.aim != "" && f.mix != "":
		return nil, nil, coded(exitUsage, "--mix is for a share of the best; remove it, or --objective")
	}
	if f.mix != "" {
		sets = append(sets, "stop.mix="+f.mix)
		f.stands("stop.mix="+f.mix, "--mix", f.mix)
		if !slices.ContainsFunc(sets, func(s string) bool { return strings.HasPrefix(s, study.FactorWorkload+"=") }) {
			those := study.FactorWorkload + "=" + strings.Join(mixed(f.mix), ",")
			sets = append(sets, those)
			f.stands(those, "--mix", f.mix)
		}
	}
	return names, sets, nil
}

// stands notes that an override, which the user did not write, stands for a flag.
func (f *tuneFlags) stands(set, flag, value string) {
	if !slices.Contains(f.run.sets, set) {
		f.written[set] = flag + " " + strconv.Quote(value)
	}
}

// named has the mistakes of a study name the flags that were written, not the overrides that they stand for.
func (f *tuneFlags) named(err error) error {
	var all study.Errors
	if errors.As(err, &all) {
		for _, e := range all {
			for set, flag := range f.written {
				if e.File == study.Argument(set) {
					e.File = flag
					break
				}
			}
		}
	}
	return err
}

func (a *app) tune(ctx context.Context, file string, f tuneFlags) (err error) {
	defer func() { err = f.named(err) }()
	names, sets, err := f.asked()
	if err != nil {
		return err
	}
	where, leave, err := a.siteOn(ctx, f.run.on, f.run.host, f.run.data, f.run.cluster)
	if err != nil {
		return err
	}
	leave() // the run takes it again
	st, err := a.untuned(file, where.About(), sets)
	if err != nil {
		return err
	}
	had := func(factor string) []string { return a.had(file, where.About(), factor) }
	first, err := a.firstLevel(st, names[0], sets, had)
	if err != nil {
		return err
	}
	goal := "stop.tune=" + f.reach
	if f.aim != "" {
		goal = "stop.objective=" + f.aim
		f.stands(goal, "--objective", f.aim)
	} else {
		f.stands(goal, "--reach", f.reach)
	}
	f.stands("compare="+names[0], "--factor", f.factors[0])
	f.stands("baseline="+first, "--factor", f.factors[0])
	f.run.sets = append(sets, "compare="+names[0], "baseline="+first, goal, "tables=none")
	for _, name := range names[1:] {
		if _, err := a.firstLevel(st, name, sets, had); err != nil {
			return err
		}
	}
	if f.aim == "" && (len(names) > 1 || len(st.Stop.Factors) > 0) {
		f.run.sets = append(f.run.sets, "stop.factors="+strings.Join(names, ","))
		f.stands("stop.factors="+strings.Join(names, ","), "--factor", strings.Join(names, ","))
	}
	if f.run.results == "" {
		f.run.results = "results/" + st.Name + "-tune-" + plainName(strings.Join(names, "-")) + mixName(f.mix) + where.About().Suffix
	}
	if f.run.fresh {
		f.run.results, f.run.fresh = freeName(f.run.results), false
	}
	own := where.About().Flag
	f.run.resume = func(dir, flag string) string { return tuneAgain(a.args, dir, own, flag) }
	asJSON := f.run.json
	f.run.json = false
	quiet := &app{stdout: terminal.New(io.Discard), stderr: a.stderr, enter: a.enter, offers: a.offers, has: a.has}
	if err := quiet.runStudy(ctx, file, f.run); err != nil {
		var c *codedError
		if !errors.As(err, &c) || c.code != exitTrials { // levels that fail are not the answer
			return err
		}
		a.say("%v", err)
	}
	r, err := analyseResults(ctx, f.run.results, figures)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(struct {
			Study    string `json:"study"`
			Modelled bool   `json:"modelled,omitempty"`
			Results  string `json:"results"`
			Tuned    any    `json:"tuned"`
		}{r.result.Study, r.result.Modelled, f.run.results, r.result.Tuned})
	}
	if err := text.WriteSection(a.stdout, section.Tuned(r.result), r.result, a.textOptions(f.run.results)); err != nil {
		return err
	}
	a.line("results: %s", f.run.results)
	return nil
}

// untuned reads the study before it is known which level is the baseline. The file as it is counts if it is refused with the sets, because they
// may leave out its baseline; the run checks them with the right one.
func (a *app) untuned(file string, at site.About, sets []string) (*study.Study, error) {
	st, _, _, err := a.open(file, at, runFlags{sets: sets})
	if err == nil {
		return st, nil
	}
	for _, s := range sets {
		if levels, ok := strings.CutPrefix(s, study.FactorSandbox+"="); ok { // without the file's baseline
			first, _, _ := strings.Cut(levels, ",")
			if st, _, _, err := a.open(file, at, runFlags{sets: append(slices.Clone(sets), "compare="+study.FactorSandbox, "baseline="+first)}); err == nil {
				return st, nil
			}
		}
	}
	if st, _, _, asItIs := a.open(file, at, runFlags{}); asItIs == nil {
		return st, nil
	}
	return nil, err
}

// had returns the sandboxes of a study's file that have a factor. If the site does not know all of the file's sandboxes, this host may.
func (a *app) had(file string, at site.About, factor string) (out []string) {
	st, _, _, err := a.open(file, at, runFlags{})
	if err != nil {
		st, _, err = readStudyOf(offered, nil, file, nil)
	}
	if err != nil {
		return nil
	}
	for _, s := range st.Strata {
		for _, c := range s.Cells {
			if _, has := c.Get(factor); has {
				level, _ := c.Get(study.FactorSandbox)
				out = ordered.Add(out, level)
			}
		}
	}
	return out
}

// tuneAgain is the command line that goes on with the results folder of another, at the site of a flag: a search goes on with
// the flags that it has, but not with --fresh, which made the folder.
func tuneAgain(args []string, dir, own, flag string) string {
	fresh := slices.ContainsFunc(args, func(arg string) bool { return arg == "--fresh" || arg == "--fresh=true" })
	drops := func(name string) bool {
		return fresh && (name == "--results" || name == "-o") || own != flag && (name == "--on" || name == "--host" || name == "--data")
	}
	out := []string{"tare"}
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(args[i], "=")
		if fresh && strings.HasPrefix(name, "-o") && len(name) > 2 { // -oDIR
			name, joined = "-o", true
		}
		switch {
		case name == "--fresh":
		case drops(name) && !joined:
			i++ // its value
		case !drops(name):
			out = append(out, words.Shell(args[i]))
		}
	}
	if fresh {
		out = append(out, "--results", words.Path(dir))
	}
	if own != flag && flag != "" {
		out = append(out, flag)
	}
	return strings.Join(out, " ")
}

// mixName ends the name of the results folder of a mix, whose study is another one.
func mixName(mix string) string {
	if mix == "" {
		return ""
	}
	return "-" + plainName(mix)
}

// mixed are the workloads of WORKLOAD=weight,...
func mixed(mix string) []string {
	var out []string
	for part := range strings.SplitSeq(mix, ",") {
		label, _, _ := strings.Cut(part, "=")
		out = append(out, strings.TrimSpace(label))
	}
	return out
}

// firstLevel returns the first level of a factor of the study, which is the baseline of the others. The last
// of the sets that gives the factor levels wins. The sandbox is refused, because no sandbox is lower than another. had returns the sandboxes
// that have a factor in the file as it is.
func (a *app) firstLevel(st *study.Study, factor string, sets []string, had func(string) []string) (string, error) {
	if factor == study.FactorSandbox {
		return "", coded(exitUsage, "sandboxes have no order, so none of them is the lowest that suffices; compare them with `tare run`, or tune another factor")
	}
	var names, levels []string
	for _, x := range st.Factors {
		names = append(names, x.Name)
		if x.Name == factor {
			levels = x.Levels
		}
	}
	for _, s := range sets {
		if own, ok := strings.CutPrefix(s, factor+"="); ok {
			levels = strings.Split(own, ",")
		}
	}
	switch {
	case len(levels) == 0 && slices.Contains(st.Dropped, factor):
		instead := "give one that has it with --set sandbox=..."
		if h := had(factor); len(h) > 0 {
			instead = fmt.Sprintf("in the file, %s %s it; keep one with --set sandbox=...", words.List(h), has(len(h)))
		}
		return "", coded(exitUsage, "no sandbox left in the study has the factor %q; %s", factor, instead)
	case len(levels) == 0:
		return "", coded(exitUsage, "the study has no factor %q; it has %s", factor, strings.Join(names, ", "))
	case len(levels) == 1:
		return "", coded(exitUsage, "the factor %s has one level, and nothing can be chosen; write --factor %s=level,level,...", factor, factor)
	}
	if falls(levels) {
		a.say("%s: %s counts as the lowest level, because it comes first; write --factor %[1]s=LEVEL,... with the cheapest level first", factor, strings.TrimSpace(levels[0]))
	}
	return strings.TrimSpace(levels[0]), nil
}

// falls reports whether levels are numbers, each below the one before it.
func falls(levels []string) bool {
	last := math.Inf(1)
	for _, l := range levels {
		n, err := strconv.ParseFloat(strings.TrimSpace(l), 64)
		if err != nil || n >= last {
			return false
		}
		last = n
	}
	return true
}
