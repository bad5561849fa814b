package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Pods of the check (config/check.yaml).
const (
	checkSpace  = "lab-check"
	podWithin   = 2 * time.Minute
	burnFor     = 3 * time.Second
	limit       = 0.5 // cores, of the pods runc and gvisor
	limitSlack  = 0.1 // above it: a pod begins with a whole period's budget, and burnFor is short
	limitSense  = 0.3 // below it the pod was not held by its limit, but by something else
	checkedText = "written by the check"
)

// step is one check, and what it says about it.
type step struct {
	name string
	run  func(context.Context) (string, error)
}

// check runs pods and prints a line for each step. The steps go on after a failed one.
func (l *lab) check(ctx context.Context) (err error) {
	pulled, err := l.pushProbe(ctx, "check")
	if err != nil {
		return fmt.Errorf("cannot push an image to the lab's registry: %w", err)
	}
	objects, err := render("check.yaml", facts{Probe: probeImage, Pulled: pulled})
	if err != nil {
		return err
	}
	defer func() {
		_, gone := l.kubectl(context.WithoutCancel(ctx), nil, "delete", "namespace", checkSpace, "--ignore-not-found", "--timeout", podWithin.String())
		err = errors.Join(err, gone)
	}()
	if _, err := l.kubectl(ctx, objects, "apply", "-f", "-"); err != nil {
		return err
	}
	steps := l.steps()
	if there, err := l.hasIngress(ctx); err != nil {
		return err
	} else if there {
		steps = append(steps, step{"ingress", l.routesAnswer})
	}
	if virt, err := l.runs("virt-controller"); err != nil {
		return err
	} else if virt {
		steps = append(steps, step{"virtual machines", l.machines})
	}
	failed := 0
	l.begun = time.Now()
	for _, s := range steps {
		said, err := s.run(ctx)
		if err == nil {
			l.done("%s: %s", s.name, said)
			continue
		}
		failed++
		fmt.Fprintf(l.out, "FAILED  %6.1f s  %s: %v\n", time.Since(l.begun).Seconds(), s.name, err)
		l.begun = time.Now()
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed; the logs are in %s", failed, len(steps), filepath.Join(l.run, "log"))
	}
	return nil
}

func (l *lab) steps() []step {
	var out []step
	for _, p := range []struct{ pod, node string }{{"runc", "node1"}, {"gvisor", "node2"}} {
		out = append(out,
			step{"pod " + p.pod, func(ctx context.Context) (string, error) { return l.podReady(ctx, p.pod) }},
			step{"logs " + p.pod, func(ctx context.Context) (string, error) { return l.logs(ctx, p.pod) }},
			step{"exec " + p.pod, func(ctx context.Context) (string, error) { return l.exec(ctx, p.pod, "uname") }},
			step{"CPU limit " + p.pod, func(ctx context.Context) (string, error) { return l.limited(ctx, p.pod, p.node) }})
	}
	return append(out,
		step{"network runc to gvisor", func(ctx context.Context) (string, error) { return l.reach(ctx, "runc", "gvisor") }},
		step{"network gvisor to runc", func(ctx context.Context) (string, error) { return l.reach(ctx, "gvisor", "runc") }},
		step{"registry", func(ctx context.Context) (string, error) { return l.podReady(ctx, "pulled") }},
		step{"volumes", l.volumes})
}

// podReady waits for a pod and says on which node it is.
func (l *lab) podReady(ctx context.Context, pod string) (string, error) {
	if _, err := l.kubectl(ctx, nil, "wait", "-n", checkSpace, "--for=condition=Ready", "--timeout", podWithin.String(), "pod/"+pod); err != nil {
		events, _ := l.kubectl(ctx, nil, "get", "events", "-n", checkSpace, "--field-selector", "type=Warning,involvedObject.name="+pod, "-o", `jsonpath={range .items[*]}{.message}; {end}`)
		return "", fmt.Errorf("%w; %s", err, events)
	}
	node, err := l.field(ctx, pod, "{.spec.nodeName}")
	return "ready on " + node, err
}

func (l *lab) field(ctx context.Context, pod, path string) (string, error) {
	return l.kubectl(ctx, nil, "get", "pod", "-n", checkSpace, pod, "-o", "jsonpath="+path)
}

