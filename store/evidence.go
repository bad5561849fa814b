package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
	"golang.org/x/sys/unix"

	"tare/record"
)

// maxRaw bounds a decompressed raw output, in bytes: a results folder may come from someone
// else. run keeps less than this.
const maxRaw = 1 << 30

// tempName is the name of a file or directory until it is complete.
func tempName(name string) string { return ".tmp-" + name }

// writeEvidence writes a trial's files and flushes them under their final names. After an
// error it leaves no files.
//
// It writes and renames all files first, and flushes them together afterwards: no row points
// to the files yet, so their order does not matter, and a journalling file system commits once
// instead of seven times, which saves a third of Append's time on ext4 (measured in turns).
// The rename is for programs that read series/*.parquet during a run: they never see an
// incomplete file.
func (s *Store) writeEvidence(name string, e record.Evidence) (files []evidenceFile, err error) {
	enc, err := s.encoder()
	if err != nil {
		return nil, err
	}
	w := evidenceWriter{dir: s.dir, name: name, enc: enc, codec: &s.codec}
	defer func() {
		if cerr := w.close(); err == nil {
			err = cerr
		}
		if err != nil {
			s.removeEvidence(name)
			files = nil
		}
	}()
	// An Append that failed in its commit may have left files; no row has this name.
	s.removeEvidence(name)
	if len(e.Series) > 0 {
		if err := w.series(e.Series); err != nil {
			return nil, fmt.Errorf("series: %w", err)
		}
	}
	if len(e.Raw) > 0 {
		if err := w.raw(e.Raw); err != nil {
			return nil, err
		}
	}
	return w.files, w.sync()
}

// evidenceWriter holds the files and directories of a trial open until they are
// flushed.
type evidenceWriter struct {
	dir, name string
	enc       *zstd.Encoder
	codec     *parquetzstd.Codec
	open      []*os.File
	files     []evidenceFile
}

// encoder returns the encoder, made on first use. It has no goroutines and a small window,
// because the harness must use little memory beside the load. The caller holds s.mu.
func (s *Store) encoder() (*zstd.Encoder, error) {
	if s.enc != nil {
		return s.enc, nil
	}
	var err error
	s.enc, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(256<<10))
	return s.enc, err
}

func (w *evidenceWriter) series(all []record.Series) error {
	b, err := encodeSeries(w.codec, all)
	if err != nil {
		return err
	}
	base := w.name + ".parquet"
	if err := w.write(filepath.Join(seriesDir, tempName(base)), b); err != nil {
		return err
	}
	w.files = append(w.files, evidenceFile{"series", "", filepath.Join(seriesDir, base), int64(len(b)), digestOf(b)})
	return w.rename(seriesDir, base)
}

func (w *evidenceWriter) raw(raws []record.Raw) error {
	tmp := filepath.Join(rawDir, tempName(w.name))
	if err := os.Mkdir(filepath.Join(w.dir, tmp), 0o755); err != nil { //nolint:gosec // results are meant to be read by others than root
		return err
	}
	seen := make(map[string]bool, len(raws))
	for _, r := range raws {
		if err := checkRawName(r.Name); err != nil {
			return err
		}
		if seen[r.Name] {
			return fmt.Errorf("raw output %q occurs twice", r.Name)
		}
		if len(r.Data) > maxRaw {
			return fmt.Errorf("raw output %q has %d bytes, more than the %d that can be read back", r.Name, len(r.Data), maxRaw)
		}
		seen[r.Name] = true
		b := w.enc.EncodeAll(r.Data, nil)
		if err := w.write(filepath.Join(tmp, r.Name+".zst"), b); err != nil {
			return err
		}
		w.files = append(w.files, evidenceFile{"raw", r.Name, filepath.Join(rawDir, w.name, r.Name+".zst"), int64(len(b)), digestOf(b)})
	}
	if err := w.keep(os.Open(filepath.Join(w.dir, tmp))); err != nil { //nolint:gosec // the results folder's own
		return err
	}
	return w.rename(rawDir, w.name)
}

func (w *evidenceWriter) write(rel string, b []byte) error {
	if err := w.keep(create644(filepath.Join(w.dir, rel))); err != nil {
		return err
	}
	_, err := w.open[len(w.open)-1].Write(b)
	return err
}

func (w *evidenceWriter) rename(dir, base string) error {
	d := filepath.Join(w.dir, dir)
	if err := os.Rename(filepath.Join(d, tempName(base)), filepath.Join(d, base)); err != nil {
		return err
	}
	return w.keep(os.Open(d)) //nolint:gosec // the results folder's own
}

