package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/sandbox"
	"tare/workload"
)

// idle launches Count sandboxes one after another, with the role's command as
// the whole lifecycle of each, and notes at each step and after all are gone the host's available memory and, of
// sandboxes that write to their root, the space of the files. They have no agent in them and, being Phased, no runtime
// that waits beside them: as a cluster's containers.
func (t *trial) idle(ctx context.Context, ep *endpoint, stdout, stderr *output) (err error) {
	l, err := ep.launcher()
	if err != nil {
		return err
	}
	enc := json.NewEncoder(stdout)
	note := func(count int, took time.Duration) error {
		line := workload.IdleLine{Count: count, Start: took.Seconds()}
		if line.Available, err = t.settled(ctx, count == 0); err == nil {
			line.Disk, err = t.used(ep)
		}
		if err != nil {
			return err
		}
		return enc.Encode(line)
	}
	if err := note(0, 0); err != nil {
		return err
	}
	var idlers []*launched
	defer func() { err = errors.Join(err, killAll(idlers)) }()
	for i := range ep.role.Count {
		spec, err := t.prepareNth(ctx, ep, i, "idle")
		if err != nil {
			return err
		}
		line := "x"
		if ep.role.Probe != nil {
			line = ""
		}
		began := time.Now()
		idlers = append(idlers, startLaunch(ctx, l, ep, spec, sandbox.Phased, line, stderr))
		var at time.Time
		if at, err = idlers[i].up(ctx, t); err == nil {
			if err = note(i+1, at.Sub(began)); err == nil {
				err = stillUp(ctx, idlers)
			}
		}
		if err != nil {
			return ofMany(err, i, ep.role.Count)
		}
	}
	if err := killAll(idlers); err != nil {
		return err
	}
	t.note(ep, idlers[0].got.Facts)
	return note(0, 0)
}

// used is the space of the files of a role's sandboxes; nil: they have none, or the place cannot tell.
func (t *trial) used(ep *endpoint) (*int64, error) {
	f, ok := t.maker.Place.(Filer)
	if !ok || !t.maker.writes(&ep.role, ep.kind.Name(), ep.want.Options) {
		return nil, nil //nolint:nilnil // there is nothing to say
	}
	n, err := f.Used(t.name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the disk space of the sandboxes' files: %w", err)
	}
	return &n, nil
}

// ofMany says which sandbox a failure is of.
func ofMany(err error, i, count int) error {
	var f *failure
	if !errors.As(err, &f) {
		return fmt.Errorf("sandbox %d of %d: %w", i+1, count, err)
	}
	told := *f
	told.err = fmt.Errorf("sandbox %d of %d: %w", i+1, count, f.err)
	return &told
}

// stillUp is the failure of the first sandbox that has ended meanwhile.
func stillUp(ctx context.Context, idlers []*launched) error {
	for _, v := range idlers {
		select {
		case <-v.ended:
			return v.endedEarly(ctx)
		default:
		}
	}
	return nil
}

// killAll ends the sandboxes, the last one first. It is idempotent.
func killAll(idlers []*launched) error {
	var errs []error
	for _, idler := range slices.Backward(idlers) {
		errs = append(errs, idler.kill())
	}
	return errors.Join(errs...)
}

const (
	// idleStep is how long a step of an idle role rests before memory is read.
	idleStep = 100 * time.Millisecond
	// What a large sandbox had comes back for seconds after its end (gVisor's 60
	// MB of eight in about four), so that the next trial would see it rise. With
	// no sandbox running, memory is read when it has kept within calmBytes for
	// calmSteps, and at the latest after calmMost.
	calmBytes = 512 << 10
	calmSteps = 5
	calmMost  = 6 * time.Second
)

// settled returns the host's available memory after a step's rest, or when it
// has come to rest by itself.
func (t *trial) settled(ctx context.Context, calm bool) (int64, error) {
	var last []int64
	for begun := time.Now(); ; {
		if err := sleep(ctx, idleStep); err != nil {
			return 0, withCause(ctx, err)
		}
		now, err := t.maker.Place.Available(ctx, t.node)
		if err != nil {
			return 0, fmt.Errorf("cannot read the available memory: %w", err)
		}
		last = append(last, now)
		last = last[max(0, len(last)-calmSteps):]
		rested := len(last) == calmSteps && slices.Max(last)-slices.Min(last) <= calmBytes
		if !calm || rested || time.Since(begun) > calmMost {
			return now, nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
