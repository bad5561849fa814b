package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

const (
	kubeVirtModule  = "kubevirt.io/kubevirt"
	kubeVirtAccount = "system:serviceaccount:kubevirt:kubevirt-" // user names of KubeVirt's programs
	virtAPI         = "https://" + controlAddress + ":8443"
	guestsFile      = "guests.yaml"
	launcherImage   = registry + "/kubevirt/virt-launcher:none" // it is not there: it needs libvirt
)

// kubeVirtFlags tell KubeVirt's programs their version.
func kubeVirtFlags(version string) string {
	return " -X kubevirt.io/client-go/version.gitVersion=" + version
}

// newConditions makes virt-controller of KubeVirt 1.6 work with Kubernetes 1.34, as later versions do. It
// compares a pod's conditions with those that it has read before it writes one. Since 1.34 they
// have a field that it does not know (observedGeneration), so it never finds them equal, and its
// machines stay Pending (KubeVirt's issue 15586).
func newConditions() *patch {
	return &patch{
		"newConditions", "vendor/kubevirt.io/kubevirt/pkg/virt-controller/watch/vmi/lifecycle.go",
		`patch.WithTest("/status/conditions", oldPod.Status.Conditions),`, "",
	}
}

// kubeVirt starts KubeVirt's control plane, if it does not run: virt-api with its webhooks, and
// virt-controller. virt-operator would run these in pods. What it makes besides is made here, by
// its own code (modules/kubevirt).
func (l *lab) kubeVirt(ctx context.Context) error {
	g, err := findGroups()
	if err != nil {
		return err
	}
	if err := l.makeKubeVirt(ctx); err != nil {
		return fmt.Errorf("cannot make KubeVirt's objects: %w", err)
	}
	all, err := l.commands()
	if err != nil {
		return err
	}
	var last *started
	for _, d := range all.Virt {
		runs, err := l.runs(d.Name)
		if err != nil {
			return err
		}
		if runs {
			continue
		}
		if last, err = l.start(d, entry{Groups: g.procs(daemons(control)), Net: namespace(control), Env: l.environ()}); err != nil {
			return err
		}
	}
	if err := until(ctx, serverWithin, last, l.kubeVirtAnswers); err != nil {
		return fmt.Errorf("KubeVirt does not answer: %w", err)
	}
	l.done("KubeVirt's virt-api and virt-controller")
	return l.playGuests(ctx, all.Guests, entry{Groups: g.procs(daemons(control)), Net: namespace(control), Env: l.environ()})
}

// playGuests starts a second kwok, which plays virt-handler on simulated nodes. The first kwok starts before KubeVirt is installed, and
// kwok exits if the API server lacks a kind that it should play.
func (l *lab) playGuests(ctx context.Context, d daemon, in entry) error {
	runs, err := l.runs(d.Name)
	if err != nil || runs {
		return err
	}
	stages, err := templates.ReadFile("config/" + guestsFile)
	if err != nil {
		return err
	}
	if err := writeFile(l.guests(), stages); err != nil {
		return err
	}
	err = until(ctx, serverWithin, nil, func(ctx context.Context) error {
		out, err := l.kubectl(ctx, nil, "get", "--raw", "/openapi/v3/apis/kubevirt.io/v1")
		if err == nil && !strings.Contains(out, "/virtualmachineinstances/{name}") {
			err = errors.New("the API server does not describe machines yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	kwok, err := l.start(d, in)
	if err != nil {
		return err
	}
	err = until(ctx, serverWithin, kwok, func(context.Context) error { // this program may end then, and the process no longer needs its input
		if runs, err := l.runs(d.Name); err != nil || runs {
			return err
		}
		return errors.New("it has not started yet")
	})
	if err == nil {
		l.done("guests on simulated nodes")
	}
	return err
}

// makeKubeVirt makes the objects of KubeVirt, and its configuration when their types are known.
func (l *lab) makeKubeVirt(ctx context.Context) error {
	m := modules()[len(modules())-1]
	p, err := m.pins(ctx, moduleDir)
	if err != nil {
		return err
	}
	objects, err := output(exec.CommandContext(ctx, l.program("kubevirt"), "-ca", l.pki("ca.crt"), "-url", virtAPI)) //nolint:gosec // built from pinned modules
	if err != nil {
		return err
	}
	configuration, err := render("kubevirt.yaml", facts{KubeVirt: m.version(p), Arch: runtime.GOARCH})
	if err != nil {
		return err
	}
	for _, c := range []struct {
		stdin []byte
		args  []string
	}{
		{[]byte(objects), []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}},
		{nil, []string{"wait", "--for=condition=Established", "customresourcedefinitions", "--all", "--timeout", serverWithin.String()}},
		{configuration, []string{"apply", "--server-side", "-f", "-"}},
		{configuration, []string{"apply", "--server-side", "--subresource=status", "-f", "-"}},
	} {
		if _, err := l.kubectl(ctx, c.stdin, c.args...); err != nil {
			return err
		}
	}
	return nil
}

// kubeVirtAnswers asks whether virt-api admits a machine, and whether virt-controller leads.
func (l *lab) kubeVirtAnswers(ctx context.Context) error {
	if err := l.tryMachine(ctx, "default", "1"); err != nil {
		return err
	}
	who, err := l.kubectl(ctx, nil, "get", "lease", "virt-controller", "-n", "kubevirt", "-o", "jsonpath={.spec.holderIdentity}")
	if err == nil && who == "" {
		err = errors.New("no virt-controller leads")
	}
	return err
}

// tryMachine has virt-api judge a machine.
func (l *lab) tryMachine(ctx context.Context, namespace, threads string) error {
	machine, err := render("machine.yaml", facts{Name: namespace, Threads: threads})
	if err != nil {
		return err
	}
	_, err = l.kubectl(ctx, machine, "create", "--dry-run=server", "-f", "-")
	return err
}

// machines is a step of check: virt-api refuses a machine in its own words, admits another, and
// virt-controller makes its launcher pod.
func (l *lab) machines(ctx context.Context) (string, error) {
	const refusal = "the number of iothreads needs to be set and positive"
	if err := l.tryMachine(ctx, checkSpace, "0"); err == nil || !strings.Contains(err.Error(), refusal) {
		return "", fmt.Errorf("virt-api does not refuse a pool without threads: %w", err)
	}
	machine, err := render("machine.yaml", facts{Name: checkSpace, Threads: "2"})
	if err != nil {
		return "", err
	}
	if _, err := l.kubectl(ctx, machine, "create", "-f", "-"); err != nil {
		return "", err
	}
	const launchers = "kubevirt.io=virt-launcher"
	err = until(ctx, podWithin, nil, func(ctx context.Context) error {
		out, err := l.kubectl(ctx, nil, "get", "pods", "-n", checkSpace, "-l", launchers, "-o", "jsonpath={.items[*].status.conditions[*].reason}")
		if err == nil && !strings.Contains(out, "Unschedulable") {
			err = fmt.Errorf("the launcher pod is not judged by the scheduler: %q", out)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	_, err = l.kubectl(ctx, nil, "delete", "virtualmachineinstance", "machine", "-n", checkSpace, "--timeout", podWithin.String())
	return "admitted, and refused without threads; it has a launcher pod", err
}
