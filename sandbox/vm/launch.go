package vm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/sandbox"
)

// offWithin bounds the guest's own switching off; then QEMU is killed.
const offWithin = 10 * time.Second

// Launch implements sandbox.Launcher: boot, run, switch off. Created is when the machine
// is ready for commands, Started when the agent was told the command. Both modes do the
// same; Whole reports no steps.
func (k *Hypervisor) Launch(ctx context.Context, spec sandbox.Spec, c sandbox.Command, mode sandbox.LaunchMode) (l sandbox.Launch, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s %s: %w", k.Name(), spec.Name, err)
		}
	}()
	if len(c.Args) == 0 {
		return l, errors.New("no command given")
	}
	l.Begun = time.Now()
	i, err := k.start(ctx, spec)
	if err != nil {
		return l, err
	}
	begun := i.began // later, where a snapshot had to be made first
	l.Begun = begun
	l.Facts = i.Facts()
	defer func() { err = errors.Join(err, i.Stop(context.WithoutCancel(ctx))) }()
	created := time.Since(begun)
	first := &sandbox.FirstWrite{To: c.Stdout}
	c.Stdout = first
	i.machine.sent.note()
	l.Exit, err = i.Exec(ctx, c)
	exited := time.Since(begun)
	if mode == sandbox.Phased {
		l.Created = created
		if told := i.machine.sent.noted.Load(); told != nil {
			l.Started = told.Sub(begun)
		}
	}
	l.Instruction = first.Since(begun)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return l, err
	}
	l.Exited = exited
	off, cancel := context.WithTimeout(ctx, offWithin)
	defer cancel()
	if err := i.machine.off(off); err != nil {
		return l, i.explain(err)
	}
	if err := i.Stop(ctx); err != nil {
		return l, err
	}
	l.Deleted = time.Since(begun)
	return l, nil
}
