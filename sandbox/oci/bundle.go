package oci

import (
	"cmp"
	_ "embed" // the template
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"tare/host/spawn"
	"tare/sandbox"
)

// writeBundle makes the bundle directory with its config.json:
// https://github.com/opencontainers/runtime-spec/blob/main/config.md
func (c *container) writeBundle(cmd sandbox.Command) error {
	if c.spec.Dir == "" || c.spec.Root == "" {
		return errors.New("a container needs a directory and a root file system")
	}
	root, err := filepath.Abs(c.spec.Root)
	if err != nil {
		return err
	}
	if err := os.Mkdir(c.bundle, 0o700); err != nil {
		return fmt.Errorf("cannot make the bundle: %w", err)
	}
	conf, err := config(c.spec, root, c.hierarchy.Absolute(c.cgroup()), cmd)
	if err == nil {
		err = c.addVolumes(conf)
	}
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(conf, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.bundle, "config.json"), b, 0o600)
}

// template is what `runc spec` proposes, with the capabilities that Docker and containerd leave
// to a container's root, and without raised limits and OOM scores: a host may refuse these
// (CAP_SYS_RESOURCE). There is no seccomp filter, as in `runc spec`; engines add theirs. The
// version is what the oldest runtimes in distributions know.
//
//go:embed config.json
var template []byte

// config is the template for one container.
func config(s sandbox.Spec, root, group string, cmd sandbox.Command) (*specs.Spec, error) {
	c := new(specs.Spec)
	if err := json.Unmarshal(template, c); err != nil {
		return nil, fmt.Errorf("config.json of tare itself: %w", err)
	}
	c.Root = &specs.Root{Path: root, Readonly: s.Upper == ""}
	p := c.Process
	p.Args, p.Cwd, p.Env = cmd.Args, cmp.Or(cmd.Dir, "/"), spawn.Environment(s, cmd.Env...)
	p.User = specs.User{UID: cmd.User.UID, GID: cmd.User.GID, AdditionalGids: cmd.User.Groups}
	if cmd.User.UID == 0 {
		// Other users have none but the bound, as execve(2) does in a sandbox whose agent changes
		// the user, and as Docker does.
		p.Capabilities.Effective, p.Capabilities.Permitted = p.Capabilities.Bounding, p.Capabilities.Bounding
	}
	if s.OwnRun() {
		c.Mounts = append(c.Mounts, specs.Mount{Destination: "/run", Type: "tmpfs", Source: "tmpfs",
			Options: append([]string{"nosuid", "nodev"}, strings.Split(sandbox.RunOptions, ",")...)})
	}
	c.Linux.CgroupsPath, c.Linux.Resources = group, resources(s)
	c.Linux.Namespaces = append(c.Linux.Namespaces, specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: s.Network.Path})
	return c, nil
}

// period is the CPU quota's, in microseconds: the kernel's default.
const period = 100_000

func resources(s sandbox.Spec) *specs.LinuxResources {
	r := &specs.LinuxResources{}
	if s.CPULimit > 0 || s.CPUs != "" {
		r.CPU = &specs.LinuxCPU{Cpus: s.CPUs}
	}
	if s.CPULimit > 0 {
		p, q := uint64(period), int64(s.CPULimit*period)
		r.CPU.Period, r.CPU.Quota = &p, &q
	}
	if s.MemoryLimit > 0 {
		limit := s.MemoryLimit
		r.Memory = &specs.LinuxMemory{Limit: &limit}
	}
	return r
}
