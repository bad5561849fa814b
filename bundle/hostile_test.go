package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// alter changes a database behind tare's back.
func alter(t testing.TB, dir, query string) error {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, dbName))
	if err != nil {
		return err
	}
	_, err = db.Exec(query)
	return errors.Join(err, db.Close())
}

// piece is a member of a forged bundle.
type piece struct {
	h    tar.Header
	body []byte
}

// forgery is a good bundle, taken apart to be made bad.
type forgery struct {
	m      Manifest
	pieces []piece
	tail   []byte
}

// good are the pieces of a bundle of one trial.
func good(t testing.TB, changes ...string) *forgery {
	t.Helper()
	s := folder(t, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if err := alter(t, s.Dir(), c); err != nil {
			t.Fatal(err)
		}
	}
	f := &forgery{m: Manifest{Format: format, Version: Version, Tare: "1", Folder: "first", Trials: 1}}
	for _, name := range []string{"raw/000001-1/client.stdout.zst", "results.db", "series/000001-1.parquet", "study.yaml"} {
		b, err := os.ReadFile(filepath.Join(s.Dir(), name))
		if err != nil {
			t.Fatal(err)
		}
		f.add(name, b)
	}
	return f
}

// add adds a member to manifest and archive.
func (f *forgery) add(name string, b []byte) {
	h := sha256.Sum256(b)
	f.m.Members = append(f.m.Members, Member{name, int64(len(b)), hex.EncodeToString(h[:])})
	f.pieces = append(f.pieces, piece{tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(b)), Mode: 0o644}, b})
}