func (w *evidenceWriter) keep(f *os.File, err error) error {
	if err == nil {
		w.open = append(w.open, f)
	}
	return err
}

func (w *evidenceWriter) sync() error {
	errs := make([]error, len(w.open))
	var wg sync.WaitGroup
	for i, f := range w.open {
		wg.Go(func() { errs[i] = flush(f) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (w *evidenceWriter) close() error {
	var errs []error
	for _, f := range w.open {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func checkRawName(name string) error {
	if name == "" || len(name) > 200 || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("raw output %q: the name must be a file name of at most 200 bytes that does not start with a dot", name)
	}
	return nil
}

// removeEvidence removes a trial's files. It ignores errors: the next Open handles the rest.
func (s *Store) removeEvidence(name string) {
	_ = os.Remove(filepath.Join(s.dir, seriesDir, name+".parquet"))           //nolint:gosec // a trial's name is made of two numbers
	_ = os.Remove(filepath.Join(s.dir, seriesDir, tempName(name+".parquet"))) //nolint:gosec // a trial's name is made of two numbers
	_ = os.RemoveAll(filepath.Join(s.dir, rawDir, name))                      //nolint:gosec // a trial's name is made of two numbers
	_ = os.RemoveAll(filepath.Join(s.dir, rawDir, tempName(name)))            //nolint:gosec // below the folder that the user named
}

// removeOrphans removes the unfinished files of a writer that died. It moves complete evidence
// without a row to lost/N: its trial may have been reported, and its row lost with the log.
func (s *Store) removeOrphans(ctx context.Context) error {
	known, err := s.names(ctx)
	if err != nil {
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
				continue // keep a user's file
			}
			if ok && isTrialName(name) {
				err = s.setAside(name, d.dir, e.Name())
			} else {
				err = os.RemoveAll(filepath.Join(s.dir, d.dir, e.Name())) //nolint:gosec // an entry of the folder, of a trial's name
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Aside is evidence without a row that Open moved.
type Aside struct {
	Trial string // its name
	Dir   string // below the results folder
}

// SetAside returns what Open moved; Trial is "" if it moved nothing.
func (s *Store) SetAside() Aside { return s.aside }

// setAside moves a file or directory of a trial to lost/N/, under the same path. There is at
// most one such trial: with more, Open refuses the folder.
func (s *Store) setAside(trial, dir, base string) error {
	for n := 1; s.aside.Dir == ""; n++ {
		if err := s.root.Mkdir(lostDir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		place := fmt.Sprintf("%s/%d", lostDir, n)
		err := s.root.Mkdir(place, 0o755)
		if err == nil {
			s.aside = Aside{trial, place}
		} else if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	to := s.aside.Dir + "/" + dir
	if err := s.root.Mkdir(to, 0o755); err != nil {
		return err
	}
	if err := s.root.Rename(dir+"/"+base, to+"/"+base); err != nil {
		return err
	}
	for _, d := range []string{to, s.aside.Dir, lostDir, dir, "."} {
		if err := syncDir(filepath.Join(s.dir, d)); err != nil {
			return err
		}
	}
	return nil
}

// evidenceIn lists the trials that have files in series/ or raw/, sorted.
func evidenceIn(dir string) ([]string, error) {
	var out []string
	for _, d := range []struct{ dir, suffix string }{{seriesDir, ".parquet"}, {rawDir, ""}} {
		entries, err := os.ReadDir(filepath.Join(dir, d.dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), d.suffix); ok && isTrialName(name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// isTrialName reports whether s has the form of TrialName.
func isTrialName(s string) bool {
	seq, attempt, ok := strings.Cut(s, "-")
	return ok && len(seq) >= 6 && attempt != "" && strings.Trim(seq, "0123456789") == "" && strings.Trim(attempt, "0123456789") == ""
}

// Raw returns the output of one tool in a trial. fs.ErrNotExist: it was not kept.
func (s *Store) Raw(t *record.Trial, name string) (_ []byte, err error) {
	if err := checkRawName(name); err != nil {
		return nil, err
	}
	f, _, err := s.evidence(t, "raw", name, rawDir+"/"+TrialName(t)+"/"+name+".zst")
	var b []byte
	if err == nil {
		defer func() { _ = f.Close() }()
		b, err = unpack(f, maxRaw)
	}
	if err != nil {
		return nil, fmt.Errorf("raw output %s of trial %s: %w", name, TrialName(t), err)
	}
	return b, nil
}

// evidence opens a file of a trial and returns its size. It returns an error if the file is
// not the one that was stored.
func (s *Store) evidence(t *record.Trial, kind, name, path string) (_ *os.File, size int64, err error) {
	// Without O_NONBLOCK a pipe that nobody writes to would never open.
	f, err := s.root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; restore it from a copy or a bundle", path)
	}
	if err == nil {
		err = s.genuineFile(t, kind, name, f)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// digestOf is the SHA-256 of a file, as sha256sum prints it.
func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// errNoRow: the database has no row of a trial, or of one of its files.
var errNoRow = errors.New("the database has no row for it; the database may be damaged")

// fileDigest is the SHA-256 of a file of a trial; "" if it was stored without one.
func (s *Store) fileDigest(t *record.Trial, kind, name string) (string, error) {
	column := "e.sha256"
	if s.version < 2 {
		column = "NULL"
	}
	var digest sql.NullString
	// The number and attempt come from the trial's row, so that a damaged index
	// cannot return the file of another trial.
	err := s.one(context.Background(), "SELECT "+column+" FROM evidence e JOIN trials t ON t.id = e.trial WHERE t.name = ? AND +t.seq = ? AND +t.attempt = ? AND e.kind = ? AND e.name = ?",
		[]any{TrialName(t), t.Seq, t.Attempt, kind, name}, &digest)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoRow
	}
	return digest.String, err
}

// genuineFile checks that a file is the one that was stored, and rewinds it.
func (s *Store) genuineFile(t *record.Trial, kind, name string, f *os.File) error {
	want, err := s.fileDigest(t, kind, name)
	if err != nil || want == "" {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != want {
		return errors.New("the file is not the one that was stored: its SHA-256 differs; it was damaged or changed")
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
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

// RawNames lists the raw outputs that were kept of a trial, sorted. A trial without a row is
// an error.
func (s *Store) RawNames(t *record.Trial) ([]string, error) {
	var out []string
	found := false
	// The trial's row comes with and without outputs, so that a damaged index is not
	// taken for a trial that printed nothing.
	err := s.each(context.Background(), "SELECT e.name FROM trials t LEFT JOIN evidence e ON e.trial = t.id AND e.kind = 'raw' WHERE t.name = ? AND +t.seq = ? AND +t.attempt = ? ORDER BY e.name",
		[]any{TrialName(t), t.Seq, t.Attempt}, func(r *sql.Rows) error {
			found = true
			var n sql.NullString
			err := r.Scan(&n)
			if n.Valid {
				out = append(out, n.String)
			}
			return err
		})
	if err == nil && !found {
		err = errNoRow
	}
	if err != nil {
		return nil, fmt.Errorf("raw outputs of trial %s: %w", TrialName(t), err)
	}
	return out, nil
}

// writeFile writes a file to path atomically: temporary name, flush, rename, flush of the
// directory. It leaves nothing after an error. It returns the size.
func writeFile(path string, b []byte) (int64, error) {
	tmp := filepath.Join(filepath.Dir(path), tempName(filepath.Base(path)))
	_ = os.Remove(tmp) //nolint:gosec // left by a writer that died, in the folder that the user named
	if err := writeSynced(tmp, b); err != nil {
		_ = os.Remove(tmp) //nolint:gosec // in the folder that the user named
		return 0, err
	}
	if err := os.Rename(tmp, path); err != nil { //nolint:gosec // below the folder that the user named
		_ = os.Remove(tmp) //nolint:gosec // in the folder that the user named
		return 0, err
	}
	return int64(len(b)), syncDir(filepath.Dir(path))
}

func writeSynced(path string, b []byte) error {
	f, err := create644(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// create644 makes a new file. It does not block on a FIFO or follow a link.
func create644(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // results are meant to be read by others than root
}

// syncDir makes renames in dir durable (fsync(2): "Calling fsync() does not
// necessarily ensure that the entry in the directory ... has also reached
// disk").
func syncDir(dir string) error {
	f, err := os.Open(dir) //nolint:gosec // the results folder or one of its own
	if err != nil {
		return err
	}
	return errors.Join(flush(f), f.Close())
}

// flush is fsync. Some network and overlay file systems refuse it for directories with EINVAL,
// because they have nothing to flush.
func flush(f *os.File) error {
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
