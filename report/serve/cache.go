package serve

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// cache holds what was built of the latest state of each folder, one value a
// folder. One is built at a time, of all folders: forty studies must not take the
// processors from the one that is running.
type cache[T any] struct {
	version func(folder) (string, error)
	build   func(ctx context.Context, f folder, version string) (*T, error)
	keep    int           // values that stay in memory; those that were asked for lately
	stop    chan struct{} // closed when the server ends
	turn    chan struct{} // one may build
	flying  sync.WaitGroup

	mu      sync.Mutex
	folders map[string]*slot[T] // by path
}

// slot is a folder's place, guarded by cache.mu. One of value and err is there
// once something was built.
type slot[T any] struct {
	flight  chan struct{} // closed when the build under way has ended; nil: there is none
	value   *T
	version string // that value and err are of
	err     error
	built   time.Time
	used    time.Time
}

func newCache[T any](keep int, version func(folder) (string, error), build func(context.Context, folder, string) (*T, error)) *cache[T] {
	return &cache[T]{version: version, build: build, keep: keep, stop: make(chan struct{}), turn: make(chan struct{}, 1), folders: make(map[string]*slot[T])}
}

// get returns the value of a folder's present state. The build goes on when ctx
// ends: whoever asks next finds it. When ctx has ended nothing is begun.
func (c *cache[T]) get(ctx context.Context, f folder) (*T, error) {
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		version, err := c.version(f)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		s := c.folders[f.path]
		if s == nil {
			s = &slot[T]{}
			c.folders[f.path] = s
		}
		known := s.value != nil || s.err != nil
		// A build that began after we came is new enough, though a run goes on.
		if known && (s.version == version || try == 2) {
			s.used = time.Now()
			value, err := s.value, s.err
			c.mu.Unlock()
			return value, err
		}
		if s.flight == nil {
			s.flight = make(chan struct{})
			c.flying.Go(func() { c.fly(f, s) })
		}
		flight := s.flight
		c.mu.Unlock()
		select {
		case <-flight:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.stop:
			return nil, errStopped
		}
	}
}

var errStopped = errors.New("the server is ending")

// fly builds a folder's value and puts it into its slot.
func (c *cache[T]) fly(f folder, s *slot[T]) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-c.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	var value *T
	var version string
	var err error
	select {
	case c.turn <- struct{}{}:
		// Before the trials are read: what comes meanwhile gives another version.
		if version, err = c.version(f); err == nil {
			value, err = c.build(ctx, f, version)
		}
		<-c.turn
	case <-c.stop:
		err = errStopped
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.value, s.version, s.err = value, version, err
	s.built, s.used = time.Now(), time.Now()
	close(s.flight)
	s.flight = nil
	c.makeRoom()
}

// close ends the builds under way and waits for them.
func (c *cache[T]) close() {
	close(c.stop)
	c.flying.Wait()
}

// last is what is known of a folder without building, perhaps of an earlier
// state, and when it was built; nil and the zero time when there is nothing.
func (c *cache[T]) last(f folder) (value *T, built time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.folders[f.path]; s != nil {
		return s.value, s.built, s.err
	}
	return nil, time.Time{}, nil
}

// makeRoom drops those that were not asked for lately.
func (c *cache[T]) makeRoom() {
	var idle []string
	for path, s := range c.folders {
		if s.flight == nil {
			idle = append(idle, path)
		}
	}
	slices.SortFunc(idle, func(a, b string) int { return c.folders[b].used.Compare(c.folders[a].used) })
	for _, path := range idle[min(len(idle), c.keep):] {
		delete(c.folders, path)
	}
}
