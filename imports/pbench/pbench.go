// Package pbench reads unpacked result trees of Pbench's agent
// (https://github.com/distributed-system-analysis/pbench):
//
//	metadata.log                         the run: configuration, controller, iterations
//	N-NAME/result.json                   an iteration, with the tool's own means
//	N-NAME/sampleM/result.json           a sample: parameters, throughput, latency
//	N-NAME/sampleM/client::*_output.txt  what uperf printed
//	N-NAME/sampleM/fio-result.txt        what fio printed
//	N-NAME/sampleM/tools-GROUP/HOST/TOOL/csv/*.csv
//
// The data path: 1. a tree, or a folder of trees, is walked in a fixed shape, without leaving
// it; 2. each sample of an iteration is a trial, and its parameters are levels; 3. figures are
// computed from the benchmark's output, else from the streams' time series; 4. the tool's own
// figures, of the sample and of the iteration, are checked against them, and a disagreement is
// a warning with both; 5. with the Mapping, the output of the tools on an endpoint's machines
// becomes the series and figures of the collectors; 6. the trials are an imports.Set.
package pbench

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/imports"
	"tare/record"
	"tare/study"
)

// Bounds on what is read.
const (
	MaxTree     = 4 << 30 // bytes of all files that are read of a tree
	maxFile     = 128 << 20
	maxMetadata = 4 << 20
	maxDepth    = 32
)

var (
	iterationName = regexp.MustCompile(`^\d+-.+`)
	failedName    = regexp.MustCompile(`-fail\d*$`)
	sampleName    = regexp.MustCompile(`^sample(\d+)$`)
)

// reader is a tree that is being read.
type reader struct {
	f         *imports.Folder
	set       *imports.Set
	tree      Tree
	endpoints map[string]Endpoint
	meta      metadata
	points    int  // of the tools' series that are kept
	full      bool // there is no room for more
	first     *imports.First
	figure    []byte // the hashes of the files that the sample's figures are computed from
}

// Read makes a Set of trees. ends maps the machines of the tools to ends; nil: use their names.
func Read(trees []Tree, endpoints map[string]Endpoint) (*imports.Set, error) {
	s := &imports.Set{Name: "pbench", Responses: map[string][]record.Response{}, Origin: imports.Origin{Tool: "pbench"}}
	var names []string
	first := new(imports.First)
	for _, t := range trees {
		if err := tree(s, t, endpoints, first); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Dir, err)
		}
		names = append(names, filepath.Base(filepath.Clean(t.Dir)))
	}
	s.Origin.Path = imports.Clean(strings.Join(names, ", "))
	s.About = "Imported from Pbench: " + s.Origin.Path
	imports.Describe(s)
	return s, nil
}

// tree reads one run, or every run in a folder.
func tree(s *imports.Set, t Tree, endpoints map[string]Endpoint, first *imports.First) error {
	f, err := imports.OpenFolder(t.Dir, MaxTree)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	before := len(s.Trials)
	r := &reader{f: f, set: s, tree: t, endpoints: endpoints, first: first}
	if err := r.run("."); err != nil {
		return err
	}
	if len(s.Trials) == before {
		_, dirs, err := f.List(".")
		if err != nil {
			return err
		}
		for _, d := range dirs {
			if err := r.run(d); err != nil {
				return err
			}
		}
	}
	if len(s.Trials) == before {
		return errors.New("it has no iteration with samples (1-NAME/sample1); give an unpacked Pbench result")
	}
	return nil
}

// run reads the iterations of one run.
func (r *reader) run(dir string) error {
	text, err := r.f.Read(path.Join(dir, "metadata.log"), maxMetadata)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.meta = parseMetadata(text)
	for _, where := range []string{dir, path.Join(dir, "iterations")} {
		_, dirs, err := r.f.List(where)
		if err != nil {
			return err
		}
		slices.SortStableFunc(dirs, func(a, b string) int { return number(a) - number(b) })
		for _, d := range dirs {
			if !iterationName.MatchString(d) {
				continue
			}
			if failedName.MatchString(d) {
				r.set.Host.Warnings = append(r.set.Host.Warnings, record.Warning{Code: imports.CodeLeftOut, Text: imports.Clean(d) + ": Pbench itself set this attempt aside; it is not imported"})
				continue
			}
			if err := r.iteration(path.Join(where, d), d); err != nil {
				return fmt.Errorf("%s: %w", path.Join(where, d), err)
			}
		}
	}
	return nil
}

func number(name string) int {
	head, _, _ := strings.Cut(name, "-")
	n, err := strconv.Atoi(strings.TrimPrefix(head, "sample"))
	if err != nil {
		return 1 << 30
	}
	return n
}

// iteration reads the samples of a cell, and checks the tool's mean of them.
func (r *reader) iteration(dir, name string) error {
	_, dirs, err := r.f.List(dir)
	if err != nil {
		return err
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return number(a) - number(b) })
	first := len(r.set.Trials)
	for _, d := range dirs {
		if !sampleName.MatchString(d) {
			continue
		}
		if len(r.set.Trials) >= imports.MaxTrials {
			return fmt.Errorf("there are more than %d samples; import it in parts", imports.MaxTrials)
		}
		r.figure = nil
		t, err := r.sample(path.Join(dir, d), name)
		if err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
		if r.figure != nil {
			if err := r.first.Same(path.Join(r.tree.Dir, dir, d), r.figure); err != nil {
				return err
			}
		}
		t.Facts["imported.iteration"], t.Facts["imported.sample"] = imports.Clean(name), strings.TrimPrefix(d, "sample")
		r.set.Trials = append(r.set.Trials, t)
	}
	trials := r.set.Trials[first:]
	if len(trials) == 0 {
		return nil
	}
	own, err := r.result(path.Join(dir, "result.json"))
	if err != nil || own == nil {
		return err
	}
	for _, m := range own.metrics() {
		all := m.aggregate()
		if all == nil || all.Mean == nil {
			continue
		}
		sum, n := 0.0, 0
		for i := range trials {
			for _, p := range trials[i].Samples {
				if p.Name == m.name && p.Labels == "" {
					sum, n = sum+p.Value, n+1
				}
			}
		}
		if n == 0 {
			continue
		}
		// Two per cent: the tool keeps four digits, and trims its series otherwise.
		trials[len(trials)-1].Compare(fmt.Sprintf("%s of iteration %s, mean of %d samples, %s", m.name, imports.Clean(name), n, m.unit), *all.Mean*m.scale, sum/float64(n), 0.02)
	}
	return nil
}

