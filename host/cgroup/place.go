package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Scope is the systemd unit, and its group in the version 2 tree, that holds our groups
// on systemd hosts. systemd delegates it to us: it enables the controllers on the path,
// and does not touch the groups below it (https://systemd.io/CGROUP_DELEGATION).
const Scope = "tare.scope"

// Place is where the groups of a run are. It is held until Release.
type Place struct {
	h    *Hierarchy
	keep *keeper
	note string
}

// Hold prepares the place of a run's groups. It asks systemd for a scope. If systemd does
// not run the tree, it empties the root of a container's tree and passes its controllers
// on. It notes its changes on the tree, so that Release or TakeBack can undo them. The
// caller holds the host. If the host's controllers are in version 1 trees, there is
// nothing to do. An error says what prevents sandboxes, and leaves the host as it was.
func Hold(ctx context.Context) (*Place, error) {
	h, err := Detect()
	if err != nil {
		return nil, err
	}
	return h.hold(ctx, startScope)
}

func (h *Hierarchy) hold(ctx context.Context, start func(context.Context, string) (*keeper, error)) (*Place, error) {
	p := &Place{h: h.outside()}
	t, ok := h.unified()
	if !ok {
		return p, nil
	}
	root := h.dir(t, "")
	if err := unix.Access(root, unix.W_OK); err != nil {
		return nil, fmt.Errorf("cgroup: cannot make a group in %s: %w; %s", root, err, refusal(err))
	}
	if err := h.unthread(root); err != nil {
		return nil, err
	}
	if h.Altered() == "" {
		h.notes.remove(root) // of a killed run, of which nothing is left
	}
	h.remember(root)
	if h.systemd {
		keep, err := start(ctx, filepath.Join(root, Scope))
		switch {
		case errors.Is(err, errInUse):
			return nil, err
		case err != nil:
			p.note = fmt.Sprintf("systemd gave no scope, so it may disable controllers during a run: %v", err)
		default:
			p.keep, p.h = keep, h
			h.scope = Scope
		}
	}
	err := h.vacate(root)
	if err == nil {
		var missing []string
		if missing, err = notPassedOn(root); err == nil && len(missing) > 0 {
			// A host without one of them is limited but still useful; see Lacks.
			_ = h.passOn(root, missing)
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.Release())
	}
	return p, nil
}

// Where says where the groups of sandboxes are, and what the user should know about it.
func (p *Place) Where() string {
	var dirs []string
	for _, t := range p.h.mine() {
		dirs = append(dirs, p.h.dir(t, Top))
	}
	slices.Sort(dirs)
	if len(dirs) > 1 {
		dirs = []string{dirs[0], "and others"}
	}
	text := strings.Join(dirs, " ")
	if p.keep != nil {
		text += ", delegated by systemd"
	}
	if p.note != "" {
		text += "; " + p.note
	}
	return text
}

// Release undoes what Hold did, once the groups in the place are destroyed. It is
// idempotent.
func (p *Place) Release() error {
	err := p.keep.end()
	p.keep = nil
	return errors.Join(err, p.h.TakeBack())
}

// Altered says what TakeBack would undo, "" for nothing.
func (h *Hierarchy) Altered() string {
	t, ok := h.unified()
	if !ok {
		return ""
	}
	var what []string
	root := h.dir(t, "")
	if added := h.added(root); len(added) > 0 {
		what = append(what, "passes on "+strings.Join(added, " "))
	}
	if pids, _, err := sitting(filepath.Join(root, Aside)); err == nil {
		what = append(what, fmt.Sprintf("has %d processes in %s", len(pids), Aside))
	}
	if len(what) == 0 {
		return ""
	}
	return root + " " + strings.Join(what, ", ")
}

