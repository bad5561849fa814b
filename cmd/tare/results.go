package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"tare/analyse"
	"tare/analyse/cause"
	"tare/analyse/cpucost"
	"tare/cluster/pod"
	"tare/imports"
	"tare/record"
	"tare/report/document"
	"tare/report/html"
	"tare/report/text"
	"tare/store"
	"tare/study"
)

// The one path from a results folder to a report: 1. openResults opens it, once; 2. kept
// reads the study that lies in it; 3. load reads what was measured, trial by trial; 4. read
// analyses that; 5. document makes the HTML report of it.

// results is an open results folder.
type results struct{ *store.Store }

// openResults opens a results folder for reading, also while a study writes to it. For a
// path that is not one the error has the exit code of usage and wraps store.ErrNoResults.
func openResults(dir string) (results, error) {
	db, err := store.OpenReadOnly(dir)
	if errors.Is(err, store.ErrNoResults) {
		err = coded(exitUsage, "%w; `tare run STUDY` makes one", err)
	}
	return results{db}, err
}

// inResults opens a results folder for one read.
func inResults[T any](dir string, read func(results) (T, error)) (out T, err error) {
	r, err := openResults(dir)
	if err != nil {
		return out, err
	}
	defer func() { _ = r.Close() }()
	return read(r)
}

// analyseResults opens a results folder for its analysis.
func analyseResults(ctx context.Context, dir string, want extent, opts ...analyse.Option) (*analysed, error) {
	return inResults(dir, func(r results) (*analysed, error) { return r.read(ctx, want, opts...) })
}

// kept is what a results folder holds beside its trials.
type kept struct {
	meta  store.Meta
	study *study.Study
	cat   study.Catalogue // of imported results, their own
}

// kept reads the study that was copied into the folder.
func (r results) kept() (k kept, err error) {
	if k.cat, err = offered(); err != nil {
		return k, err
	}
	if k.meta, err = r.Meta(); err != nil {
		return k, err
	}
	if im, ok := imports.Of(k.meta.StudySource); ok {
		k.cat = im.Study()
	}
	k.cat.Stored, k.cat.Others = true, pod.ParamsOf
	k.study, err = study.Parse(k.meta.StudyFile, k.meta.StudySource, k.cat, k.meta.Overrides)
	return k, err
}

// content is all that a results folder says, before it is analysed.
type content struct {
	kept
	trials   []record.Trial
	skips    []record.Skip
	sessions []store.Session
	damage   []analyse.Warning // what was left out because it does not verify
}

// load reads the parts of the trials that pick names, and what belongs to them. take sees
// each trial first.
func (r results) load(ctx context.Context, k kept, pick store.Pick, take func(*record.Trial)) (content, error) {
	c := content{kept: k}
	for t, err := range r.Some(ctx, pick) {
		if err != nil {
			return c, err
		}
		take(&t)
		c.trials = append(c.trials, t)
	}
	var err error
	if c.skips, err = r.Skips(); err != nil {
		return c, err
	}
	if c.sessions, err = r.Sessions(); err != nil {
		return c, err
	}
	c.damage, err = r.damage(ctx) // last: it tells what the reads met
	return c, err
}

func (c *content) hosts() (out []record.Host) {
	for _, s := range c.sessions {
		out = append(out, s.Hosts()...)
	}
	return out
}

// analysed is the content of a results folder and what it says.
type analysed struct {
	content // trials with what an analysis reads of them; none beside a document
	dir     string
	result  *analyse.Result
	builder *document.Builder   // nil when no document is wanted
	series  document.ReadSeries // of a whole page
	times   map[string]mean     // see took
}

// extent is what is wanted of a results folder.
type extent int

const (
	figures   extent = iota // the analysis
	livePage                // and a document without series, which a page fetches one by one
	wholePage               // and a document with all that has room
)

