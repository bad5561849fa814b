package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"

	"tare/analyse/advice"
	"tare/analyse/cause"
	"tare/analyse/stat"
	"tare/bundle"
	"tare/param"
	"tare/record"
	"tare/report/terminal"
	"tare/report/words"
	"tare/store"
	"tare/study"
)

// verification is one named cause that is relieved: a study of the cell, its baseline and
// the cell with the setting, and what came of it.
type verification struct {
	Rule      string      `json:"rule"`
	Cause     string      `json:"cause"`
	Treatment string      `json:"treatment"`
	Cell      record.Cell `json:"cell"`              // the costliest that the item is for
	From      record.Cell `json:"from,omitempty"`    // its levels of what is set
	Relief    record.Cell `json:"relief,omitempty"`  // what is set
	Results   string      `json:"results,omitempty"` // folder of its trials
	Sets      []string    `json:"sets,omitempty"`    // overrides of the study
	Data      string      `json:"data,omitempty"`    // directory for data, if it is not the usual one
	Outcome   string      `json:"outcome"`           // one of the outcomes below
	Why       string      `json:"why,omitempty"`
	Response  string      `json:"response,omitempty"`
	// Gain is the response with the relief to that without, turned so that above 1 is better.
	Gain *stat.Estimate `json:"gain,omitempty"`
	Cost *relievedCost  `json:"cost,omitempty"` // of a cell that costs more than its baseline

	costs     bool // the cause is named for a cost, not for a level
	elsewhere bool // the relief is another treatment, and leaves the baseline as it is
}

// relievedCost is what the relief does to a cost: to the response divided by the baseline's,
// with the relief on both or on neither.
type relievedCost struct {
	Before float64        `json:"before"`
	After  float64        `json:"after"`
	Gain   *stat.Estimate `json:"gain"` // of the cost, turned so that above 1 is better
}

// Outcomes.
const (
	outcomeConfirmed = "confirmed"
	outcomeNot       = "not confirmed"
	outcomeUndecided = "undecided"
	outcomeNotRun    = "not run"
	outcomeCannot    = "cannot be relieved here"
	outcomePlanned   = "planned"
)

// verify relieves the cause of each item of advice on this host, and says whether the cell
// improves.
func (a *app) verify(ctx context.Context, dir string, r *analysed, items []advice.Item, f adviseFlags) error {
	if a.given(dir) != dir || bundle.Is(dir) {
		return coded(exitUsage, "--verify runs the study again, and a bundle has no study file to run; give the results folder")
	}
	if err := refuseImported(r.study.Source, dir); err != nil {
		return err
	}
	if f.budget <= 0 {
		return coded(exitUsage, "--budget %s leaves no time to measure; write a time such as --budget 10m", param.FormatDuration(f.budget))
	}
	if f.blocks < stat.MinN {
		return coded(exitUsage, "--blocks %d: an interval needs %d blocks; write %d or more", f.blocks, stat.MinN, stat.MinN)
	}
	data, err := r.data(f.data)
	if err != nil {
		return err
	}
	var all []verification
	for i := range items {
		if v, ok := relieved(r, &items[i]); ok {
			all = append(all, v)
		}
	}
	measured := 0
	for i := range all {
		v := &all[i]
		if v.Outcome != "" {
			continue
		}
		v.Sets, v.Data = v.overrides(r.study, f), data
		if j := slices.IndexFunc(all[:i], func(o verification) bool { return slices.Equal(o.Sets, v.Sets) }); j >= 0 {
			if err := v.share(ctx, &all[j]); err != nil {
				return err
			}
			continue
		}
		v.Results = ownFolder(filepath.Clean(dir)+"-verify-"+plainName(v.Rule+"-"+v.Treatment), v.Sets, data)
		if f.dry {
			v.Outcome = outcomePlanned
			continue
		}
		if err := a.relieve(ctx, dir, r, v, f); err != nil {
			return err
		}
		if v.Gain != nil {
			measured++
		}
	}
	if err := a.printVerified(all, dir, r.result.Modelled, f.json); err != nil {
		return err
	}
	if !f.dry && len(all) > 0 && measured == 0 {
		return coded(exitHost, "no cause could be relieved on this host; the lines above say why")
	}
	return nil
}

// data is the directory that a verification has its files in: the one that is asked for, else that of the results; "" is the
// usual one.
func (r *analysed) data(asked string) (string, error) {
	if asked != "" {
		return filepath.Abs(asked) //nolint:wrapcheck // it says all
	}
	if text, ok := strings.CutPrefix(r.result.Flags, dataFlag); ok {
		if parts, err := shellquote.Split(text); err == nil && len(parts) == 1 {
			return parts[0], nil
		}
	}
	return "", nil
}

