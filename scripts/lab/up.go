package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/rootfs"
)

// Times within which a part of the cluster must be ready, on a busy machine.
const (
	serverWithin = 3 * time.Minute
	nodeWithin   = 3 * time.Minute
	stopWithin   = 30 * time.Second
)

// up starts what is not running: the whole cluster, or simulated nodes, an ingress controller and checks on a running
// one.
func (l *lab) up(ctx context.Context, o options) error {
	if os.Geteuid() != 0 {
		return errors.New("a cluster needs root; run with sudo")
	}
	if err := os.MkdirAll(l.cache, 0o755); err != nil { //nolint:gosec // nodes run the programs
		return err
	}
	if err := l.cluster(ctx, o); err != nil {
		return err
	}
	fmt.Fprintf(l.out, "kubeconfig: %s\nkubectl:    %s\nregistry:   %s\n", l.kubeconfig(), l.program("kubectl"), l.registryName())
	if o.check {
		return l.check(ctx)
	}
	return nil
}

// cluster builds what is missing and starts the cluster and the simulated nodes. It holds the
// lock meanwhile.
func (l *lab) cluster(ctx context.Context, o options) error {
	unlock, err := l.takeLock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.build(ctx, o); err != nil {
		return err
	}
	l.begun = time.Now()
	if l.mustRun() == nil {
		l.done("the cluster runs already")
	} else {
		if err := l.remove(ctx); err != nil {
			return fmt.Errorf("an earlier cluster is in the way: %w", err)
		}
		if err := l.prune(); err != nil {
			return err
		}
		if err := l.startAll(ctx); err != nil {
			return fmt.Errorf("%w; the logs are in %s; down removes what has started", err, filepath.Join(l.run, "log"))
		}
	}
	if err := l.simulate(ctx, o.simulated); err != nil {
		return err
	}
	if o.ingress {
		if err := l.ingress(ctx); err != nil {
			return fmt.Errorf("cannot add the ingress controller: %w", err)
		}
	}
	if !o.kubeVirt {
		return nil
	}
	return l.kubeVirt(ctx)
}

