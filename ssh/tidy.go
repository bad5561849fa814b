package ssh

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// kept is how many copies of tare stay on a machine: those that were used last.
const kept = 5

var copies = regexp.MustCompile(`^tare-[0-9a-f]{64}(\.[0-9]+)?$`) // with a number: one that did not arrive

// Tidy removes the oldest copies of tare beside this one, if this is one.
func Tidy(self string) {
	dir := filepath.Dir(self)
	if !copies.MatchString(filepath.Base(self)) {
		return
	}
	_ = os.Chtimes(self, time.Now(), time.Now())
	entries, _ := os.ReadDir(dir) // what cannot be read now is tidied by the next one
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !copies.MatchString(e.Name()) })
	used := func(e os.DirEntry) time.Time {
		if i, err := e.Info(); err == nil {
			return i.ModTime()
		}
		return time.Time{}
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return used(b).Compare(used(a)) })
	for _, e := range entries[min(kept, len(entries)):] {
		_ = os.Remove(filepath.Join(dir, e.Name()))
	}
}