// relieved is what relieves an item's costliest cell; false where the item is about no
// single cause.
func relieved(r *analysed, x *advice.Item) (verification, bool) {
	if len(x.Cells) == 0 || slices.Contains([]string{"", string(cause.None), string(cause.Unknown)}, x.Cause) {
		return verification{}, false
	}
	v := verification{Rule: x.Rule, Cause: x.Cause, Treatment: x.Treatment, Cell: x.Cells[0]}
	costs := -1.0
	for i := range r.result.Causes {
		c := &r.result.Causes[i]
		if !slices.ContainsFunc(x.Cells, func(o record.Cell) bool { return o.Key() == c.Cell.Key() }) {
			continue
		}
		lost := 0.0
		if c.Ratio != nil && *c.Ratio > 0 {
			lost = math.Abs(math.Log(*c.Ratio))
		}
		if lost > costs {
			v.Cell, v.Response, v.Treatment, costs, v.costs = c.Cell, c.Response.Name, c.Treatment, lost, c.Costs
		}
	}
	switch x.Cause {
	case string(cause.Other), string(cause.Untold):
		v.Outcome, v.Why = outcomeCannot, "no single cause is named"
		return v, true
	}
	if x.Cause == string(cause.Helper) && r.study.Compare == factorDisk { // what the study compares fills the thread
		v.lift(r.study)
	}
	for _, t := range x.Targets {
		if len(v.Relief) == 0 && slices.ContainsFunc(t.Cells, func(o record.Cell) bool { return o.Key() == v.Cell.Key() }) {
			v.From, v.Relief = t.From, slices.Clone(t.To)
		}
	}
	if len(v.Relief) == 0 {
		v.lift(r.study)
	}
	for i, l := range v.Relief {
		if !strings.Contains(l.Value, "=") {
			continue
		}
		now, _ := v.Cell.Get(study.FactorSandbox)
		level, ok := advice.LevelWith(r.study.Traits, now, l.Value)
		if !ok {
			v.Relief = nil
			break
		}
		v.Relief[i].Value = level
	}
	if len(v.Relief) == 0 {
		v.Outcome, v.Why = outcomeCannot, "no factor of a study changes this setting: "+x.Text
	}
	return v, true
}

// factorDisk is the format of a virtual machine's disk.
const factorDisk = "disk"

// lift takes away what the study itself put around the cell, where the advice has no
// setting of its own: nobody could set a link to be faster, but a study can. Of too few requests in flight, the
// relief is the level that the study compares with.
func (v *verification) lift(st *study.Study) {
	for _, l := range []struct {
		cause         cause.Name
		factor, level string
	}{
		{cause.Link, "link-rate", "none"}, {cause.Path, "link-delay", "none"}, {cause.Quota, study.FactorCPULimit, "none"}, {cause.Guest, study.FactorCPUs, "any"},
		{cause.Host, study.FactorCPUs, "any"}, {cause.Helper, factorDisk, "raw"}, {cause.Fsync, "fsync", "0"},
		{cause.Gofer, "directfs", "true"}, {cause.Depth, "iodepth", st.Baseline},
	} {
		if now, ok := v.Cell.Get(l.factor); ok && string(l.cause) == v.Cause && now != l.level && (l.cause != cause.Depth || st.Compare == l.factor) {
			v.From = record.Cell{{Factor: l.factor, Value: now}}
			v.Relief = record.Cell{{Factor: l.factor, Value: l.level}}
			return
		}
	}
}