func (f *forgery) archive(t testing.TB) []byte {
	t.Helper()
	text, err := json.Marshal(f.m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, p := range slices.Insert(slices.Clone(f.pieces), 0, piece{tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Size: int64(len(text))}, text}) {
		if err := tw.WriteHeader(&p.h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write(p.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), f.tail...)
}

func squeeze(t testing.TB, b []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return enc.EncodeAll(b, nil)
}

func TestHostile(t *testing.T) {
	other := func(h tar.Header) func(*forgery) {
		return func(f *forgery) { f.pieces = append(f.pieces, piece{h: h}) }
	}
	named := func(name string) func(*forgery) { return func(f *forgery) { f.add(name, []byte("x")) } }
	for name, c := range map[string]struct {
		do      func(f *forgery)
		changes []string // of the database
		want    string   // "" for a good one
	}{
		"good":                           {do: func(*forgery) {}},
		"other order":                    {do: func(f *forgery) { slices.Reverse(f.pieces) }},
		"padding":                        {do: func(f *forgery) { f.tail = make([]byte, 10240) }},
		"traversal":                      {do: named("../evil"), want: "may lead out of the folder"},
		"traversal inside":               {do: named("raw/000001-1/../../../evil.zst"), want: "may lead out of the folder"},
		"absolute":                       {do: named("/etc/cron.d/evil"), want: "absolute path"},
		"backslash":                      {do: named(`..\evil`), want: "characters that no file"},
		"newline":                        {do: named("raw/000001-1/a\nb.zst"), want: "characters that no file"},
		"foreign file":                   {do: named("lock"), want: "not a file of a results folder"},
		"log of SQLite":                  {do: named("results.db-wal"), want: "not a file of a results folder"},
		"hidden":                         {do: named("raw/000001-1/.x.zst"), want: "not a file of a results folder"},
		"no trial":                       {do: named("series/x.parquet"), want: "not a file of a results folder"},
		"case":                           {do: named("raw/000001-1/CLIENT.stdout.zst"), want: "differ only in case"},
		"case beyond ASCII":              {do: func(f *forgery) { f.add("raw/000001-1/ſ.zst", nil); f.add("raw/000001-1/S.zst", nil) }, want: "differ only in case"},
		"twice in manifest":              {do: named("study.yaml"), want: "in its manifest twice"},
		"twice":                          {do: func(f *forgery) { f.pieces = append(f.pieces, f.pieces[3]) }, want: `"study.yaml" is in it twice`},
		"not in manifest":                {do: other(tar.Header{Typeflag: tar.TypeReg, Name: "series/000002-1.parquet"}), want: "not in its manifest"},
		"bad and not in it":              {do: other(tar.Header{Typeflag: tar.TypeReg, Name: "../../evil"}), want: "may lead out of the folder"},
		"not there":                      {do: func(f *forgery) { f.pieces = f.pieces[:3] }, want: "not in the bundle"},
		"symbolic link":                  {do: other(tar.Header{Typeflag: tar.TypeSymlink, Name: "series", Linkname: "/etc"}), want: "a symbolic link"},
		"hard link":                      {do: other(tar.Header{Typeflag: tar.TypeLink, Name: "study.yaml", Linkname: "/etc/passwd"}), want: "a hard link"},
		"device":                         {do: other(tar.Header{Typeflag: tar.TypeChar, Name: "study.yaml", Devmajor: 1, Devminor: 3}), want: "a device"},
		"block device":                   {do: other(tar.Header{Typeflag: tar.TypeBlock, Name: "study.yaml"}), want: "a device"},
		"pipe":                           {do: other(tar.Header{Typeflag: tar.TypeFifo, Name: "study.yaml"}), want: "a pipe"},
		"directory":                      {do: other(tar.Header{Typeflag: tar.TypeDir, Name: "series/"}), want: "a directory"},
		"global header":                  {do: other(tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"path": "x"}}), want: "only regular files"},
		"lying size":                     {do: func(f *forgery) { f.m.Members[3].Size++ }, want: "its manifest says"},
		"negative size":                  {do: func(f *forgery) { f.m.Members[3].Size = -1 }, want: "unpacks to more"},
		"huge size":                      {do: func(f *forgery) { f.m.Members[3].Size = 1 << 62 }, want: "unpacks to more"},
		"sizes that wrap":                {do: func(f *forgery) { f.m.Members[2].Size, f.m.Members[3].Size = 1<<63-1, 1<<63-1 }, want: "unpacks to more"},
		"lying checksum":                 {do: func(f *forgery) { f.pieces[3].body[0] ^= 1 }, want: `SHA-256 of "study.yaml"`},
		"no checksum":                    {do: func(f *forgery) { f.m.Members[0].SHA256 = "" }, want: "SHA-256"},
		"something behind":               {do: func(f *forgery) { f.tail = []byte("x") }, want: "follows the end"},
		"much behind":                    {do: func(f *forgery) { f.tail = make([]byte, 2<<20) }, want: "of zero bytes follow the end"},
		"other format":                   {do: func(f *forgery) { f.m.Format = "zip" }, want: `says "zip"`},
		"version 0":                      {do: func(f *forgery) { f.m.Version = 0 }, want: "format 0"},
		"folder":                         {do: func(f *forgery) { f.m.Folder = "../x" }, want: "the name of a folder"},
		"folder up":                      {do: func(f *forgery) { f.m.Folder = ".." }, want: "the name of a folder"},
		"no database":                    {do: func(f *forgery) { f.m.Members, f.pieces = f.m.Members[2:], f.pieces[2:] }, want: "no results.db"},
		"other trials":                   {do: func(f *forgery) { f.m.Trials = 2 }, want: "says 2 trials"},
		"a list of nothing":              {do: func(f *forgery) { f.m.Missing = make([]string, maxCommas+2) }, want: "more files than a bundle may have"},
		"missing that drives a terminal": {do: func(f *forgery) { f.m.Missing = []string{"raw/000002-1/\x1b[2J\ntare: all is well.zst"} }, want: "characters that no file"},
		"missing that turns the writing": {do: func(f *forgery) { f.m.Missing = []string{"raw/000002-1/\u202ecod.zst"} }, want: "characters that no file"},
		"missing outside":                {do: func(f *forgery) { f.m.Missing = []string{"../x"} }, want: "may lead out of the folder"},
		"missing twice":                  {do: func(f *forgery) { f.m.Missing = []string{"series/000002-1.parquet", "series/000002-1.parquet"} }, want: "or lists it twice"},
		"missing and there":              {do: func(f *forgery) { f.m.Missing = []string{"study.yaml"} }, want: "or lists it twice"},
		"missing":                        {do: func(f *forgery) { f.m.Missing = []string{"series/000002-1.parquet"} }},
		"a long name":                    {do: named(strings.Repeat("x", 1<<19)), want: "not a file of a results folder"},
		"a long version":                 {do: func(f *forgery) { f.m.Tare = strings.Repeat("x", 1000) }, want: "a version of tare with 1000 bytes"},
		"no SQLite": {do: func(f *forgery) {
			f.m.Members, f.pieces = f.m.Members[2:], f.pieces[2:]
			f.add(dbName, []byte("hello"))
		}, want: "its results.db"},
		"trigger":            {changes: []string{"CREATE TRIGGER x AFTER INSERT ON trials BEGIN DELETE FROM trials; END"}, want: "the trigger x, which tare did not create"},
		"view":               {changes: []string{"CREATE VIEW x AS SELECT 1"}, want: "the view x"},
		"table":              {changes: []string{"CREATE TABLE x (a)"}, want: "the table x"},
		"virtual table":      {changes: []string{"CREATE VIRTUAL TABLE x USING fts5(a)"}, want: "which tare did not create"},
		"a view for a table": {changes: []string{"DROP TABLE skips", "CREATE VIEW skips AS SELECT 1 AS ord, 'a' AS cell, 'b' AS reason"}, want: "the view skips"},
		"another view":       {changes: []string{"DROP VIEW cells", "CREATE VIEW cells AS SELECT load_extension('x') AS cell"}, want: "its view cells differs"},
		"index on code":      {changes: []string{"CREATE INDEX x ON trials (abs(seq))"}, want: "the index x"},
		"a table less":       {changes: []string{"DROP TABLE facts"}, want: "lacks the"},
		"of another program": {changes: []string{"PRAGMA application_id = 5"}, want: "not one of tare"},
		"a trial's name":     {changes: []string{"UPDATE trials SET name = '../../pwn'"}, want: `a trial with the name "../../pwn"`},
		"an output's name":   {changes: []string{"UPDATE evidence SET name = '../../pwn' WHERE kind = 'raw'"}, want: "must be a file name"},
		"a file outside":     {changes: []string{"UPDATE evidence SET file = '../../pwn' WHERE kind = 'series'"}, want: "does not belong to its trial"},
		"damaged pages":      {changes: []string{"PRAGMA writable_schema = 1; UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'facts'"}, want: "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			f := good(t, c.changes...)
			if c.do != nil {
				c.do(f)
			}
			judge(t, squeeze(t, f.archive(t)), DefaultLimits(), c.want)
		})
	}
}

