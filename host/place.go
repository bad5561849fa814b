package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/host/ext4"
	"tare/host/freemem"
	"tare/host/network"
	"tare/host/probe"
	"tare/host/rootfs"
	"tare/host/setting"
	"tare/host/storage"
	"tare/internal/rootless"
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

	// Settings are those of the kernel that levels change.
	Settings setting.Table

	data     os.FileInfo // of Data when the study began; nil: not known
	mu       sync.Mutex
	changed  bool              // whether Settings may be other than the host's own
	networks []string          // names that are attached, in that order
	retired  []string          // those of them whose sandboxes are gone
	disks    map[string]string // sequence numbers of the given devices' disks, when the study began
}

// Image is a root file system that roles ask for by name.
type Image struct {
	trial.Image
	Root    string   // of the unpacked tree
	Shown   []string // directories of this host that are on top of it
	Missing string   // why this host does not have it, in words a user can act on; "" when it does
}

// Check is of trial.Place.
func (p *Place) Check(d trial.Demand) error {
	if d.Image != "" {
		img, err := p.Image(d.Image)
		if err != nil {
			return err
		}
		if rootless.Is() && !img.User.Root() {
			return fmt.Errorf("image %s: its user is %d, and without root a sandbox has no user but its root; run tare with sudo", d.Image, img.User.UID)
		}
		if d.Own && img.Problem != "" {
			return fmt.Errorf("image %s: %s", d.Image, img.Problem)
		}
	}
	for _, tool := range d.Tools {
		if slices.Contains(p.MissingTools, tool) {
			return fmt.Errorf("%s is not installed; apt-get install %s", tool, tool)
		}
	}
	for _, v := range d.Volumes {
		if v.Medium == volume.Device {
			if err := p.given(v); err != nil {
				return err
			}
		}
		if v.Medium == volume.Bind {
			if err := directory(v); err != nil {
				return err
			}
		}
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
	if d.API {
		return errors.New("only a cluster has an API server; run it with --on k8s")
	}
	if d.Cold > 0 {
		return errors.New("image: cold: on a host, tare starts sandboxes from a folder and pulls no image; write image: warm, or measure on a cluster (--on k8s)")
	}
	if d.Fill > 0 {
		return errors.New("node-fill: a host does not say how many sandboxes it takes; write node-fill: 0, or measure on a cluster (--on k8s)")
	}
	if err := p.room(d.Rooms); err != nil {
		return err
	}
	return errors.Join(network.CheckLink(d.Link), p.Settings.Check(d.Settings))
}

// Set is of trial.Setter. Most trials have no levels, and cost nothing here.
func (p *Place) Set(levels map[string]string) (map[string]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(levels) == 0 && !p.changed {
		return nil, nil
	}
	p.changed = true // also after an error: some of them may be
	facts, err := p.Settings.Set(levels)
	if err == nil && len(levels) == 0 {
		p.changed = false
	}
	return facts, err
}

// Image is of trial.Place.
func (p *Place) Image(name string) (trial.Image, error) {
	img, ok := p.Images[name]
	switch {
	case !ok:
		return img.Image, fmt.Errorf("image %s was not prepared; `tare image build %s` says why", name, name)
	case img.Missing != "":
		return img.Image, fmt.Errorf("image %s: %s", name, img.Missing)
	}
	return img.Image, nil
}

// medium is the directory for volumes on a medium.
func (p *Place) medium(m volume.Medium) (string, error) {
	switch {
	case m != volume.Memory:
		return p.Data, p.sameData()
	case p.Memory == "":
		return "", errors.New("this host has no memory file system for data: neither /dev/shm nor /run is a tmpfs; mount one on /dev/shm")
	}
	return p.Memory, nil
}

// sameData refuses a directory for data that was unmounted, moved or deleted since the study began: a new one of that name may be on
// another disk.
func (p *Place) sameData() error {
	if p.data == nil {
		return nil
	}
	if now, err := os.Stat(p.Data); err == nil && os.SameFile(now, p.data) {
		return nil
	}
	return dataGoneError(filepath.Dir(p.Data))
}

// dataGoneError says that the directory for data, which it names, is gone. It ends the study as the loss of its node does: trials made
// so far are kept, and the study can go on later.
type dataGoneError string

func (e dataGoneError) Error() string {
	return string(e) + ", where the study has its data, was unmounted, moved or deleted; bring it back"
}

// Is reports whether target is sandbox.ErrNodeLost.
func (dataGoneError) Is(target error) bool { return target == sandbox.ErrNodeLost }

// Prepare is of trial.Place.
func (p *Place) Prepare(ctx context.Context, want sandbox.Want) (sandbox.Spec, error) {
	spec := sandbox.Spec{Want: want, Dir: filepath.Join(p.State, want.Trial, want.Name), Root: p.Root}
	if want.Image != "" {
		spec.Root, spec.Shown = p.Images[want.Image].Root, p.Images[want.Image].Shown
	}
	if err := os.MkdirAll(spec.Dir, 0o700); err != nil {
		return spec, fmt.Errorf("cannot make the sandbox's directory: %w", err)
	}
	for _, v := range want.Volumes {
		source, err := p.provide(ctx, v, filepath.Join(want.Trial, want.Role))
		if err != nil {
			return spec, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		spec.Mounts = append(spec.Mounts, sandbox.Mount{Volume: v, Source: source})
	}
	if want.Writable {
		base, err := p.medium(volume.Disk)
		if err != nil {
			return spec, err
		}
		spec.Upper = filepath.Join(base, want.Trial, want.Name+"-upper")
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
	if want.Addresses > 0 {
		if spec.Network.Further, err = p.Bridge.Further(spec.Network, want.Addresses); err != nil {
			return spec, fmt.Errorf("cannot give the sandbox more addresses: %w", err)
		}
	}
	return spec, nil
}

// provide makes a volume, unless the trial has it already, and returns its directory, file or
// device. The path at is below the directories for data.
func (p *Place) provide(ctx context.Context, v volume.Volume, at string) (source string, err error) {
	if v.Medium == volume.Device {
		return v.Device, p.given(v)
	}
	if v.Medium == volume.Bind {
		return v.Host, directory(v)
	}
	base, err := p.medium(v.Medium)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, at, v.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if v.Mode == volume.Filesystem && v.Medium != volume.Image {
		return dir, nil
	}
	if v.Size <= 0 {
		return "", errors.New("the disk has no size; set one")
	}
	file := filepath.Join(dir, "disk.raw")
	if _, err := os.Stat(file); err == nil {
		return file, nil // of another sandbox of the role
	}
	if v.Mode == volume.Filesystem {
		return file, ext4.Make(ctx, file, "", v.Size)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // in our own directory
	if err != nil {
		return "", err
	}
	return file, errors.Join(f.Truncate(v.Size), f.Close())
}

// Storage implements trial.Describer.
func (*Place) Storage(m sandbox.Mount) string {
	below := storage.New().Describe(m.Source)
	if below == "" {
		return ""
	}
	switch {
	case m.Medium == volume.Device:
		return "block, the device " + below
	case m.Mode == volume.Block:
		return "block, a file on " + below
	case m.Medium == volume.Image:
		return "filesystem, in a file on " + below
	}
	return "filesystem, a directory on " + below
}

// directory says what is wrong with a directory that the user gave.
func directory(v volume.Volume) error {
	st, err := os.Stat(v.Host)
	switch {
	case err != nil:
		return fmt.Errorf("cannot mount %s at %s: %w", v.Host, v.Path(), err)
	case !st.IsDir():
		return fmt.Errorf("cannot mount %s at %s: it is not a directory; give the directory that it is in", v.Host, v.Path())
	}
	return nil
}

// given refuses a device that is in use, that holds something, because that would be lost, or behind which
// there is another disk than when it was first asked for. open(2): O_EXCL on a block device fails with EBUSY
// while it is mounted or part of another device.
func (p *Place) given(v volume.Volume) error {
	if v.Mode != volume.Block {
		return fmt.Errorf("tare would create a new file system on %s; use it as a block volume", v.Device)
	}
	var st unix.Stat_t
	switch err := unix.Stat(v.Device, &st); {
	case err != nil:
		return fmt.Errorf("there is no device %s: %w", v.Device, err)
	case st.Mode&unix.S_IFMT != unix.S_IFBLK:
		return fmt.Errorf("%s is not a block device; name one, such as /dev/sdb", v.Device)
	}
	if err := mounted(v.Device, st.Rdev); err != nil {
		return err
	}
	f, err := os.OpenFile(v.Device, os.O_RDWR|unix.O_EXCL, 0)
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%s is in use: it is part of another device, or mounted elsewhere; unmount it, or name another", v.Device)
	case errors.Is(err, unix.EROFS), errors.Is(err, unix.EACCES):
		return readOnlyDevice(v.Device)
	case err != nil:
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	fixed, roErr := unix.IoctlGetInt(int(f.Fd()), unix.BLKROGET) // open(2) lets it be opened for writing all the same
	if err = errors.Join(err, roErr, f.Close()); err != nil {
		return err
	}
	switch {
	case fixed != 0:
		return readOnlyDevice(v.Device)
	case size == 0:
		return fmt.Errorf("%s has no disk behind it; attach one, or name another device", v.Device)
	case size < v.Size:
		return fmt.Errorf("%s has %s, and the workload needs %s; set a smaller size, or name another device", v.Device, param.FormatSize(size), param.FormatSize(v.Size))
	}
	if err := free(v.Device, v.Overwrite); err != nil {
		return err
	}
	return p.sameDisk(v.Device, diskSequence(st.Rdev))
}

// sameDisk refuses a device whose name belongs to another disk since the study began. What that one holds may
// be nothing that blkid knows, and still somebody's.
func (p *Place) sameDisk(device, seq string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first, known := p.disks[device]; known && first != seq {
		return fmt.Errorf("%s is another disk than when the study began, or was taken away and given back; if tare may write to it, repeat the same command", device)
	}
	if p.disks == nil {
		p.disks = map[string]string{}
	}
	p.disks[device] = seq
	return nil
}

// diskSequence is a number that no two disks have, nor one disk that came back: diskseq in
// Documentation/ABI/stable/sysfs-block, since Linux 5.15. A partition has its disk's. It is "" if the kernel does not
// tell.
func diskSequence(device uint64) string {
	dir := fmt.Sprintf("/sys/dev/block/%d:%d/", unix.Major(device), unix.Minor(device))
	for _, file := range []string{"diskseq", "../diskseq"} {
		if b, err := os.ReadFile(dir + file); err == nil { //nolint:gosec // below /sys
			return strings.TrimSpace(string(b))
		}
	}
	return ""
}

func readOnlyDevice(path string) error {
	return fmt.Errorf("%s is read-only; make it writable (blockdev --setrw), or name another device", path)
}

// free refuses a device with a file system, a partition table or the like, as blkid(8) finds
// them: it exits with 2 if it finds nothing. A user who wants to lose them says which they are, so that
// a device's name that is wrong, or that another disk has since, is refused.
func free(device, overwrite string) error {
	blkid, ok := rootfs.Lookup("blkid")
	if !ok {
		return fmt.Errorf("cannot tell whether %s holds data: this host has no blkid; apt-get install util-linux", device)
	}
	out, err := exec.Command(blkid, "--probe", "--output", "export", device).Output() //nolint:gosec // the user's own device
	var exit *exec.ExitError
	switch {
	case err == nil && overwrite != "" && holds(string(out)) == overwrite:
		return nil
	case err == nil && overwrite != "":
		return fmt.Errorf("%s holds %q, and overwrite = %q names something else; look what is on the device, and name another one if it is not the one that you mean",
			device, holds(string(out)), overwrite)
	case err == nil:
		return fmt.Errorf("%s contains %s; if you do not need it, write overwrite: %q in the workload, or name another device",
			device, contents(string(out)), holds(string(out)))
	case errors.As(err, &exit) && exit.ExitCode() == 2:
		return nil
	}
	return fmt.Errorf("cannot tell whether %s holds data: blkid: %w", device, err)
}

// found reads blkid's lines KEY=VALUE, in which blkid puts a backslash before what a shell would not take as it is.
func found(export string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(export) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		out[key] = escaped.ReplaceAllString(value, "$1")
	}
	return out
}

var escaped = regexp.MustCompile(`\\(.)`)

// contents says in words what blkid has found on a device: a file system, its label and its UUID.
func contents(export string) string {
	f := found(export)
	out := "data of an unknown kind"
	switch {
	case f["USAGE"] == "filesystem":
		out = "a file system, " + f["TYPE"]
	case f["USAGE"] == "crypto":
		out = "an encrypted volume, " + f["TYPE"]
	case f["TYPE"] != "": // swap, or a part of a RAID or of a volume group
		out = "data of the type " + f["TYPE"]
	case f["PTTYPE"] != "":
		out = "a partition table, " + f["PTTYPE"]
	}
	var with []string
	if l := f["LABEL"]; l != "" {
		with = append(with, fmt.Sprintf("the label %q", l))
	}
	if id := cmp.Or(f["UUID"], f["PTUUID"]); id != "" {
		with = append(with, "the UUID "+id)
	}
	if len(with) > 0 {
		out += ", with " + strings.Join(with, " and ")
	}
	return out
}

// holds names what is on a device for the parameter overwrite: its kind, and the identity that no
// other has.
func holds(export string) string {
	found := found(export)
	kind := cmp.Or(found["TYPE"], found["PTTYPE"], "unknown data")
	return strings.TrimSpace(kind + " " + cmp.Or(found["UUID"], found["PTUUID"], found["LABEL"]))
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
	var left []error
	if _, err := p.Set(nil); err != nil {
		left = append(left, fmt.Errorf("host setting: %w", err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
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
// of a link between two; a delay is for both ways already, and so is a path.
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
		if want.Path != "" && i == 0 {
			if err := p.Bridge.Path(n, want.Path); err != nil {
				return fmt.Errorf("cannot set the path of the link: %w", err)
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
func (*Place) Available(context.Context, string) (int64, error) { return freemem.Read() }

// Used implements trial.Filer. It does not use the free space of the file system, which changes with everything that is
// written there. A file's blocks include those that are not allocated yet on ext4, XFS and Btrfs (delayed allocation).
func (p *Place) Used(name string) (int64, error) { return blocks(filepath.Join(p.Data, name)) }

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
