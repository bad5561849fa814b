// Package imports makes results folders from the results of other tools, so that reports,
// plots and exports work on them.
//
// The data path: 1. a subpackage (csv, pbench, clusterbuster) reads a tool's files, bounded
// and only below the given path, and makes a Set: trials with their levels, figures in base
// units and time series; 2. Set.Write arranges the trials as a study: factors, cells, and
// blocks if the order is known; 3. the study's text contains a Catalogue of the workloads and
// responses that tare does not have; 4. package store stores them like measured trials; 5. a
// reader of the folder gets the catalogue with Of.
//
// Imported and measured results are never in one folder: Of distinguishes them, and writers
// check it.
package imports

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tare/record"
	"tare/store"
	"tare/study"
)

// Bounds of an import: far above real runs, far below the memory of a machine.
const (
	MaxTrials  = 100_000
	MaxPoints  = 20_000_000 // of all series
	maxCells   = 100_000    // of the cross product of levels
	maxSamples = 10_000     // of one trial
)

// Codes of warnings that an import leaves in the results.
const (
	CodeImported  = "imported"           // what the results are
	CodeOrder     = "imported-order"     // the order of trials does not separate drift from effect
	CodeDisagrees = "imported-disagrees" // the tool's own figure differs from its raw data
	CodeLeftOut   = "imported-left-out"  // what could not be read
	CodeRepeated  = "imported-repeated"  // rows that may be one execution twice
	CodeModelled  = "modelled"           // a model made the figures, as after a rehearsal
)

// Origin is where results came from. Version is the tool's, "" if unknown; Path is the name
// that the user gave.
type Origin struct {
	Tool    string `json:"tool"`
	Version string `json:"version,omitempty"`
	Path    string `json:"path"`
}

// Trial is one execution as another tool recorded it.
type Trial struct {
	Levels   map[string]string // of every factor that it has, workload and sandbox among them
	Samples  []record.Sample   // in base units, Original as the tool wrote it
	Series   []record.Series
	Start    time.Time // zero: unknown
	Duration time.Duration
	Block    int             // as the source says; 0: unknown
	Failure  *record.Failure // nil: it succeeded
	Warnings []record.Warning
	Facts    map[string]string
}

// Set is everything that was read.
type Set struct {
	Name, About       string
	Origin            Origin
	Compare, Baseline string                       // "" for sandbox, and for its first level
	Factors           []string                     // in order, without workload and sandbox
	Responses         map[string][]record.Response // by workload
	Trials            []Trial                      // in the source's order
	Host              record.Host                  // what the source says of the machine
	Tables            Tables                       // of the report
}

// Written is the result of Write.
type Written struct {
	Trials, Cells, Missing, Series int
	Warnings                       []record.Warning
}

// Write makes the results folder. If the folder has results, the error wraps fs.ErrExist.
// version is tare's.
func (s *Set) Write(ctx context.Context, dir, version string, now time.Time) (out Written, err error) {
	if err := s.check(); err != nil {
		return out, err
	}
	text, err := s.text()
	if err != nil {
		return out, err
	}
	st, err := s.parse(text)
	if err != nil {
		return out, err
	}
	trials, warnings := s.lay(st)
	modelled := slices.ContainsFunc(trials, func(l laid) bool { return l.trial.Modelled() })
	if modelled {
		warnings = append(warnings, record.Warning{Code: CodeModelled, Text: "no machine was measured: the source says that its figures are a model's"})
	}
	host := s.Host
	host.Warnings = append(slices.Clone(host.Warnings), warnings...)
	out.Warnings = host.Warnings
	if store.Exists(dir) {
		return out, fmt.Errorf("%s holds results already: %w; imported results need their own folder, give a new one", dir, fs.ErrExist)
	}
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // results are meant to be read by others
		return out, err
	}
	// Write to a temporary folder first, so that an interrupted import leaves no incomplete one.
	part, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-*")
	if err != nil {
		return out, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	if err = os.Chmod(part, 0o755); err != nil { //nolint:gosec // as above
		return out, err
	}
	meta := store.Meta{StudySource: st.Source, StudyFile: "study.yaml", Seed: st.Seed, Host: host, TareVersion: version, Started: now, Modelled: modelled}
	if err = keep(ctx, part, meta, st, trials, &out); err != nil {
		err = &StoreError{dir, err}
		return out, err
	}
	if err = os.Rename(part, dir); err != nil {
		err = fmt.Errorf("%w; give a folder that does not exist", err)
	}
	return out, err
}