// TakeBack undoes the changes above our groups, which are gone. It disables controllers
// that nobody else uses, and moves processes back. It leaves what systemd enabled to
// systemd.
func (h *Hierarchy) TakeBack() error {
	t, ok := h.unified()
	if !ok {
		return nil
	}
	root := h.dir(t, "")
	if h.systemd {
		awaitGone(filepath.Join(root, Scope)) // it uses the controllers
	}
	err := h.passNoMore(root, h.added(root))
	if err = errors.Join(err, h.comeBack(root)); err != nil {
		return fmt.Errorf("cgroup: cannot undo the changes in %s: %w", root, err)
	}
	h.notes.remove(root)
	return nil
}

// runBySystemd reports whether systemd, as process 1, runs the tree that this process
// sees: sd_booted(3). A container may have its own tree and another process 1.
func runBySystemd() bool {
	b, err := os.ReadFile("/proc/1/cgroup")
	return err == nil && isDir("/run/systemd/system") && bytes.HasSuffix(bytes.TrimSpace(b), []byte("0::/init.scope"))
}

// keeper is the process that keeps a scope alive: systemd removes an empty scope. It ends
// with its standard input, so it ends with this program in every case.
type keeper struct {
	cmd   *exec.Cmd
	input *os.File
	dir   string
	done  chan struct{}
}

// errInUse says that a scope exists already.
var errInUse = errors.New("processes of an earlier run are still there; run `tare clean`")

// Time limits for systemd.
const (
	scopeWithin = 20 * time.Second
	goneWithin  = 5 * time.Second
)

// startScope makes systemd create the scope with the group dir. systemd delegates the
// group's controllers. The group has none of the default limits of units.
func startScope(ctx context.Context, dir string) (*keeper, error) {
	if !awaitGone(dir) {
		return nil, fmt.Errorf("cgroup: %s: %w", dir, errInUse)
	}
	ctx, cancel := context.WithTimeout(ctx, scopeWithin)
	defer cancel()
	in, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // the child has its own copy
	var said bytes.Buffer
	k := &keeper{input: input, dir: dir, done: make(chan struct{})}
	// --scope executes the command in the process that was systemd-run.
	k.cmd = exec.Command("systemd-run", "--scope", "--quiet", "--collect", "--unit="+Scope, "--slice=-.slice",
		"--description=sandboxes of tare", "--property=Delegate=yes", "--property=TasksMax=infinity", "--", "cat")
	k.cmd.Stdin, k.cmd.Stderr = in, &said
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C at the terminal is for tare, which needs the scope until it has cleaned up
	if err := k.cmd.Start(); err != nil {
		return nil, errors.Join(err, input.Close())
	}
	go func() { defer close(k.done); _ = k.cmd.Wait() }()
	for {
		if pids, _, err := sitting(dir); err == nil && slices.Contains(pids, k.cmd.Process.Pid) {
			break
		}
		select {
		case <-k.done:
			return nil, errors.Join(fmt.Errorf("systemd-run ended: %s", bytes.TrimSpace(said.Bytes())), k.end())
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("systemd-run did not create a scope within %s: %w", scopeWithin, ctx.Err()), k.end())
		case <-time.After(5 * time.Millisecond):
		}
	}
	// The scope's own group must pass controllers on, so it must be empty.
	leaf := filepath.Join(dir, "keep")
	if err := os.Mkdir(leaf, 0o755); err != nil { //nolint:gosec // a control group
		return nil, errors.Join(err, k.end())
	}
	if err := write(filepath.Join(leaf, groupProcs), fmt.Sprint(k.cmd.Process.Pid)); err != nil {
		return nil, errors.Join(err, k.end())
	}
	return k, nil
}

// end gives up the scope and waits until systemd has removed it.
func (k *keeper) end() error {
	if k == nil {
		return nil
	}
	err := k.input.Close()
	select {
	case <-k.done:
	case <-time.After(goneWithin):
		err = errors.Join(err, k.cmd.Process.Kill())
		<-k.done
	}
	awaitGone(k.dir)
	return err
}

// awaitGone waits at most goneWithin until a group is gone: systemd removes it when it
// learns that no process is left in it.
func awaitGone(dir string) bool {
	for begun := time.Now(); isDir(dir); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > goneWithin {
			return false
		}
	}
	return true
}
