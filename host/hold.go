package host

import (
	"context"
	"errors"
	"time"

	"tare/host/cgroup"
	"tare/host/state"
	"tare/site"
	"tare/site/claim"
)

// Hold takes the host for what. If another tare has it, Hold waits, or returns a
// *claim.HeldError.
func (s *Site) Hold(ctx context.Context, what string, wait bool) (*state.Lock, error) {
	if err := s.Dirs.Own(); err != nil {
		return nil, err
	}
	told := 0 // the process that the user was told about
	for {
		lock, err := state.Hold(s.Dirs.Run, what)
		var held *claim.HeldError
		if !wait || !errors.As(err, &held) {
			return lock, err
		}
		if told != held.Holder.Pid {
			told = held.Holder.Pid
			s.Say("%s", held.Waiting())
		}
		select {
		case <-ctx.Done():
			return nil, site.ErrInterrupted
		case <-time.After(100 * time.Millisecond): // as often as tests ask, so that none starves
		}
	}
}

// sweep removes what killed runs left behind, and names what it cannot remove. The caller
// holds the host, so nothing of it is in use.
func (s *Site) sweep(ctx context.Context, whose string) {
	found, err := s.Clean(ctx, false)
	for _, l := range found {
		if l.Err != nil {
			s.Say("%s", l.Why(false))
			continue
		}
		s.Say("removed %s %s, which %s left behind", l.Kind, l.Name, whose)
	}
	if err != nil {
		s.Say("%v", err)
	}
}

// SweepIfEnded removes what is left after a verb that started sandboxes was interrupted.
func (s *Site) SweepIfEnded(ctx context.Context) {
	if ctx.Err() != nil {
		s.sweep(context.WithoutCancel(ctx), "this run")
	}
}

// Clean removes what killed runs left, or lists it if dry: all of it as root, else this
// user's processes, containers and directories. The caller holds the host.
func (s *Site) Clean(ctx context.Context, dry bool) ([]claim.Leftover, error) {
	if root() {
		return state.Clean(ctx, dry)
	}
	return state.CleanOwn(ctx, s.Dirs.Run, s.Dirs.Data, dry)
}

// Groups prepares the place of the sandboxes' control groups. It returns where that is, and a
// function that restores it. The caller holds the host, and has swept it. After an error
// sandboxes may still start; if not, their checks say so.
func (s *Site) Groups(ctx context.Context) (where string, release func() error, err error) {
	p, err := cgroup.Hold(ctx)
	if err != nil {
		return "", func() error { return nil }, err
	}
	return p.Where(), func() error {
		err := p.Release()
		if err != nil {
			s.Say("%v", err)
		}
		return err
	}, nil
}
