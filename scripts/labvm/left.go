package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// host is the state that shows whether tare left something.
type host struct {
	left        []string // leftovers of tare
	controllers string   // that the root group passes on to its children
}

// lookScript prints a line for each leftover of tare, and for each control group that belongs
// to no unit of systemd. Lock files may stay: a process that waits for a lock has its file
// open.
//
//go:embed guest/look.sh
var lookScript string

func (l *lab) look(ctx context.Context) (host, error) {
	out, err := l.sh(ctx, lookScript)
	if err != nil {
		return host{}, err
	}
	var h host
	if out = strings.TrimSpace(out); out != "" {
		h.left = strings.Split(out, "\n")
	}
	controllers, err := l.sh(ctx, "cat /sys/fs/cgroup/cgroup.subtree_control")
	words := strings.Fields(controllers)
	slices.Sort(words)
	h.controllers = strings.Join(words, " ")
	return h, err
}

// settled bounds how long systemd may take to clean up after a unit that has ended.
const settled = 15 * time.Second

// nothingLeft says what tare left in the machine, including controllers that it enabled.
func (l *lab) nothingLeft(ctx context.Context) error {
	for deadline := time.Now().Add(settled); ; time.Sleep(time.Second) {
		now, err := l.look(ctx)
		switch {
		case err != nil:
			return err
		case len(now.left) == 0 && now.controllers == l.fresh.controllers:
			return nil
		case time.Now().Before(deadline):
			continue
		case len(now.left) > 0:
			return fmt.Errorf("left: %s", strings.Join(now.left, "; "))
		}
		return fmt.Errorf("the root group has the controllers %q enabled; before tare ran it had %q", now.controllers, l.fresh.controllers)
	}
}

//go:embed guest/kill.yaml
var killStudy string

// killScript runs a study, kills it once one of its sandboxes has a process, and prints the
// study's process id.
//
//go:embed guest/kill.sh
var killScript string

// kill kills a study in each kind of sandbox. It must see what is left, and clean must remove
// all of it.
func kill(ctx context.Context, l *lab) error {
	kinds := []string{"process", "runc", "crun", "runsc-systrap"}
	if !l.full {
		kinds = []string{"runsc-systrap"}
	}
	for _, k := range kinds {
		if err := l.killOne(ctx, k); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	return nil
}

func (l *lab) killOne(ctx context.Context, kind string) error {
	if err := l.write(ctx, "/root/kill.yaml", fmt.Sprintf(killStudy, kind)); err != nil {
		return err
	}
	if _, err := l.sh(ctx, fmt.Sprintf(killScript, kind)); err != nil {
		return fmt.Errorf("no study to kill: %w", err)
	}
	h, err := l.look(ctx)
	if err != nil {
		return err
	}
	if len(h.left) == 0 {
		return errors.New("a killed run left nothing: it was killed at the wrong moment")
	}
	if _, err := l.tare(ctx, "clean"); err != nil {
		return err
	}
	return l.nothingLeft(ctx)
}

//go:embed guest/ordinary.yaml
var ordinaryStudy string

// ordinary tests a user without any rights, in a login session: a study on fake, sandboxes in a
// user namespace, and clean.
func ordinary(ctx context.Context, l *lab) error {
	if err := l.write(ctx, "/home/lab/ordinary.yaml", ordinaryStudy); err != nil {
		return err
	}
	const as = "systemd-run --quiet --wait --pipe --collect --uid=lab --property=PAMName=lab --working-directory=/home/lab -- "
	if _, err := l.sh(ctx, as+`sh -euxc '
test "$(id -u)" = 1000 && test -d "$XDG_RUNTIME_DIR"
tare run ordinary.yaml --results results
tare report results >/dev/null
tare doctor
tare weigh --in runc --budget 3s -- true
tare clean'`); err != nil {
		return err
	}
	// The user's cache and folders stay, but no file in the folders and no folder of a run.
	out, err := l.sh(ctx, `find /tmp /run /dev/shm /var/tmp /home/lab -user lab -path '*/tare*/*' ! -path '*/cache*' ! -path '*/.cache/*' \( ! -type d -o -name 't[0-9a-z]*' \) ! -name '*lock'`)
	if err != nil {
		return err
	}
	if out != "" {
		return fmt.Errorf("an ordinary user's runs left: %s", strings.Join(strings.Fields(out), " "))
	}
	return l.nothingLeft(ctx)
}