// StoreError is a failure to store what was read: no fault of the files that are imported.
type StoreError struct {
	Dir string
	Err error
}

func (e *StoreError) Error() string {
	out := fmt.Sprintf("cannot store the results in %s: %v", e.Dir, e.Err)
	if errors.Is(e.Err, syscall.ENOSPC) || strings.Contains(e.Err.Error(), "disk is full") { // SQLite's error 13 has no errno
		out += "; nothing was kept; make room on that disk, or name a folder on another, and repeat the import"
	}
	return out
}

func (e *StoreError) Unwrap() error { return e.Err }

// keep stores the trials in a new folder.
func keep(ctx context.Context, dir string, meta store.Meta, st *study.Study, trials []laid, out *Written) (err error) {
	db, err := store.Create(dir, meta)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	seen := map[string]bool{}
	for i := range trials {
		if err := ctx.Err(); err != nil {
			return err
		}
		seen[trials[i].trial.Cell.Key()] = true
		out.Series += len(trials[i].series)
		if err := db.Append(ctx, &trials[i].trial, record.Evidence{Series: trials[i].series}); err != nil {
			return err
		}
	}
	var skips []record.Skip
	for _, stratum := range st.Strata {
		for _, c := range stratum.Cells {
			if !seen[c.Key()] {
				skips = append(skips, record.Skip{Cell: c, Reason: "the imported results have no trial of it"})
			}
		}
	}
	out.Trials, out.Cells, out.Missing = len(trials), len(seen), len(skips)
	return db.SetSkips(ctx, skips)
}

// check refuses what a results folder cannot hold.
func (s *Set) check() error {
	if len(s.Trials) == 0 {
		return errors.New("it contains no trials; give a file or folder with results")
	}
	if len(s.Trials) > MaxTrials {
		return fmt.Errorf("it has %d trials; tare reads at most %d; import it in parts", len(s.Trials), MaxTrials)
	}
	points := 0
	for i := range s.Trials {
		t := &s.Trials[i]
		if len(t.Samples) > maxSamples {
			return fmt.Errorf("a trial has %d figures; tare reads at most %d", len(t.Samples), maxSamples)
		}
		for _, p := range t.Samples {
			if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
				return fmt.Errorf("%s of a trial is not a number", p.Name)
			}
		}
		for j := range t.Series {
			points += len(t.Series[j].T)
		}
	}
	if points > MaxPoints {
		return fmt.Errorf("the time series have %d points; tare reads at most %d; import it in parts", points, MaxPoints)
	}
	return nil
}

// laid is a trial with its place in the study.
type laid struct {
	trial  record.Trial
	series []record.Series
}

// lay returns every trial with its cell, block and place in the order of execution.
func (s *Set) lay(st *study.Study) ([]laid, []record.Warning) {
	order := make([]int, len(s.Trials))
	timed := true
	for i := range order {
		order[i] = i
		timed = timed && !s.Trials[i].Start.IsZero()
	}
	if timed {
		slices.SortStableFunc(order, func(a, b int) int { return s.Trials[a].Start.Compare(s.Trials[b].Start) })
	}
	cells := cellsOf(st)
	count := map[string]int{}
	said := true // every trial has the number of its block
	out := make([]laid, 0, len(order))
	for n, i := range order {
		t := &s.Trials[i]
		cell := cells[identity(t.Levels)]
		key := cell.Key()
		count[key]++
		said = said && t.Block > 0
		l := laid{series: t.Series, trial: record.Trial{
			Seq: n + 1, Block: t.Block, Attempt: 1, Cell: cell, Status: record.OK, Failure: t.Failure,
			Start: t.Start, Duration: t.Duration, Samples: t.Samples, Warnings: t.Warnings, Facts: facts(s.Origin, t),
		}}
		if t.Failure != nil {
			l.trial.Status = record.Failed
		}
		if t.Block == 0 {
			l.trial.Block = count[key]
		}
		out = append(out, l)
	}
	word := "imported from " + s.Origin.Tool
	if s.Origin.Version != "" {
		word += " " + s.Origin.Version
	}
	warnings := []record.Warning{{Code: CodeImported, Text: word + " (" + s.Origin.Path + "), not measured by tare: warm-up, steady state and the cost of measuring are those of that tool"}}
	switch why := s.order(st, out, said, timed); why {
	case "":
	default:
		warnings = append(warnings, record.Warning{Code: CodeOrder, Text: why + ": a change of the machine between them cannot be distinguished from the effect of " + st.Compare + ", and the intervals do not include it"})
	}
	return out, warnings
}