// read streams the trials once: into the document if that is wanted, and, less
// what no analysis reads, into memory.
func (r results) read(ctx context.Context, want extent, opts ...analyse.Option) (*analysed, error) {
	k, err := r.kept()
	if err != nil {
		return nil, err
	}
	out := &analysed{dir: r.Dir()}
	add := func(*record.Trial) {}
	if want != figures {
		out.builder = document.New(k.study)
		add = out.builder.Add
	}
	cpu, causes := new(cpucost.Reader), new(cause.Reader)
	pick := store.Pick{Labels: analyse.LabelNames(), Names: analyse.SampleNames(), NoHistograms: want == figures, Facts: analyse.FactNames()}
	out.content, err = r.load(ctx, k, pick, func(t *record.Trial) {
		add(t)
		t.Histograms = nil
		causes.Take(t) // before cpu, which takes what both read
		cpu.Take(t)
	})
	if err != nil {
		return nil, err
	}
	var settling sync.WaitGroup
	if want == wholePage {
		out.series = seriesOf(ctx, r.Store, seriesTime)
		settling.Go(func() { out.builder.Settle(out.series) })
	}
	out.result = analyse.Analyse(k.study, out.trials, out.skips, append(opts, analyse.Describe(responsesOf(k.study, k.cat)), analyse.CPU(cpu), analyse.Causes(causes, paramsOf(k.cat)), analyse.RunWith(k.meta.Flags))...)
	settling.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err //nolint:wrapcheck // it says that the verb was interrupted
	}
	out.result.Advice = out.completed(out.result.Advice)
	if want != figures { // a document has its own columns, and the trials are many
		out.trials = nil
	}
	out.result.Warnings = append(append(out.damage, k.raised()...), out.result.Warnings...) // first: the other warnings are about the rest
	return out, nil
}

// document is everything that the HTML report shows; only of what was read for a page.
func (r *analysed) document(live bool) *document.Document {
	in := document.Input{Tare: versionText(), Dir: folderName(r.dir), File: filepath.Base(r.meta.StudyFile), Live: live, Result: r.result}
	for _, s := range r.sessions {
		x := document.Session{ID: s.ID, Started: s.Started.UTC().Format(time.RFC3339), Tare: s.TareVersion, Host: s.Host}
		if len(s.Nodes) > 1 {
			x.Nodes = s.Nodes
		}
		in.Sessions = append(in.Sessions, x)
	}
	if !live { // a live report fetches them one by one
		in.Series = r.series
	}
	return r.builder.Document(in)
}

// text writes the tables.
func (r *analysed) text(w io.Writer, opt text.Options) error {
	return text.Write(w, r.result, r.hosts(), opt)
}

// page writes the HTML report.
func (r results) page(ctx context.Context, w io.Writer) error {
	keepBelow(reportMemory)
	x, err := r.read(ctx, wholePage)
	if err != nil {
		return err
	}
	d := x.document(false)
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // it says that the verb was interrupted
	}
	return html.Write(w, d)
}

// seriesTime is how long reading the series of one report may take, summed over the files.
// The 400 files of a usual report take less than a second.
const seriesTime = 30 * time.Second

// seriesOf reads the series that a document turns into lines. When the files have taken most
// of time together, the rest are left out.
func seriesOf(ctx context.Context, db *store.Store, most time.Duration) document.ReadSeries {
	var spent atomic.Int64
	return func(t *record.Trial, use func([]record.Series)) error {
		began, left := time.Now(), most-time.Duration(spent.Load())
		if left <= 0 {
			return document.ErrNoTime
		}
		limited, cancel := context.WithTimeoutCause(ctx, left, document.ErrNoTime)
		defer cancel()
		err := db.SeriesOf(limited, t, document.Wanted, use)
		spent.Add(int64(time.Since(began)))
		if err != nil && limited.Err() != nil {
			err = context.Cause(limited)
		}
		return err //nolint:wrapcheck // it names the trial
	}
}