// overrides are the --set arguments that leave of a study the cell, its baseline and the
// relieved one.
func (v *verification) overrides(st *study.Study, f adviseFlags) []string {
	out := []string{}
	label, _ := v.Cell.Get(study.FactorWorkload)
	set := func(factor string, levels ...string) {
		key := factor
		if factor != study.FactorWorkload && !slices.ContainsFunc(st.Factors, func(x study.Factor) bool { return x.Name == factor }) && !slices.ContainsFunc(v.Relief, func(l record.Level) bool { return l.Factor == factor }) {
			key = label + "." + factor // a parameter of the workload
		}
		for i := range levels {
			levels[i] = strings.ReplaceAll(levels[i], ",", `\,`)
		}
		out = append(out, key+"="+strings.Join(levels, ","))
	}
	for _, l := range v.Cell {
		levels := []string{l.Value}
		if l.Factor == st.Compare && l.Value != st.Baseline {
			levels = []string{st.Baseline, l.Value}
		}
		if to, ok := v.Relief.Get(l.Factor); ok && !slices.Contains(levels, to) {
			levels = append(levels, to)
		}
		set(l.Factor, levels...)
	}
	for _, l := range v.Relief {
		if _, ok := v.Cell.Get(l.Factor); !ok {
			from, _ := v.From.Get(l.Factor)
			set(l.Factor, from, l.Value)
		}
	}
	out = append(out, fmt.Sprintf("stop.fixed=%d", f.blocks), "budget.time="+f.budget.String())
	kept := slices.DeleteFunc(slices.Clone(st.Overrides), func(s string) bool {
		key, _, _ := strings.Cut(s, "=")
		return strings.HasPrefix(key, "stop.") || slices.ContainsFunc(out, func(o string) bool { return strings.HasPrefix(o, key+"=") })
	})
	return append(kept, out...)
}

// relieve runs one verification with the runner of `tare run`, or goes on with it.
func (a *app) relieve(ctx context.Context, dir string, r *analysed, v *verification, f adviseFlags) error {
	run := runFlags{results: v.Results, sets: v.Sets, wait: f.wait, data: v.Data, beside: dir}
	if r.result.Modelled {
		run.on = onModel
	}
	quiet := &app{stdout: terminal.New(io.Discard), stderr: a.stderr}
	a.say("%s of %s: %s", v.Cause, v.Treatment, v.moves())
	err := quiet.runStudy(ctx, filepath.Join(dir, "study.yaml"), run)
	var c *codedError
	var bad study.Errors
	switch {
	case err == nil, errors.As(err, &c) && c.code == exitTrials:
	case errors.As(err, &c) && c.code == exitHost, errors.As(err, &bad):
		v.Outcome, v.Why = outcomeCannot, err.Error()
		return nil
	case errors.As(err, &c) && c.code == exitUsage:
		v.Outcome, v.Why = outcomeNotRun, err.Error()
		return nil
	default:
		return err
	}
	return judge(ctx, v)
}

// share judges by the trials of an earlier verification with the same overrides: two rules may name one setting.
func (v *verification) share(ctx context.Context, with *verification) error {
	v.Results = with.Results
	if with.Gain == nil {
		v.Outcome, v.Why = with.Outcome, with.Why
		return nil
	}
	return judge(ctx, v)
}

// ownFolder is the first of the folders NAME, NAME-2, NAME-3 and so on that is free or that was
// measured with the same overrides and directory for data. So more blocks, or another budget, start
// a new folder, and the same command goes on with its own.
func ownFolder(name string, sets []string, data string) string {
	for n, dir := 2, name; ; n++ {
		if !store.Exists(dir) {
			return dir
		}
		meta, err := inResults(dir, func(r results) (store.Meta, error) { return r.Meta() })
		elsewhere := dataAt(data) != meta.Flags && (data != "" || strings.HasPrefix(meta.Flags, dataFlag))
		if err != nil || slices.Equal(meta.Overrides, sets) && !elsewhere { // after an error, the run says why
			return dir
		}
		dir = fmt.Sprintf("%s-%d", name, n)
	}
}

// judge holds the relieved cell against the cell as it is, and their costs against each other.
func judge(ctx context.Context, v *verification) error {
	r, err := analyseResults(ctx, v.Results, figures)
	if err != nil {
		return err
	}
	before, after := with(v.Cell, v.From), with(v.Cell, v.Relief)
	base := record.Cell{{Factor: r.study.Compare, Value: r.study.Baseline}}
	native := func(t, c record.Cell) bool { // factors of the treatment alone are not the baseline's
		return includes(t, base) && !slices.ContainsFunc(with(c, base), func(l record.Level) bool {
			x, ok := t.Get(l.Factor)
			return ok && x != l.Value
		})
	}
	logs := append(v.logs(r, includes, before, after), v.logs(r, native, before, after)...)
	if _, ok := v.Relief.Get(r.study.Compare); ok { // the relieved cell is another treatment
		logs[3], v.elsewhere = logs[2], true
	}
	sign := -1.0
	if v.higher(r) {
		sign = 1
	}
	e := estimated(difference(logs[1], logs[0]), sign, r)
	if e.N == 0 {
		v.Outcome, v.Why = outcomeCannot, "the host ran no block with both cells"
		if s := r.skipped(after); s != "" {
			v.Why = s
		}
		return nil
	}
	v.Gain = &e
	was, now := difference(logs[0], logs[2]), difference(logs[1], logs[3])
	if change := difference(now, was); v.costs && len(change) > 0 {
		c := estimated(change, sign, r)
		v.Cost = &relievedCost{Before: geoMean(was), After: geoMean(now), Gain: &c}
	}
	v.decide(r.study.Stop.Confidence)
	return nil
}

