package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/freemem"
	"tare/host/network"
	"tare/host/probe"
	"tare/param"
	"tare/sandbox"
	"tare/trial"
	"tare/volume"
	"tare/workload"
)

// Place is this host as a trial.Place. The fields are set before it is used.
type Place struct {
	State  string // directory for sandboxes' own files; on a memory file system if possible
	Data   string // directory on the disk to be measured
	Memory string // directory on a memory file system; "" if the host has none
	Root   string // root file system of roles without an image, read-only
	// MissingTools are programs that Root should have, and the host does not.
	MissingTools []string
	Images       map[string]Image // by name
	Bridge       *network.Bridge  // nil: no sandbox has a network

	mu       sync.Mutex
	networks []string // names that are attached, in that order
	retired  []string // those of them whose sandboxes are gone
}

// Image is a root file system that roles ask for by name.
type Image struct {
	Root    string // of the unpacked tree
	Digest  string
	Missing string // why this host does not have it, in words a user can act on; "" when it does
}

// Check is of trial.Place.
func (p *Place) Check(d trial.Demand) error {
	if d.Image != "" {
		if _, err := p.Image(d.Image); err != nil {
			return err
		}
	}
	for _, tool := range d.Tools {
		if slices.Contains(p.MissingTools, tool) {
			return fmt.Errorf("%s is not installed; apt-get install %s", tool, tool)
		}
	}
	for _, v := range d.Volumes {
		if _, err := p.medium(v.Medium); err != nil {
			return err
		}
	}
	if d.CPUs != "" {
		last := runtime.NumCPU() - 1
		if cpus, err := param.ParseCPUs(d.CPUs); err == nil && cpus[len(cpus)-1] > last {
			return fmt.Errorf("cpus %s: this host has the processors 0-%d", d.CPUs, last)
		}
	}
	return network.CheckLink(d.Link)
}

// Image is of trial.Place.
func (p *Place) Image(name string) (digest string, err error) {
	img, ok := p.Images[name]
	switch {
	case !ok:
		return "", fmt.Errorf("image %s was not prepared; `tare image build %s` says why", name, name)
	case img.Missing != "":
		return "", fmt.Errorf("image %s: %s", name, img.Missing)
	}
	return img.Digest, nil
}

// medium is the directory for volumes on a medium.
func (p *Place) medium(m volume.Medium) (string, error) {
	switch {
	case m != volume.Memory:
		return p.Data, nil
	case p.Memory == "":
		return "", errors.New("this host has no memory file system for data: neither /dev/shm nor /run is a tmpfs; mount one on /dev/shm")
	}
	return p.Memory, nil
}

// Prepare is of trial.Place.
func (p *Place) Prepare(_ context.Context, want sandbox.Want) (sandbox.Spec, error) {
	spec := sandbox.Spec{
		Name: want.Name, Dir: filepath.Join(p.State, want.Trial, want.Name), Root: p.Root,
		CPULimit: want.CPULimit, MemoryLimit: want.MemoryLimit, CPUs: want.CPUs, Options: want.Options,
	}
	if want.Image != "" {
		spec.Root = p.Images[want.Image].Root
	}
	if err := os.MkdirAll(spec.Dir, 0o700); err != nil {
		return spec, fmt.Errorf("cannot make the sandbox's directory: %w", err)
	}
	for _, v := range want.Volumes {
		base, err := p.medium(v.Medium)
		if err != nil {
			return spec, err
		}
		spec.Data = filepath.Join(base, want.Trial, want.Role)
		if err := os.MkdirAll(spec.Data, 0o700); err != nil {
			return spec, fmt.Errorf("cannot make the data directory: %w", err)
		}
	}
	if want.Writable {
		spec.Upper = filepath.Join(p.Data, want.Trial, want.Name+"-upper")
		if err := os.MkdirAll(spec.Upper, 0o700); err != nil {
			return spec, fmt.Errorf("cannot make the directory of the writable root: %w", err)
		}
	}
	if !want.Networked {
		return spec, nil
	}
	if p.Bridge == nil {
		return spec, errors.New("there is no bridge for the sandbox's network; run as root")
	}
	var err error
	if spec.Network, err = p.Bridge.Attach(spec.Name); err != nil {
		return spec, fmt.Errorf("cannot connect the sandbox to the bridge: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.networks = append(p.networks, spec.Name)
	return spec, nil
}

// mostRetired is how many networks of sandboxes that are gone a trial keeps: the kernel takes
// a namespace apart in the background, with locks that the next sandbox's start would wait
// for.
const mostRetired = 64

// Retire is of trial.Place.
func (p *Place) Retire(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.networks, name) {
		return nil
	}
	if p.retired = append(p.retired, name); len(p.retired) <= mostRetired {
		return nil
	}
	oldest := p.retired[0]
	if err := p.Bridge.Detach(oldest); err != nil {
		return fmt.Errorf("cannot take a sandbox from the bridge: %w", err)
	}
	p.retired = p.retired[1:]
	p.networks = slices.DeleteFunc(p.networks, func(n string) bool { return n == oldest })
	return nil
}

// Release is of trial.Place.
func (p *Place) Release(_ context.Context, name string) []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left []error
	ours := func(sandbox string) bool { return strings.HasPrefix(sandbox, name+"-") }
	for _, n := range p.networks {
		if !ours(n) {
			continue
		}
		if err := p.Bridge.Detach(n); err != nil {
			left = append(left, fmt.Errorf("network of %s: %w", n, err))
		}
	}
	p.networks, p.retired = slices.DeleteFunc(p.networks, ours), slices.DeleteFunc(p.retired, ours)
	for _, dir := range []string{p.State, p.Data, p.Memory} {
		if dir == "" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			left = append(left, fmt.Errorf("directory: %w", err))
		}
	}
	return left
}

// Shape is of trial.Place. A rate holds what goes towards each sandbox, which is both ways
// of a link between two; a delay is for both ways already.
func (p *Place) Shape(want sandbox.Link, networks []sandbox.Network) error {
	for i, n := range networks {
		if want.Rate > 0 {
			if err := p.Bridge.Rate(n, want.Rate); err != nil {
				return fmt.Errorf("cannot set the rate of the link: %w", err)
			}
		}
		if want.Delay > 0 && i == 0 {
			if err := p.Bridge.Delay(n, want.Delay); err != nil {
				return fmt.Errorf("cannot set the delay of the link: %w", err)
			}
		}
	}
	return nil
}

// Probe is of trial.Place. It asks from the bridge itself.
func (p *Place) Probe(ctx context.Context, addr netip.Addr, ask workload.Probe) (time.Time, error) {
	return probe.Wait(ctx, p.Bridge.Socket, addr, ask)
}

// Available is of trial.Place.
func (*Place) Available() (int64, error) { return freemem.Read() }

// DropCaches is of trial.Place. It writes back what is not yet on the disk of Data, and
// drops the host's clean page cache, directory entries and inodes: proc_sys_vm(5),
// drop_caches. It needs root, and a kernel that is this host's own.
func (p *Place) DropCaches() error {
	d, err := os.Open(p.Data)
	if err != nil {
		return fmt.Errorf("writing back: %w", err)
	}
	defer d.Close() //nolint:errcheck // read only
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("writing back: %w", err)
	}
	err = os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return fmt.Errorf("%w; run as root, outside of a container", err)
	}
	return err
}
