package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

//go:embed guest/container.sh
var containerScript string

// contained runs a script in a container with its own control group namespace. The container's
// group must be as it was: of type domain, with no group in it and nothing passed on.
func (l *lab) contained(ctx context.Context, script string) error {
	for file, text := range map[string]string{"/root/container.sh": containerScript, "/root/inside.sh": script + "\n"} {
		if err := l.write(ctx, file, text); err != nil {
			return err
		}
	}
	_, err := l.sh(ctx, "systemd-run --quiet --wait --pipe --collect -p Delegate=yes -- sh -eux /root/container.sh /root/inside.sh")
	return err
}

// container runs the small study in a container.
func container(ctx context.Context, l *lab) error {
	sandboxes, err := l.writeSmall(ctx)
	if err != nil {
		return err
	}
	script := "tare run /root/small.yaml --results /root/container"
	if l.full {
		script = "tare doctor\n" + script
	}
	if err := l.contained(ctx, script); err != nil {
		return err
	}
	return l.done(ctx, "/root/container", sandboxes)
}

// firstInContainer runs the first study in a container.
func firstInContainer(ctx context.Context, l *lab) error {
	if err := l.contained(ctx, strings.Join(append([]string{"tare"}, l.firstStudy("/root/contained")...), " ")); err != nil {
		return err
	}
	return l.done(ctx, "/root/contained", compared())
}

// protected checks what doctor advises in a unit whose control groups are read-only.
func protected(ctx context.Context, l *lab) error {
	out, err := l.sh(ctx, "systemd-run --quiet --wait --pipe --collect -p ProtectControlGroups=yes tare doctor --json || true")
	if err != nil {
		return err
	}
	return advises(out, "ProtectControlGroups=no", "run as root")
}

// withoutControllers checks what doctor says on a kernel that accounts neither memory nor stalls.
func withoutControllers(ctx context.Context, l *lab) error {
	m, err := l.boot(ctx, "cgroup_disable=memory psi=0")
	if err != nil {
		return err
	}
	defer m.off()
	out, err := (&lab{vm: m, log: l.log}).sh(ctx, "tare doctor --json || true")
	if err != nil {
		return err
	}
	return errors.Join(advises(out, "remove cgroup_disable=memory", "run as root"), advises(out, "boot with psi=1", ""))
}

// advises checks that doctor names a problem with this advice, and none with another.
func advises(doctor, want, never string) error {
	report, err := readDoctor(doctor)
	if err != nil {
		return err
	}
	said := false
	for _, f := range report.Findings {
		if never != "" && strings.Contains(f.Problem, never) {
			return fmt.Errorf("doctor says of %s: %s", f.Name, f.Problem)
		}
		said = said || strings.Contains(f.Problem, want)
	}
	if !said {
		return fmt.Errorf("doctor does not say %q", want)
	}
	return nil
}

// doctorReport is what the steps read of `tare doctor --json`.
type doctorReport struct {
	Findings []struct{ Area, Name, Problem string }
}

func readDoctor(out string) (r doctorReport, err error) {
	if err = json.Unmarshal([]byte(out), &r); err != nil {
		err = fmt.Errorf("cannot read the output of doctor --json: %w", err)
	}
	return r, err
}