// judge checks and unpacks a bundle and wants to be refused. Nothing may be
// outside of the folder that it unpacks to.
func judge(t *testing.T, b []byte, l Limits, want string) {
	t.Helper()
	dir := t.TempDir()
	file, in := filepath.Join(dir, "x"+Suffix), filepath.Join(dir, "a", "b", "in")
	if err := errors.Join(os.WriteFile(file, b, 0o600), os.MkdirAll(in, 0o700)); err != nil {
		t.Fatal(err)
	}
	_, err1 := Check(t.Context(), file, l)
	_, err2 := Unpack(t.Context(), file, in, l)
	for _, err := range []error{err1, err2} {
		switch {
		case err != nil && len(err.Error()) > 2000:
			t.Errorf("an error of %d bytes", len(err.Error()))
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want)):
			t.Errorf("%v\nwant %q", err, want)
		}
	}
	if err := os.RemoveAll(in); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		left = append(left, rel)
		return err
	})
	if want := []string{".", "a", "a/b", "x" + Suffix}; err != nil || !slices.Equal(left, want) {
		t.Errorf("beside the folder: %q, %v", left, err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "tare-") }) {
		t.Errorf("left in TMPDIR: %v, %v", left, err)
	}
}

// TestHostileStreams: what is wrong below the archive.
func TestHostileStreams(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	plain := good(t).archive(t)
	whole := squeeze(t, plain)
	bomb := good(t)
	bomb.add("raw/000001-1/zeros.zst", make([]byte, 80<<20))
	bombed := squeeze(t, bomb.archive(t))
	var endless bytes.Buffer // of empty members that a manifest cannot list
	tw := tar.NewWriter(&endless)
	for range 1000 {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: manifestName, PAXRecords: map[string]string{"TARE.x": strings.Repeat("x", 1<<10)}}); err != nil {
			t.Fatal(err)
		}
	}
	wide, err := zstd.NewWriter(nil, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b    []byte
		l    Limits
		want string
	}{
		"empty":         {nil, DefaultLimits(), "refused"},
		"no zstd":       {[]byte("hello, world"), DefaultLimits(), "damaged"},
		"no tar":        {squeeze(t, []byte("hello, world")), DefaultLimits(), "refused"},
		"no members":    {squeeze(t, make([]byte, 1024)), DefaultLimits(), "it is empty"},
		"no bundle":     {squeeze(t, plain[len(plain)-4096:]), DefaultLimits(), "refused"},
		"cut":           {whole[:len(whole)/2], DefaultLimits(), "there is data after its end, or it is incomplete; copy it again"},
		"cut at an end": {squeeze(t, plain[:len(plain)-2048]), DefaultLimits(), "refused"},
		"a bit":         {flipped(whole, len(whole)/2), DefaultLimits(), "refused"},
		"ratio":         {bombed, DefaultLimits(), "unpacks to more"},
		"total":         {whole, Limits{Total: 10 << 10}, "unpacks to more"},
		"endless":       {squeeze(t, endless.Bytes()), Limits{Total: 100 << 10}, "refused"},
		"much memory":   {append(wide.EncodeAll(plain, nil)[:4], window(wide.EncodeAll(plain, nil)[4:])...), DefaultLimits(), "refused"},
	} {
		t.Run(name, func(t *testing.T) { judge(t, c.b, c.l, c.want) })
	}
	t.Run("limit lifts the ratio", func(t *testing.T) { judge(t, bombed, Limits{Total: 1 << 30}, "") })
	t.Run("lies about its size", func(t *testing.T) { // more comes than the manifest says
		_, err := scan(&bounded{r: bytes.NewReader(plain), left: 20 << 10, allowed: 1 << 30}, nothing{})
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "unpacks to more") {
			t.Error(err)
		}
	})
}