// order returns why the blocks are not real blocks; "" if the compared levels were measured
// in turns.
func (s *Set) order(st *study.Study, trials []laid, said, timed bool) string {
	switch {
	case said:
		return ""
	case !timed:
		return "the source does not say in which order the trials ran, so trials are paired by number"
	}
	stratum := map[string]int{}
	for i := range st.Strata {
		for _, c := range st.Strata[i].Cells {
			stratum[c.Key()] = i
		}
	}
	type span struct{ first, last time.Time }
	spans := map[[2]int]*span{}
	top := 0
	for i := range trials {
		t := &trials[i].trial
		k := [2]int{stratum[t.Cell.Key()], t.Block}
		top = max(top, t.Block)
		if spans[k] == nil {
			spans[k] = &span{t.Start, t.Start}
		}
		if t.Start.After(spans[k].last) {
			spans[k].last = t.Start
		}
	}
	if top < 2 {
		return "each cell was measured once"
	}
	for k, a := range spans {
		if b := spans[[2]int{k[0], k[1] + 1}]; b != nil && !a.last.Before(b.first) {
			return "the levels of " + st.Compare + " were measured one after the other, not in turns"
		}
	}
	return ""
}

// facts are a trial's, with where it came from, and the endpoints that it has readings of:
// they were in the sandbox, unless the trial says otherwise.
func facts(o Origin, t *Trial) map[string]string {
	out := map[string]string{"imported.tool": o.Tool, "imported.path": o.Path}
	if o.Version != "" {
		out["imported.version"] = o.Version
	}
	for i := range t.Samples {
		if endpoint := t.Samples[i].Labels.Get(record.LabelEndpoint); endpoint != "" {
			if t.Facts[endpoint+record.FactWhere] == "" {
				level := t.Levels[study.FactorSandbox]
				out[endpoint+record.FactWhere] = level
				maps.Copy(out, traits(level).Facts(endpoint))
			}
		}
	}
	maps.Copy(out, t.Facts)
	return out
}

// traits tells from a level's name what it is. Other tools record no more than the name of
// a runtime class, and tare's own exports that of a kind. A name that says nothing has no
// traits.
func traits(level string) record.Traits {
	base, rest, _ := strings.Cut(level, "-")
	switch base {
	case "process":
		return record.Traits{Family: record.FamilyNative, OwnKernel: record.No}
	case "runc", "crun", "youki":
		return record.Traits{Family: record.FamilyContainer, Runtime: base, OwnKernel: record.No}
	case "runsc", "gvisor":
		t := record.Traits{Family: record.FamilyGVisor, Runtime: "runsc", Platform: rest, OwnKernel: record.Yes}
		if rest != "" { // as the kinds of tare are started
			t.Flags = []string{"platform=" + rest, "network=sandbox"}
		}
		return t
	case "vm", "kata", "kubevirt", "sandboxed":
		return record.Traits{Family: record.FamilyVM, OwnKernel: record.Yes}
	}
	return record.Traits{}
}

// LeftOut warns that something could not be read.
func (t *Trial) LeftOut(format string, args ...any) {
	t.Warnings = append(t.Warnings, record.Warning{Code: CodeLeftOut, Text: fmt.Sprintf(format, args...)})
}

// Compare warns where a tool's own figure is not what its raw data say, within a tolerance, which is
// a relative difference.
func (t *Trial) Compare(what string, own, raw, tolerance float64) {
	if !Agree(own, raw, tolerance) {
		t.Warnings = append(t.Warnings, record.Warning{Code: CodeDisagrees, Text: fmt.Sprintf("%s: the tool's own summary says %s, its raw data say %s; the raw data are used",
			what, strconv.FormatFloat(own, 'g', 6, 64), strconv.FormatFloat(raw, 'g', 6, 64))})
	}
}

// Agree reports whether two figures differ by no more than a tolerance, which is relative.
func Agree(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b))
}
