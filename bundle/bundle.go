// Package bundle packs a results folder into one file, to send to someone else, and reads
// such files. It does not trust their author.
//
// A bundle is a tar archive, compressed with zstd. Its first member is
// manifest.json, which lists all others with their sizes and SHA-256:
//
//	manifest.json
//	raw/TRIAL/NAME.zst
//	results.db
//	series/TRIAL.parquet
//	study.yaml
//
// Writing: 1. Write takes a snapshot of the database, also during a run; 2. it lists and
// hashes the files of the trials; 3. it writes manifest and members without time, owner or
// mode, so that equal folders give equal bytes; a file that changes meanwhile is an error.
// Reading: 4. the manifest comes first and is checked: names against a list of the files of
// a results folder, total size against Limits; 5. each member must be in the manifest once,
// a regular file, with its size and hash; 6. Unpack writes the members below one folder
// through os.Root, Check discards them; 7. the database must have tare's schema, nothing
// more, and intact pages.
//
// A bundle does not prove who made it: whoever changes a member can change the manifest. For
// that, send the SHA-256 of the whole file by another way.
package bundle

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Version of the format. A reader accepts this one and every earlier one.
const Version = 1

const (
	format       = "tare bundle"
	manifestName = "manifest.json"
	dbName       = "results.db"
	studyName    = "study.yaml"
)

// Suffix ends the names of bundles.
const Suffix = ".tar.zst"

// maxWindow is the memory that decompression may take, in bytes: what zstd needs
// up to level 19 (RFC 8878, section 3.1.1.1.2 recommends 8 MiB).
const maxWindow = 8 << 20

// Limits bound the size of an unpacked bundle.
type Limits struct {
	Total int64 // bytes of the archive when decompressed
	Ratio int64 // of that to the file, above 64 MiB; 0: any
}

// DefaultLimits are far above every study: a thousand trials with series come to
// about 1 GiB, compressed 4 to 20 times.
func DefaultLimits() Limits { return Limits{Total: 16 << 30, Ratio: 200} }

// free is the size that a ratio does not bound, because small databases compress well.
const free = 64 << 20

// allowed returns how many bytes a file of a size may decompress to.
func (l Limits) allowed(size int64) int64 {
	if l.Ratio > 0 && size < l.Total/l.Ratio {
		return min(l.Total, max(free, size*l.Ratio))
	}
	return l.Total
}

// ErrRefused means that the bundle is at fault, not the machine that reads it.
var ErrRefused = errors.New("the bundle is refused")

// ErrNewer means that a later tare made the bundle, which may be valid.
var ErrNewer = errors.New("made by a later tare")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// Is reports whether a path is a file that looks like a bundle: a regular file that begins
// as zstd does (RFC 8878, section 3.1.1).
func Is(path string) bool {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path) //nolint:gosec // the user named it
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && magic == [4]byte{0x28, 0xb5, 0x2f, 0xfd}
}

// hidden reports whether a character is invisible: a control character, or one that
// changes the direction of writing.
func hidden(r rune) bool { return !unicode.IsGraphic(r) }

// checkName returns an error for an invalid name of a member.
func checkName(name string) error {
	switch {
	case !utf8.ValidString(name) || strings.ContainsRune(name, '\\') || strings.ContainsFunc(name, hidden):
		return refuse("the name %.300q has characters that no file of a results folder has", name)
	case strings.HasPrefix(name, "/"):
		return refuse("the name %.300q is an absolute path", name)
	}
	parts := strings.Split(name, "/")
	for _, p := range parts {
		if p == ".." || p == "." || p == "" {
			return refuse("the name %.300q may lead out of the folder", name)
		}
	}
	switch {
	case name == dbName, name == studyName:
		return nil
	case len(parts) == 2 && parts[0] == "series":
		if trial, ok := strings.CutSuffix(parts[1], ".parquet"); ok && isTrial(trial) {
			return nil
		}
	case len(parts) == 3 && parts[0] == "raw" && isTrial(parts[1]):
		if base, ok := strings.CutSuffix(parts[2], ".zst"); ok && base != "" && base[0] != '.' && len(base) <= 200 {
			return nil
		}
	}
	return refuse("%.300q is not a file of a results folder", name)
}

// isTrial reports whether s has the form of a trial's name: 000012-1.
func isTrial(s string) bool {
	seq, attempt, ok := strings.Cut(s, "-")
	digits := func(s string, least int) bool {
		return len(s) >= least && len(s) <= 18 && strings.Trim(s, "0123456789") == ""
	}
	return ok && digits(seq, 6) && digits(attempt, 1)
}

// checkFolder returns an error for an invalid name of a results folder.
func checkFolder(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 200 || !utf8.ValidString(name) ||
		strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, hidden) {
		return refuse("%.300q cannot be the name of a folder", name)
	}
	return nil
}

// folded returns the same text for names that a file system may consider equal.
func folded(name string) string { return strings.ToLower(strings.ToUpper(name)) }