func (l *lab) logs(ctx context.Context, pod string) (string, error) {
	out, err := l.kubectl(ctx, nil, "logs", "-n", checkSpace, pod)
	if err == nil && out != "serving" {
		err = fmt.Errorf("its log is %q", out)
	}
	return out, err
}

// exec runs the probe in a pod.
func (l *lab) exec(ctx context.Context, pod string, args ...string) (string, error) {
	return l.kubectl(ctx, nil, append([]string{"exec", "-n", checkSpace, pod, "--", "/probe"}, args...)...)
}

// limited burns CPU time in a pod and reads what the host charged it.
func (l *lab) limited(ctx context.Context, pod, node string) (string, error) {
	uid, err := l.field(ctx, pod, "{.metadata.uid}")
	if err != nil {
		return "", err
	}
	g, err := findGroups()
	if err != nil {
		return "", err
	}
	before, err := g.charged(node, uid)
	if err != nil {
		return "", err
	}
	begun := time.Now()
	if _, err := l.exec(ctx, pod, "burn", burnFor.String()); err != nil {
		return "", err
	}
	took := time.Since(begun)
	after, err := g.charged(node, uid)
	cores := (after - before).Seconds() / took.Seconds()
	if err == nil && (cores > limit+limitSlack || cores < limitSense) {
		err = fmt.Errorf("the pod used %.2f cores; its limit is %.2f", cores, limit)
	}
	return fmt.Sprintf("%.2f cores of %.2f", cores, limit), err
}

// charged is the CPU time of a pod so far. gVisor's processes are in the pod's group, not in
// that of a container.
func (g *groups) charged(node, uid string) (time.Duration, error) {
	for _, t := range g.trees {
		dir := filepath.Join(t, g.top, node, "kubepods", "burstable", "pod"+uid)
		if b, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage")); err == nil { //nolint:gosec // of the kernel
			ns, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
			return time.Duration(ns), err
		}
		if b, err := os.ReadFile(filepath.Join(dir, "cpu.stat")); err == nil && g.unified { //nolint:gosec // as above
			f := strings.Fields(string(b))
			if i := slices.Index(f, "usage_usec"); i >= 0 && i+1 < len(f) {
				us, err := strconv.ParseInt(f[i+1], 10, 64)
				return time.Duration(us) * time.Microsecond, err
			}
		}
	}
	return 0, fmt.Errorf("the pod %s has no control group on %s", uid, node)
}

// reach sends a request from one pod to the address of another, on the other node.
func (l *lab) reach(ctx context.Context, from, to string) (string, error) {
	address, err := l.field(ctx, to, "{.status.podIP}")
	if err != nil {
		return "", err
	}
	out, err := l.exec(ctx, from, "get", "http://"+address+":8080/")
	if err == nil && out != to {
		err = fmt.Errorf("%s answered %q", address, out)
	}
	return "answered by " + address, err
}

// volumes writes to both volumes of a pod, and reads the host's side of the first. It also waits until a claim without a pod is bound.
func (l *lab) volumes(ctx context.Context) (string, error) {
	if _, err := l.kubectl(ctx, nil, "wait", "-n", checkSpace, "--for=jsonpath={.status.phase}=Bound", "--timeout", podWithin.String(), "pvc/alone"); err != nil {
		return "", err
	}
	if _, err := l.podReady(ctx, "volumes"); err != nil {
		return "", err
	}
	for _, file := range []string{"/files/text", "/dev/block"} {
		if _, err := l.exec(ctx, "volumes", "write", file, checkedText); err != nil {
			return "", err
		}
		out, err := l.exec(ctx, "volumes", "read", file)
		if err == nil && !strings.HasPrefix(out, checkedText) {
			err = fmt.Errorf("%s has %q", file, out)
		}
		if err != nil {
			return "", err
		}
	}
	found, err := filepath.Glob(filepath.Join(l.run, "*", "var", "lib", "volumes", "*", "text"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("the volume's file is not in the lab's folder: %v", found)
	}
	return "Filesystem and Block are bound and written, and a claim without a pod is bound", err
}
