package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tare/record"
	"tare/store"
)

// appends is the number of trials that are stored: ten of them are above p99.
const appends = 1000

// append stores the trials of a real study again, with their series and raw
// output, in a new results folder, and after each one writes 4 KiB to a file on
// the same disk and flushes it: what the disk alone takes.
func (b *bench) append(ctx context.Context) (_ []row, err error) {
	if b.results == "" { // -only: the study has not run yet
		if _, err := b.runStudy(ctx); err != nil {
			return nil, err
		}
	}
	trials, evidence, err := load(b.results)
	if err != nil {
		return nil, err
	}
	release, err := b.hold(ctx, "append")
	if err != nil {
		return nil, err
	}
	defer release()
	s, err := store.Create(filepath.Join(b.work, "append"), store.Meta{StudyFile: "bench", StudySource: []byte("study: bench\n"), Started: time.Now()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.BeginSession(ctx, time.Now(), "bench", []record.Node{{}}); err != nil {
		return nil, err
	}
	bare, err := os.Create(filepath.Join(b.work, "bare"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = bare.Close() }()

	block := make([]byte, 4096)
	var pairs []pair
	for i := range appends {
		t := trials[i%len(trials)]
		t.Seq, t.Block, t.Attempt = i+1, i/len(trials)+1, 1
		begun := time.Now()
		if err := s.Append(ctx, &t, evidence[i%len(trials)]); err != nil {
			return nil, err
		}
		between := time.Now()
		if _, err := bare.Write(block); err != nil {
			return nil, err
		}
		if err := bare.Sync(); err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{between.Sub(begun).Seconds(), time.Since(between).Seconds()})
	}
	return appendRows(pairs, len(trials)), nil
}

func appendRows(pairs []pair, distinct int) []row {
	const peer = "4 KiB write and fsync"
	ours, _ := sides(pairs)
	mid := row{Figure: "append of a trial, p50", Unit: "s"}.beside("ratio", peer, pairs)
	mid.Note = fmt.Sprintf("%d appends of the %d trials of the study, each with its series and raw output flushed; slowest %s", len(pairs), distinct, show(ours[len(ours)-1], "s"))
	// A p99 of its own for each tenth, so that the quotient has rounds.
	var tails []pair
	for part := range slices.Chunk(pairs, max(1, len(pairs)/10)) {
		o, p := sides(part)
		tails = append(tails, pair{quantile(o, 0.99), quantile(p, 0.99)})
	}
	late := row{Figure: "append of a trial, p99", Unit: "s"}.beside("ratio", peer, tails)
	o, p := sides(pairs)
	late.Tare, late.PeerValue = quantile(o, 0.99), quantile(p, 0.99)
	return []row{mid, late.below(5e-3)}
}

// load reads the trials of a results folder with their evidence.
func load(dir string) ([]record.Trial, []record.Evidence, error) {
	s, err := store.OpenReadOnly(dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = s.Close() }()
	trials, err := s.Trials()
	if err != nil || len(trials) == 0 {
		return nil, nil, fmt.Errorf("%s has no trials to store again: %w", dir, err)
	}
	var all []record.Evidence
	for i := range trials {
		var e record.Evidence
		if e.Series, err = s.Series(&trials[i]); err != nil {
			return nil, nil, err
		}
		files, err := s.RawNames(&trials[i])
		if err != nil {
			return nil, nil, err
		}
		for _, name := range files {
			data, err := s.Raw(&trials[i], name)
			if err != nil {
				return nil, nil, err
			}
			e.Raw = append(e.Raw, record.Raw{Name: name, Data: data})
		}
		all = append(all, e)
	}
	return trials, all, nil
}
