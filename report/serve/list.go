package serve

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"tare/store"
)

// maxFolders bounds the index: it says when there are more.
const maxFolders = 1000

// folder is one results folder. name is its own, not from a request.
type folder struct {
	name, path string
}

// url is where its report is, on this server.
func (f folder) url() string { return "/r/" + url.PathEscape(f.name) + "/" }

// folders lists the results folders: the directory itself, or those right below
// it, by name. Links are not followed: they would lead out of it. more says that
// there are more than maxFolders.
func (s *Server) folders() (out []folder, more bool, err error) {
	for f, err := range s.entries() {
		switch {
		case err != nil:
			return nil, false, err
		case !holdsResults(f.path):
		case len(out) == maxFolders:
			return out, true, nil
		default:
			out = append(out, f)
		}
	}
	return out, false, nil
}

// entries are the folders that may hold results, by name.
func (s *Server) entries() iter.Seq2[folder, error] {
	return func(yield func(folder, error) bool) {
		abs, err := filepath.Abs(s.dir)
		if err != nil {
			yield(folder{}, err)
			return
		}
		if holdsResults(abs) {
			yield(folder{filepath.Base(abs), abs}, nil)
			return
		}
		entries, err := os.ReadDir(abs) // sorted
		if err != nil {
			yield(folder{}, fmt.Errorf("list the results: %w", err))
			return
		}
		for _, e := range entries {
			if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			if !yield(folder{e.Name(), filepath.Join(abs, e.Name())}, nil) {
				return
			}
		}
	}
}

// holdsResults: the database is there, and is a file of this folder.
func holdsResults(dir string) bool {
	st, err := os.Lstat(filepath.Join(dir, "results.db"))
	return err == nil && st.Mode().IsRegular()
}

// find returns the folder of a name that is in the directory, also of one that the
// index had no room for.
func (s *Server) find(name string) (folder, bool) {
	for f, err := range s.entries() {
		if err != nil {
			break
		}
		if f.name == name {
			return f, holdsResults(f.path)
		}
	}
	return folder{}, false
}

// states remembers how far the results of each folder are while their files stay
// as they are. Pages ask every few seconds, and to open the results of a writer that
// died, on read-only media, is to copy them.
type states struct {
	read func(dir string) (store.State, error)

	mu    sync.Mutex
	known map[string]known // by path
}

type known struct {
	stamp store.Stamp
	state store.State
}

func newStates(read func(dir string) (store.State, error)) *states {
	return &states{read: read, known: make(map[string]known)}
}

// stateTime is how long a folder may take to report its progress: every page waits for
// that.
const stateTime = 5 * time.Second

func readState(dir string) (store.State, error) {
	db, err := store.OpenReadOnly(dir)
	if err != nil {
		return store.State{}, err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), stateTime)
	defer cancel()
	return db.State(ctx)
}

// version names the state of the results: other trials, sessions or skips, and
// whether a run is on, give another.
func (s *states) version(f folder) (string, error) {
	x, err := s.state(f.path)
	if err != nil {
		return "", err
	}
	run := 0
	if store.Writer(f.path) != nil {
		run = 1
	}
	return fmt.Sprintf("%d-%d-%d-%d-%d", x.LastSession, x.LastTrial, x.Trials, x.Skips, run), nil
}

func (s *states) state(dir string) (store.State, error) {
	now := time.Now()
	stamp, err := store.StampOf(dir) // before they are read
	if err != nil {
		return store.State{}, err
	}
	s.mu.Lock()
	k, ok := s.known[dir]
	s.mu.Unlock()
	if ok && k.stamp == stamp {
		return k.state, nil
	}
	x, err := s.read(dir)
	if err != nil || !stamp.Rests(now) {
		return x, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= 2*maxFolders {
		clear(s.known) // folders come and go; those that are there are read again
	}
	s.known[dir] = known{stamp, x}
	return x, nil
}

// running says whether a version was taken while a run was on.
func running(version string) bool { return strings.HasSuffix(version, "-1") }
