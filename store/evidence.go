package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"tare/record"
)

// maxRaw bounds what one stream of raw output may be once decompressed: a
// results folder may come from someone else. run keeps less than this.
const maxRaw = 1 << 30

// tempName is what a file or directory is called until it is whole.
func tempName(name string) string { return ".tmp-" + name }

// writeEvidence writes a trial's files, flushed to the disk under their final
// names. After an error nothing of them is left.
func (s *Store) writeEvidence(name string, e record.Evidence) (files []evidenceFile, err error) {
	defer func() {
		if err != nil {
			s.removeEvidence(name)
			files = nil
		}
	}()
	// Left by an Append that failed in its commit; no row has this name.
	s.removeEvidence(name)
	if len(e.Series) > 0 {
		b, err := encodeSeries(e.Series)
		if err != nil {
			return nil, fmt.Errorf("series: %w", err)
		}
		rel := filepath.Join(seriesDir, name+".parquet")
		n, err := writeFile(filepath.Join(s.dir, rel), b)
		if err != nil {
			return nil, err
		}
		files = append(files, evidenceFile{"series", "", rel, n})
	}
	if len(e.Raw) > 0 {
		more, err := s.writeRaw(name, e.Raw)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// writeRaw fills a temporary directory and renames it whole.
func (s *Store) writeRaw(name string, raws []record.Raw) ([]evidenceFile, error) {
	tmp := filepath.Join(s.dir, rawDir, tempName(name))
	if err := os.Mkdir(tmp, 0o755); err != nil { //nolint:gosec // results are meant to be read by others than root
		return nil, err
	}
	// One encoder for all, without its own goroutines: the harness must stay
	// small beside the load.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	files := make([]evidenceFile, len(raws))
	packed := make([][]byte, len(raws))
	seen := make(map[string]bool, len(raws))
	for i, r := range raws {
		if err := checkRawName(r.Name); err != nil {
			return nil, err
		}
		if seen[r.Name] {
			return nil, fmt.Errorf("raw output %q is there twice", r.Name)
		}
		if len(r.Data) > maxRaw {
			return nil, fmt.Errorf("raw output %q has %d bytes, more than the %d that can be read back", r.Name, len(r.Data), maxRaw)
		}
		seen[r.Name] = true
		packed[i] = enc.EncodeAll(r.Data, nil)
		files[i] = evidenceFile{"raw", r.Name, filepath.Join(rawDir, name, r.Name+".zst"), int64(len(packed[i]))}
	}
	// Together: the file system then flushes its journal once rather than once
	// a file.
	errs := make([]error, len(raws))
	var wg sync.WaitGroup
	for i, r := range raws {
		wg.Go(func() { errs[i] = writeSynced(filepath.Join(tmp, r.Name+".zst"), packed[i]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := syncDir(tmp); err != nil {
		return nil, err
	}
	if err := os.Rename(tmp, filepath.Join(s.dir, rawDir, name)); err != nil {
		return nil, err
	}
	return files, syncDir(filepath.Join(s.dir, rawDir))
}

func checkRawName(name string) error {
	if name == "" || len(name) > 200 || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("raw output %q: the name must be a file name of at most 200 bytes that starts with no dot", name)
	}
	return nil
}

// removeEvidence is best effort: what it cannot remove, the next Open does.
func (s *Store) removeEvidence(name string) {
	_ = os.Remove(filepath.Join(s.dir, seriesDir, name+".parquet"))
	_ = os.Remove(filepath.Join(s.dir, seriesDir, tempName(name+".parquet")))
	_ = os.RemoveAll(filepath.Join(s.dir, rawDir, name))
	_ = os.RemoveAll(filepath.Join(s.dir, rawDir, tempName(name)))
}

// removeOrphans removes the evidence of trials that have no row.
func (s *Store) removeOrphans(ctx context.Context) error {
	rows, err := s.db.QueryContext(ctx, "SELECT name FROM trials")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	known := make(map[string]bool)
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			return err
		}
		known[n] = true
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, d := range []struct{ dir, suffix string }{{seriesDir, ".parquet"}, {rawDir, ""}} {
		entries, err := os.ReadDir(filepath.Join(s.dir, d.dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), d.suffix)
			if ok && known[name] || !isTrialName(strings.TrimPrefix(name, ".tmp-")) {
				continue // not ours: a user's file stays
			}
			if err := os.RemoveAll(filepath.Join(s.dir, d.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// isTrialName tells the form of TrialName.
func isTrialName(s string) bool {
	seq, attempt, ok := strings.Cut(s, "-")
	return ok && len(seq) >= 6 && attempt != "" && strings.Trim(seq, "0123456789") == "" && strings.Trim(attempt, "0123456789") == ""
}

// Raw returns what one tool printed in a trial. fs.ErrNotExist: it was not kept.
func (s *Store) Raw(t *record.Trial, name string) (_ []byte, err error) {
	if err := checkRawName(name); err != nil {
		return nil, err
	}
	f, err := s.root.Open(rawDir + "/" + TrialName(t) + "/" + name + ".zst")
	if err != nil {
		return nil, fmt.Errorf("raw output %s of trial %s: %w", name, TrialName(t), err)
	}
	defer func() { _ = f.Close() }()
	b, err := unpack(f, maxRaw)
	if err != nil {
		return nil, fmt.Errorf("raw output %s of trial %s: %w", name, TrialName(t), err)
	}
	return b, nil
}

// unpack decompresses at most limit bytes, with bounded memory beside them.
func unpack(r io.Reader, limit int64) ([]byte, error) {
	dec, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	b, err := io.ReadAll(io.LimitReader(dec, limit+1))
	if err != nil {
		return nil, fmt.Errorf("the file is damaged: %w", err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("it has more than %d bytes", limit)
	}
	return b, nil
}

// RawNames lists the raw outputs that were kept of a trial, sorted.
func (s *Store) RawNames(t *record.Trial) ([]string, error) {
	rows, err := s.db.Query("SELECT e.name FROM evidence e JOIN trials t ON t.id = e.trial WHERE t.name = ? AND e.kind = 'raw' ORDER BY e.name", TrialName(t))
	if err != nil {
		return nil, fmt.Errorf("raw outputs of trial %s: %w", TrialName(t), err)
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, rows.Err()
}

// writeFile puts a whole file at path: temporary name, flush, rename, flush of
// the directory. Nothing is left after an error. It returns the size.
func writeFile(path string, b []byte) (int64, error) {
	tmp := filepath.Join(filepath.Dir(path), tempName(filepath.Base(path)))
	if err := writeSynced(tmp, b); err != nil {
		_ = os.Remove(tmp)
		return 0, err
	}
	if err := os.Rename(tmp, path); err != nil {
		_ = os.Remove(tmp)
		return 0, err
	}
	return int64(len(b)), syncDir(filepath.Dir(path))
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644) //nolint:gosec // results are meant to be read by others than root
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes renames in dir durable (fsync(2): "Calling fsync() does not
// necessarily ensure that the entry in the directory ... has also reached
// disk").
func syncDir(dir string) error {
	f, err := os.Open(dir) //nolint:gosec // the results folder or one of its own
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, fs.ErrInvalid) {
		err = nil // a file system that has nothing to flush says EINVAL
	}
	return errors.Join(err, f.Close())
}