// startAll starts the whole cluster.
func (l *lab) startAll(ctx context.Context) error {
	g, err := findGroups()
	if err != nil {
		return err
	}
	release, err := g.make(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := makeNetwork(); err != nil {
		return err
	}
	for _, d := range []string{l.records(), l.blobs(), filepath.Join(l.run, "log")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	api, err := listen(usualPort)
	if err != nil {
		return err
	}
	defer func() { _ = api.Close() }()
	images, err := listen(registryPort)
	if err != nil {
		return err
	}
	defer func() { _ = images.Close() }()
	if err := writeFile(filepath.Join(l.run, "registry-name"), []byte(images.Addr().String())); err != nil {
		return err
	}
	if err := l.makePKI(time.Now(), "https://"+api.Addr().String()); err != nil {
		return err
	}
	l.done("certificates and network namespaces")
	if err := l.startForwarder(g, api, images); err != nil {
		return err
	}
	if err := l.startControl(ctx, g); err != nil {
		return err
	}
	l.done("control plane")
	file, err := l.makeImages(ctx)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file) //nolint:gosec // just made
	if err != nil {
		return err
	}
	var kubelets []*started
	for _, n := range nodes() {
		k, err := l.startNode(ctx, g, n, content)
		if err != nil {
			return fmt.Errorf("cannot start %s: %w", n.name, err)
		}
		kubelets = append(kubelets, k)
	}
	for i, n := range nodes() {
		if err := until(ctx, nodeWithin, kubelets[i], func(ctx context.Context) error { return l.ready(ctx, n.name) }); err != nil {
			return err
		}
		l.done("%s is ready", n.name)
	}
	return nil
}

// listen opens a port on the host's loopback, the usual one if it is free.
func listen(usual string) (*net.TCPListener, error) {
	var errs []error
	for _, port := range []string{usual, "0"} {
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			return listener.(*net.TCPListener), nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// startForwarder starts the one process that listens on the host's loopback, for the API server and
// the registry.
func (l *lab) startForwarder(g *groups, listeners ...*net.TCPListener) error {
	var files []*os.File
	for _, listener := range listeners {
		f, err := listener.File()
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		files = append(files, f)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// `go run` removes its program when it ends.
	content, err := os.ReadFile(self) //nolint:gosec // this program
	if err != nil {
		return err
	}
	path := filepath.Join(l.run, "forwarder")
	if err := os.WriteFile(path, content, 0o700); err != nil { //nolint:gosec // a program
		return err
	}
	_, err = l.start(daemon{Name: "forwarder", path: path, Args: []string{"forward", namespace(control), firstService + ":" + apiPort, registry}},
		entry{Groups: g.procs(daemons(control)), Env: os.Environ()}, files...)
	return err
}

// startControl starts the control plane, waits for it and makes the cluster's objects.
func (l *lab) startControl(ctx context.Context, g *groups) error {
	in := entry{Groups: g.procs(daemons(control)), Net: namespace(control), Env: l.environ()}
	all, err := l.commands()
	if err != nil {
		return err
	}
	for _, d := range all.Control {
		s, err := l.start(d, in)
		if err != nil {
			return err
		}
		if d.Name != "kube-apiserver" {
			continue // the others try until they are served
		}
		err = until(ctx, serverWithin, s, func(ctx context.Context) error {
			_, err := l.kubectl(ctx, nil, "get", "--raw", "/readyz")
			return err
		})
		if err != nil {
			return err
		}
	}
	objects, err := render("objects.yaml", facts{Snapshotters: l.snapshotters()})
	if err != nil {
		return err
	}
	_, err = l.kubectl(ctx, objects, "apply", "-f", "-")
	return err
}

// startNode starts containerd and the kubelet of a node, which has its images before pods come.
func (l *lab) startNode(ctx context.Context, g *groups, n node, images []byte) (*started, error) {
	f := facts{Group: g.kubeletRoot(n.name), Snapshotter: l.snapshotter(), Snapshotters: l.snapshotters()}
	for name, path := range map[string]*string{"runc": &f.Runc, "runsc": &f.Runsc} {
		var ok bool
		if *path, ok = rootfs.Lookup(name); !ok {
			return nil, fmt.Errorf("cannot find %s; run scripts/setup.sh run", name)
		}
	}
	if err := l.makeConfig(n, f); err != nil {
		return nil, err
	}
	t := layout{Dir: l.node(n), Bin: l.bin, Unified: g.unified}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	if err := l.makeScratch(ctx, n); err != nil {
		return nil, fmt.Errorf("cannot create the file system that the snapshotter blockfile copies: %w", err)
	}
	in := entry{Groups: g.procs(daemons(n.name)), Net: namespace(n.name), Node: &t, Env: l.environ()}
	if g.unified {
		in.Groups = g.procs(n.name) // ownGroups goes on from there
	}
	c, err := l.start(daemon{Name: n.name + "-containerd", path: filepath.Join(nodeBin, "containerd"), Args: []string{"-c", nodeEtc + "/containerd.toml"}}, in)
	if err != nil {
		return nil, err
	}
	// It answers when its mounts are complete.
	var inside entry
	err = until(ctx, nodeWithin, c, func(ctx context.Context) (err error) {
		if inside, err = l.insideNode(n); err == nil {
			err = l.inside(ctx, inside, nil, l.ctr(), "-a", criSock, "version")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := l.importImages(ctx, n, images); err != nil {
		return nil, err
	}
	inside.Groups = g.procs(daemons(n.name))
	return l.start(daemon{Name: n.name + "-kubelet", path: filepath.Join(nodeBin, "kubelet"), Args: []string{
		"--config", nodeEtc + "/kubelet.yaml", "--kubeconfig", nodeEtc + "/kubeconfig",
		"--hostname-override", n.name, "--node-ip", n.address, "--node-labels", "type=real",
		"--root-dir", "/var/lib/kubelet", "--cert-dir", "/var/lib/kubelet/pki", "--v=2",
	}}, inside)
}

// snapshotter is containerd's: overlayfs does not work on itself, as in a container.
func (l *lab) snapshotter() string {
	var st unix.Statfs_t
	if err := unix.Statfs(l.run, &st); err == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native"
	}
	return "overlayfs"
}

// snapshotters are others that work here: overlayfs and erofs need overlays, and erofs a program and a kernel that has it.
func (l *lab) snapshotters() []string {
	out := []string{"native"}
	if _, ok := rootfs.Lookup("mke2fs"); ok {
		out = append(out, "blockfile")
	}
	kernel, _ := os.ReadFile("/proc/filesystems")
	if _, ok := rootfs.Lookup("mkfs.erofs"); ok && l.snapshotter() == "overlayfs" && bytes.Contains(kernel, []byte("\terofs\n")) {
		out = append(out, "erofs")
	}
	return out
}

// scratchSize holds tare's image, with room for larger ones.
const scratchSize = 192 << 20

// makeScratch makes the empty file system that the snapshotter blockfile copies.
func (l *lab) makeScratch(ctx context.Context, n node) error {
	if !slices.Contains(l.snapshotters(), "blockfile") {
		return nil
	}
	file := l.node(n, "var/lib/containerd/scratch")
	mke2fs, _ := rootfs.Lookup("mke2fs")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(file, scratchSize); err != nil {
		return err
	}
	_, err := output(exec.CommandContext(ctx, mke2fs, "-q", "-F", "-t", "ext4", "-O", "^has_journal", file)) //nolint:gosec // the distribution's
	return err
}

// environ is the environment of every daemon.
func (l *lab) environ() []string {
	return []string{"PATH=" + nodeBin + ":" + l.bin + ":" + usualBin, "HOME=/root", "LANG=C.UTF-8"}
}

// kubectl runs kubectl from the host, as an administrator.
func (l *lab) kubectl(ctx context.Context, stdin []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.program("kubectl"), append([]string{"--kubeconfig", l.kubeconfig()}, args...)...) //nolint:gosec // built from pinned modules
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append(l.environ(), "KUBECACHEDIR="+filepath.Join(l.run, "kubectl"))
	return output(cmd)
}

// ready says whether a node is ready; an error tells why not.
func (l *lab) ready(ctx context.Context, name string) error {
	out, err := l.kubectl(ctx, nil, "get", "node", name, "-o", `jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.message}{end}`)
	if err == nil && !strings.HasPrefix(out, "True") {
		err = fmt.Errorf("%s is not ready: %s", name, out)
	}
	return err
}

// simulate adds simulated nodes until there are n, and waits for them.
func (l *lab) simulate(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	g, err := findGroups()
	if err != nil {
		return err
	}
	runs, err := l.runs("kwok")
	if err != nil {
		return err
	}
	var kwok *started // nil: it has run before
	if !runs {
		c, err := l.commands()
		if err != nil {
			return err
		}
		if kwok, err = l.start(c.Kwok, entry{Groups: g.procs(daemons(control)), Net: namespace(control), Env: l.environ()}); err != nil {
			return err
		}
	}
	objects, err := simulatedNodes(n, runtime.GOARCH)
	if err != nil {
		return err
	}
	if _, err := l.kubectl(ctx, objects, "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	err = until(ctx, time.Minute+time.Duration(n)*100*time.Millisecond, kwok, func(ctx context.Context) error {
		out, err := l.kubectl(ctx, nil, "get", "nodes", "-l", "type=simulated", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
		if ready := strings.Count(out, "True"); err == nil && ready < n {
			err = fmt.Errorf("%d of %d simulated nodes are ready", ready, n)
		}
		return err
	})
	if err == nil {
		l.done("%d simulated nodes are ready", n)
	}
	return err
}