// logs are the logarithms of the response in trials of each cell, by block.
func (v *verification) logs(r *analysed, of func(trial, cell record.Cell) bool, cells ...record.Cell) []map[int]float64 {
	out := make([]map[int]float64, len(cells))
	for i := range out {
		out[i] = map[int]float64{}
	}
	for _, blocks := range r.result.Counting(r.trials) {
		for block, t := range blocks {
			x, ok := t.Sample(v.Response)
			if !ok || x <= 0 || t.BelowNoise(v.Response) {
				continue
			}
			for i, c := range cells {
				if of(t.Cell, c) {
					out[i][block] = math.Log(x)
				}
			}
		}
	}
	return out
}

// difference is a - b in the blocks that have both.
func difference(a, b map[int]float64) map[int]float64 {
	out := map[int]float64{}
	for block, x := range a {
		if y, ok := b[block]; ok {
			out[block] = x - y
		}
	}
	return out
}

// estimated is the ratio whose logarithms by block these are; its reciprocal with sign -1.
func estimated(logs map[int]float64, sign float64, r *analysed) stat.Estimate {
	one, other := map[int]float64{}, map[int]float64{}
	for block, x := range logs {
		one[block], other[block] = 1, math.Exp(sign*x)
	}
	return stat.Summarise(stat.Pairs(one, other)).Estimate(stat.Prior{}, r.study.Stop.Confidence)
}

func geoMean(logs map[int]float64) float64 {
	sum := 0.0
	for _, x := range logs {
		sum += x
	}
	return math.Exp(sum / float64(len(logs)))
}

// decide says whether the measured gain confirms the cause. The cause of a cost must be why
// the cell is slower than its baseline: the cost has to get smaller too. If the relief helps
// the baseline as much, the resource bounds both, and explains nothing of the cost.
func (v *verification) decide(confidence float64) {
	e := v.Gain
	more := func(e *stat.Estimate) string {
		return fmt.Sprintf("run more blocks: --blocks %d", moreBlocks(e, confidence))
	}
	switch {
	case !e.HasInterval():
		v.Outcome, v.Why = outcomeUndecided, fmt.Sprintf("%s have both cells, too few for an interval; give a larger --budget", words.Count(e.N, "block"))
		return
	case e.Hi < 1:
		v.Outcome, v.Why = outcomeNot, "the cell gets worse"
		return
	case e.Lo <= 1:
		v.Outcome, v.Why = outcomeUndecided, "not clear yet (interval includes 1); "+more(e)
		return
	case v.Cost == nil:
		v.Outcome = outcomeConfirmed
		return
	}
	c := v.Cost.Gain
	half := math.Exp(math.Abs(math.Log(v.Cost.Before)) / 2)
	switch {
	case !c.HasInterval():
		v.Outcome, v.Why = outcomeUndecided, fmt.Sprintf("%s have all cells and their baselines, too few for an interval of the cost; give a larger --budget", words.Count(c.N, "block"))
	case c.Hi < 1:
		v.Outcome, v.Why = outcomeNot, "the cell gets faster, but its baseline more so: the resource limits both, so it is not why the cell costs"
	case c.Hi < half && v.elsewhere:
		v.Outcome, v.Why = outcomeNot, "the cell gets faster, but keeps more than half of its cost: the setting relieves only a part of the cause, or there is another"
	case c.Hi < half:
		v.Outcome, v.Why = outcomeNot, "the cell gets faster, but so does its baseline: the resource limits both, and explains less than half of the cost"
	case c.Lo > 1:
		v.Outcome = outcomeConfirmed
	default:
		v.Outcome, v.Why = outcomeUndecided, "the cell gets faster; whether it costs less than before is not clear yet (interval includes 1); "+more(c)
	}
}

// moreBlocks is how many blocks would put the interval clear of 1, if the ratio and the scatter
// stay as they are: at least twice as many, at most ten times.
func moreBlocks(e *stat.Estimate, confidence float64) int {
	sd := e.SE * math.Sqrt(float64(e.N))
	n := stat.NewRule(confidence, 0, 0, nil, 1).Blocks(sd, math.Expm1(math.Abs(math.Log(e.Ratio))))
	if n == 0 || n > 10*e.N {
		return 10 * e.N
	}
	return max(2*e.N, n)
}