// window raises the window of a frame header to 2 GiB, where it has one.
func window(b []byte) []byte {
	b = slices.Clone(b)
	if b[0]&0x20 == 0 {
		b[1] = 21 << 3
	} else {
		b[0] &^= 0x20 // then the next byte is the window
		b = slices.Insert(b, 1, 21<<3)
	}
	return b
}

func flipped(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 0x10
	return b
}

func TestNewerFormat(t *testing.T) {
	f := good(t)
	f.m.Version, f.m.Tare = Version+1, "9.0"
	file := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(file, squeeze(t, f.archive(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), file, DefaultLimits()); !errors.Is(err, ErrNewer) || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "9.0") {
		t.Error(err)
	}
}

func TestNoPlainFile(t *testing.T) {
	if _, err := Check(t.Context(), "/dev/zero", DefaultLimits()); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
}

// nothing is a sink that keeps nothing.
type nothing struct{}

func (nothing) begin(*Manifest) error { return nil }
func (nothing) take(_ Member, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// FuzzArchive reads archives below the compression, where the structure is.
func FuzzArchive(f *testing.F) {
	g := good(f)
	g.m.Members, g.pieces = g.m.Members[:1], g.pieces[:1] // small ones fuzz faster
	g.add(dbName, []byte("SQLite format 3\x00"))
	f.Add(g.archive(f))
	g.pieces = append(g.pieces, piece{h: tar.Header{Typeflag: tar.TypeSymlink, Name: "study.yaml", Linkname: "/etc/passwd"}})
	f.Add(g.archive(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		keep := make(keeper)
		m, err := scan(&bounded{r: bytes.NewReader(b), left: 1 << 20, allowed: 1 << 20}, keep)
		if err != nil {
			return
		}
		if len(keep) != len(m.Members) {
			t.Errorf("%d members were taken of %d", len(keep), len(m.Members))
		}
		for _, x := range m.Members {
			if h := sha256.Sum256(keep[x.Name]); hex.EncodeToString(h[:]) != x.SHA256 || !filepath.IsLocal(x.Name) {
				t.Errorf("%q was accepted", x.Name)
			}
		}
	})
}

// FuzzBundle reads whole files.
func FuzzBundle(f *testing.F) {
	g := good(f)
	f.Add(squeeze(f, g.archive(f)))
	f.Add(squeeze(f, []byte("hello")))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decompress(bytes.NewReader(b), 1<<20, nothing{})
		if err == nil && m.Bytes() > 1<<20 {
			t.Errorf("%d bytes were accepted", m.Bytes())
		}
	})
}

// keeper keeps what an archive holds.
type keeper map[string][]byte

func (keeper) begin(*Manifest) error { return nil }
func (k keeper) take(x Member, r io.Reader) (err error) {
	k[x.Name], err = io.ReadAll(r)
	return err
}