// result reads a result.json; nil if it is missing.
func (r *reader) result(name string) (*result, error) {
	text, err := r.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return parseResult(text)
}

// read reads a file that figures are computed from.
func (r *reader) read(name string) ([]byte, error) {
	text, err := r.f.Read(name, maxFile)
	if err == nil {
		sum := sha256.Sum256(text)
		r.figure = append(r.figure, sum[:]...)
	}
	return text, err
}

func parseResult(text []byte) (*result, error) {
	if err := imports.Shallow(text, maxDepth); err != nil {
		return nil, err
	}
	out := new(result)
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("result.json: %w", err)
	}
	return out, nil
}

// sample reads one trial.
func (r *reader) sample(dir, iteration string) (imports.Trial, error) {
	t := imports.Trial{Levels: map[string]string{}, Facts: map[string]string{}}
	res, err := r.result(path.Join(dir, "result.json"))
	if err != nil {
		return t, err
	}
	if res == nil {
		res = new(result)
	}
	params := map[string]string{}
	maps.Copy(params, r.meta["iterations/"+iteration])
	if b := res.Parameters["benchmark"]; len(b) > 0 {
		for k, v := range b[0] {
			switch v.(type) {
			case string, float64, bool:
				params[k] = text(v)
			}
		}
	}
	r.levels(&t, params)
	res.span(&t)
	if err := r.figures(&t, dir, res, params); err != nil {
		return t, err
	}
	if len(t.Samples) == 0 {
		t.Failure = &record.Failure{Phase: "run", Kind: "other", Reason: "the sample has no figure that can be read"}
	}
	return t, r.tools(&t, dir, res, params["benchmark_name"])
}

// kept lists the parameters that are factors. Others are facts.
func kept() []string {
	return []string{"protocol", "message_size_bytes", "instances", "bs", "rw", "iodepth", "numjobs", "direct", "ioengine", "sync"}
}

func (r *reader) levels(t *imports.Trial, params map[string]string) {
	w := imports.Name(params["benchmark_name"])
	if params["benchmark_name"] == "" {
		if w = imports.Name(r.meta.get("pbench", "script")); r.meta.get("pbench", "script") == "" {
			w = "pbench"
		}
	}
	if kind := params["test_type"]; kind != "" { // each type has its own figures: uperf-rr, uperf-stream
		w = imports.Name(w + "-" + kind)
	}
	t.Levels[study.FactorWorkload] = w
	switch {
	case r.tree.Sandbox != "":
		t.Levels[study.FactorSandbox] = r.tree.Sandbox
	case r.meta.get("pbench", "config") != "":
		t.Levels[study.FactorSandbox] = imports.Name(r.meta.get("pbench", "config"))
	}
	for k, v := range params {
		switch {
		case v == "" || imports.CheckFactor(k) != nil:
		case slices.Contains(kept(), k):
			t.Levels[k] = v
		case k != "uid" && k != "iteration_name" && k != "iteration_number":
			t.Facts["imported."+k] = v
		}
	}
	maps.Copy(t.Levels, r.tree.Levels)
	for fact, v := range map[string]string{"imported.controller": r.meta.get("run", "controller"), "imported.start_run": r.meta.get("run", "start_run"),
		"imported.agent": r.meta.get("pbench", "rpm-version"), "imported.config": r.meta.get("pbench", "config")} {
		if v != "" {
			t.Facts[fact] = v
		}
	}
	if r.set.Host.Hostname == "" {
		r.set.Host.Hostname = r.meta.get("run", "controller")
		r.set.Origin.Version = r.meta.get("pbench", "rpm-version")
	}
}

// text returns a parameter's value. A list of equal values, one for each client, is one value.
func text(v any) string {
	s := imports.Clean(fmt.Sprint(v))
	if f, ok := v.(float64); ok {
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	parts := strings.Split(s, ",")
	for _, p := range parts[1:] {
		if p != parts[0] {
			return s
		}
	}
	return parts[0]
}

// metadata is a metadata.log: sections of key = value.
type metadata map[string]map[string]string

func parseMetadata(text []byte) metadata {
	m, section := metadata{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if s, ok := strings.CutPrefix(line, "["); ok && strings.HasSuffix(s, "]") {
			section = strings.TrimSuffix(s, "]")
			continue
		}
		if k, v, ok := strings.Cut(line, "="); ok && section != "" && !strings.HasPrefix(line, "#") {
			if m[section] == nil {
				m[section] = map[string]string{}
			}
			m[section][strings.TrimSpace(k)] = imports.Clean(v)
		}
	}
	return m
}

func (m metadata) get(section, key string) string { return m[section][key] }

// moment converts milliseconds of Unix time; zero if it is an offset, as in fio's logs.
func moment(ms float64) time.Time {
	if ms < 1e12 || ms > 4e12 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}
