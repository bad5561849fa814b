package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tare/bundle"
)

// takesBundles lets a verb be given bundles where it takes results folders: they
// are unpacked to a private place, which the verb gets in their stead, and which
// is removed when it ends, on signals too.
func (a *app) takesBundles(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.ContainsFunc(args, bundle.Is) {
			return run(cmd, args)
		}
		return a.stoppable(cmd.Context(), func(ctx context.Context) error {
			out := make([]string, len(args))
			for i, arg := range args {
				out[i] = arg
				if !bundle.Is(arg) {
					continue
				}
				dir, remove, err := a.unpacked(ctx, arg, bundle.DefaultLimits())
				defer remove()
				if err != nil {
					return refused(err)
				}
				out[i] = dir
			}
			cmd.SetContext(ctx)
			return run(cmd, out)
		})
	}
	return cmd
}

// unpacked unpacks a bundle to a private place. remove is never nil. The folder
// has the name that it had, which reports show.
func (a *app) unpacked(ctx context.Context, file string, l bundle.Limits) (dir string, remove func(), err error) {
	tmp, err := os.MkdirTemp("", unpackedIn)
	if err != nil {
		return "", func() {}, err
	}
	a.private.add(tmp)
	remove = func() { _ = os.RemoveAll(tmp) }
	inside := filepath.Join(tmp, "unpacking")
	if err := os.Mkdir(inside, 0o700); err != nil {
		return "", remove, err
	}
	m, err := bundle.Unpack(ctx, file, inside, l)
	if err != nil {
		return "", remove, err
	}
	dir = filepath.Join(tmp, m.Folder)
	if dir != inside {
		err = os.Rename(inside, dir)
	}
	a.private.name(dir, file)
	return dir, remove, err
}

// unpackedIn begins the names of the places that bundles are unpacked to.
const unpackedIn = "tare-bundle-"

// unpackedBundle reports whether a results folder is of a bundle.
func unpackedBundle(dir string) bool {
	return strings.HasPrefix(filepath.Base(filepath.Dir(dir)), unpackedIn)
}

// given is what the user named a folder by: the bundle that it was unpacked from.
func (a *app) given(dir string) string {
	if file, ok := a.private.given[dir]; ok {
		return file
	}
	return dir
}

// private are places that end with the program.
type private struct {
	given map[string]string // folder to bundle

	mu   sync.Mutex
	dirs []string
}

func (p *private) add(dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirs = append(p.dirs, dir)
}

func (p *private) name(dir, file string) {
	if p.given == nil {
		p.given = make(map[string]string)
	}
	p.given[dir] = file
}

// removeAll is best effort: there is nobody left to tell.
func (p *private) removeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, dir := range p.dirs {
		_ = os.RemoveAll(dir)
	}
}

// patience is how long a verb may take to end after a signal.
const patience = 3 * time.Second

// stoppable runs what has something to remove at its end. A signal ends its
// context; if that does not end it within patience, or at the second signal, the
// private places are removed here and the signal does what it does by default.
// A closed pipe, which would kill the program, is an error of writing meanwhile.
func (a *app) stoppable(parent context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-done:
			return
		case s := <-signals:
			cancel()
			select {
			case <-done:
			case <-signals:
				a.die(s)
			case <-time.After(patience):
				a.die(s)
			}
		}
	}()
	err := f(ctx)
	close(done)
	<-ended
	switch {
	case err != nil && errors.Is(err, syscall.EPIPE):
		return coded(exitFailed, "") // as silent as the signal
	case err != nil && ctx.Err() != nil && parent.Err() == nil:
		var c *codedError
		if !errors.As(err, &c) || c.code != exitInterrupted {
			return coded(exitInterrupted, "interrupted")
		}
	}
	return err
}

// die removes what is private and ends the program by a signal.
func (a *app) die(s os.Signal) {
	a.private.removeAll()
	signal.Reset(s)
	if n, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), n)
		time.Sleep(time.Second) // until it has come
	}
}