// higher says whether more of the response is better.
func (v *verification) higher(r *analysed) bool {
	for i := range r.result.Causes {
		if c := &r.result.Causes[i]; c.Response.Name == v.Response {
			return c.Response.Better != record.Lower
		}
	}
	return true
}

// skipped says why the host cannot run a cell; "" if it can.
func (r *analysed) skipped(c record.Cell) string {
	for i := range r.result.Compared {
		if x := &r.result.Compared[i]; x.Skipped != "" && includes(x.Cell, c) {
			return x.Skipped
		}
	}
	return ""
}

// with is a cell with some levels other, or added.
func with(c, levels record.Cell) record.Cell {
	out := slices.Clone(c)
	for _, l := range levels {
		if i := slices.IndexFunc(out, func(x record.Level) bool { return x.Factor == l.Factor }); i >= 0 {
			out[i].Value = l.Value
		} else {
			out = append(out, l)
		}
	}
	return out
}

// includes says that a cell has all of the levels.
func includes(c, levels record.Cell) bool {
	return !slices.ContainsFunc(levels, func(l record.Level) bool {
		v, _ := c.Get(l.Factor)
		return v != l.Value
	})
}

// moves says what is set: "cpu-limit from 1 to 2".
func (v *verification) moves() string {
	var out []string
	for _, l := range v.Relief {
		from, _ := with(v.Cell, v.From).Get(l.Factor)
		out = append(out, fmt.Sprintf("%s from %s to %s", l.Factor, from, l.Value))
	}
	return strings.Join(out, ", ")
}

// plainName is a text as part of a folder's name.
func plainName(s string) string {
	plain := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	return strings.Trim(strings.Map(plain, s), "-")
}

func (a *app) printVerified(all []verification, dir string, modelled, asJSON bool) error {
	if all == nil {
		all = []verification{}
	}
	if asJSON {
		return a.printJSON(struct {
			Modelled bool           `json:"modelled,omitempty"`
			Verified []verification `json:"verified"`
		}{modelled, all})
	}
	var b strings.Builder
	if modelled {
		b.WriteString("Modelled, not measured: the model removes the cause that it was given.\n")
	}
	if len(all) == 0 {
		b.WriteString("No cell has a named cause, so nothing can be relieved. `tare report` says what bounds each cell.\n")
	}
	for i := range all {
		v := &all[i]
		fmt.Fprintf(&b, "%d. %s, %s: %s\n", i+1, v.Treatment, v.Cause, v.Outcome)
		if len(v.Relief) > 0 {
			fmt.Fprintf(&b, "   relief: %s, of %s\n", v.moves(), v.Cell)
		}
		if e := v.Gain; e != nil && e.HasInterval() {
			fmt.Fprintf(&b, "   gain: %s %s (%s–%s) times as good, %s\n", v.Response, words.Ratio(e.Ratio), words.Ratio(e.Lo), words.Ratio(e.Hi), words.Count(e.N, "block"))
		}
		if c := v.Cost; c != nil {
			fmt.Fprintf(&b, "   cost: %s of the baseline's %s before, %s after", words.Ratio(c.Before), v.Response, words.Ratio(c.After))
			if c.Gain.HasInterval() {
				fmt.Fprintf(&b, ": %s (%s–%s) times as good", words.Ratio(c.Gain.Ratio), words.Ratio(c.Gain.Lo), words.Ratio(c.Gain.Hi))
			}
			b.WriteString("\n")
		}
		if v.Why != "" {
			fmt.Fprintf(&b, "   why: %s\n", v.Why)
		}
		if v.Outcome == outcomePlanned {
			line := "tare run " + words.Path(filepath.Join(filepath.Clean(dir), "study.yaml")) + " --results " + words.Path(v.Results)
			if modelled {
				line += " --on model"
			}
			if v.Data != "" {
				line += " " + dataFlag + words.Shell(v.Data)
			}
			for _, s := range v.Sets {
				line += " --set " + words.Path(s)
			}
			fmt.Fprintf(&b, "   would run: %s\n", line)
		} else if v.Results != "" {
			fmt.Fprintf(&b, "   results: %s\n", v.Results)
		}
	}
	_, err := io.WriteString(a.stdout, b.String())
	if err != nil {
		return fmt.Errorf("print what was verified: %w", err)
	}
	return nil
}

// defaultVerify is the most time that one verification takes.
const defaultVerify = 10 * time.Minute
