package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// module is a folder below modules/ whose go.mod pins what is built.
type module struct {
	name   string
	main   string                                          // the module that has the version worth knowing
	rename map[string]string                               // the program's name, where it is not the end of its path
	flags  func(version string) string                     // more for the linker; nil: none
	patch  *patch                                          // nil: none
	extra  func(ctx context.Context, dir, to string) error // other files to keep; nil: none
	wanted func(options) bool                              // built only if it is asked for; nil: always
}

// modules are all of them, the fastest to build first.
func modules() []module {
	return []module{
		{name: "etcd", main: "go.etcd.io/etcd/server/v3", rename: map[string]string{"v3": "etcd"}},
		{name: "cni", main: "github.com/containernetworking/plugins"},
		{name: "registry", main: "github.com/google/go-containerregistry"},
		{name: "gvisor", main: "gvisor.dev/gvisor", rename: map[string]string{"shim": "containerd-shim-runsc-v1"}, patch: killableShim()},
		{name: "containerd", main: "github.com/containerd/containerd/v2"},
		{name: "provisioner", main: "sigs.k8s.io/sig-storage-lib-external-provisioner/v13"},
		{name: "kubernetes", main: "k8s.io/kubernetes", flags: versionFlags},
		{name: "kwok", main: "sigs.k8s.io/kwok", extra: stages},
		{name: "haproxy-ingress", main: "github.com/jcmoraisjr/haproxy-ingress", rename: map[string]string{"pkg": controllerProgram}, extra: controllerRecipe, wanted: func(o options) bool { return o.ingress }},
		{name: "kubevirt", main: kubeVirtModule, flags: kubeVirtFlags, patch: newConditions(), wanted: func(o options) bool { return o.kubeVirt }},
	}
}

// versionFlags tell the programs of Kubernetes their version. Without it kubectl and the API
// server call themselves v0.0.0-master and refuse what newer servers have.
func versionFlags(version string) string {
	var out strings.Builder
	part := strings.Split(strings.TrimPrefix(version, "v"), ".")
	for _, p := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		fmt.Fprintf(&out, " -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
			p, version, part[0], part[1])
	}
	return out.String()
}

// pins is a go.mod, as `go mod edit -json` prints it.
type pins struct {
	Require []struct{ Path, Version string }
	Tool    []struct{ Path string }
}

// pins reads the go.mod of a module.
func (m module) pins(ctx context.Context, dir string) (pins, error) {
	var p pins
	text, err := goTool(ctx, filepath.Join(dir, m.name), "mod", "edit", "-json")
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal([]byte(text), &p)
}

// programs are the packages that a go.mod names as tools, and the names of their files.
func (m module) programs(p pins) (pkgs, files []string) {
	for _, t := range p.Tool {
		name := path.Base(t.Path)
		if n, ok := m.rename[name]; ok {
			name = n
		}
		pkgs, files = append(pkgs, t.Path), append(files, name)
	}
	return pkgs, files
}

// version is the version of the module that the programs are from.
func (m module) version(p pins) string {
	for _, r := range p.Require {
		if r.Path == m.main {
			return r.Version
		}
	}
	return "v?.?.?"
}

// linkerFlags leave out what only a debugger reads.
func (m module) linkerFlags(p pins) string {
	const small = "-s -w"
	if m.flags == nil {
		return small
	}
	return small + m.flags(m.version(p))
}

// buildArgs build one package at a time: other work shares the processors.
func buildArgs(flags string) []string {
	return []string{"build", "-p", "1", "-trimpath", "-buildvcs=false", "-ldflags", flags}
}

// list prints a line for each module: its version and its programs.
func list(ctx context.Context, out io.Writer, dir string) error {
	for _, m := range modules() {
		p, err := m.pins(ctx, dir)
		if err != nil {
			return err
		}
		_, files := m.programs(p)
		fmt.Fprintf(out, "%s %s: %s\n", m.main, m.version(p), strings.Join(files, " "))
	}
	return nil
}

// versionsKey is a digest of everything that the programs are built from, and of how.
func versionsKey(dir string) (string, error) {
	sum := sha256.New()
	for _, m := range modules() {
		fmt.Fprintln(sum, m.name, buildArgs(m.linkerFlags(pins{})), m.patch)
		files, err := filepath.Glob(filepath.Join(dir, m.name, "*"))
		if err != nil {
			return "", err
		}
		if len(files) == 0 {
			return "", fmt.Errorf("there is no %s; run this program in the project's folder", filepath.Join(dir, m.name))
		}
		for _, f := range files {
			b, err := os.ReadFile(f) //nolint:gosec // a file of this project
			if err != nil {
				return "", err
			}
			fmt.Fprintf(sum, "%s %x\n", filepath.Base(f), sha256.Sum256(b))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// built says whether all programs are there.
func (p places) built() bool {
	_, err := os.Stat(p.program("complete"))
	return err == nil
}

// build builds what is missing, of the modules that are always built and of those that are asked for.
func (l *lab) build(ctx context.Context, o options) error {
	complete := l.built()
	if err := os.MkdirAll(l.bin, 0o755); err != nil { //nolint:gosec // nodes run the programs
		return err
	}
	for _, m := range modules() {
		if m.wanted != nil && !m.wanted(o) || m.wanted == nil && complete {
			continue
		}
		if err := l.buildModule(ctx, m); err != nil {
			return fmt.Errorf("cannot build %s: %w", m.name, err)
		}
	}
	return os.WriteFile(l.program("complete"), nil, 0o600)
}

func (l *lab) buildModule(ctx context.Context, m module) error {
	p, err := m.pins(ctx, moduleDir)
	if err != nil {
		return err
	}
	dir := filepath.Join(moduleDir, m.name)
	if m.extra != nil {
		if err := m.extra(ctx, dir, l.bin); err != nil {
			return err
		}
	}
	missing := map[string]string{} // packages by the names of their programs
	pkgs, files := m.programs(p)
	for i, pkg := range pkgs {
		if _, err := os.Stat(l.program(files[i])); err != nil {
			missing[files[i]] = pkg
		}
	}
	if len(missing) == 0 {
		return nil
	}
	tmp, err := os.MkdirTemp(l.cache, "build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	args := buildArgs(m.linkerFlags(p))
	if m.patch != nil {
		if dir, err = m.patch.apply(ctx, dir, tmp); err != nil {
			return err
		}
		args = append(args, "-mod=vendor")
	}
	for name, pkg := range missing {
		out := filepath.Join(tmp, name)
		if _, err := goTool(ctx, dir, append(slices.Clip(args), "-o", out, pkg)...); err != nil {
			return err
		}
		if err := os.Rename(out, l.program(name)); err != nil {
			return err
		}
		l.done("built %s of %s %s", name, m.main, m.version(p))
	}
	return nil
}

// prune removes the programs of other versions, and builds that were killed. No cluster runs.
func (l *lab) prune() error {
	entries, err := os.ReadDir(l.cache)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if path := filepath.Join(l.cache, e.Name()); path != l.bin && path != l.run {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// goTool runs the Go tool in a module's folder and returns what it prints.
func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // a fixed list
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	out, err := output(cmd)
	if err != nil {
		return "", fmt.Errorf("%s: %w", args[0], err)
	}
	return out, nil
}

// sourceOf returns the folder of a module's source, after fetching it.
func sourceOf(ctx context.Context, dir, module string) (string, error) {
	if _, err := goTool(ctx, dir, "mod", "download", module); err != nil {
		return "", err
	}
	return goTool(ctx, dir, "list", "-m", "-f", "{{.Dir}}", module)
}

// patch is one change to a module's source. name is the function that has it.
type patch struct{ name, file, old, replacement string }

// killableShim makes gVisor's shim leave its out-of-memory score alone. It fails to start a
// pod if it cannot lower it, which needs CAP_SYS_RESOURCE; many containers lack that.
// containerd's own shim goes on.
func killableShim() *patch {
	return &patch{"killableShim", "vendor/gvisor.dev/gvisor/pkg/shim/v1/manager.go", "oomScoreMax = -999", "oomScoreMax = 0"}
}

// apply makes a copy of a module with its dependencies in a vendor folder, and changes the one
// file there. (An overlay of go build may not replace files of the module cache.)
func (p patch) apply(ctx context.Context, dir, tmp string) (string, error) {
	if err := os.CopyFS(tmp, os.DirFS(dir)); err != nil {
		return "", err
	}
	if _, err := goTool(ctx, tmp, "mod", "vendor"); err != nil {
		return "", err
	}
	file := filepath.Join(tmp, p.file)
	text, err := os.ReadFile(file) //nolint:gosec // of a module that go.sum pins
	if err != nil {
		return "", err
	}
	if strings.Count(string(text), p.old) != 1 {
		return "", fmt.Errorf("%s does not have %q once; look how that version does it, and change %s", p.file, p.old, p.name)
	}
	return tmp, os.WriteFile(file, bytes.Replace(text, []byte(p.old), []byte(p.replacement), 1), 0o600) //nolint:gosec // our own folder
}

// stages keeps what kwok needs to know: how a simulated node and pod become ready. Its
// module has that as files.
func stages(ctx context.Context, dir, to string) error {
	source, err := sourceOf(ctx, dir, "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	var all []byte
	for _, part := range []string{"node/fast", "node/heartbeat-with-lease", "pod/fast"} {
		files, err := filepath.Glob(filepath.Join(source, "kustomize", "stage", part, "*.yaml"))
		if err != nil {
			return err
		}
		for _, f := range files {
			if filepath.Base(f) == "kustomization.yaml" {
				continue
			}
			b, err := os.ReadFile(f) //nolint:gosec // of a module that go.sum pins
			if err != nil {
				return err
			}
			all = append(append(all, "\n---\n"...), b...)
		}
	}
	if len(all) == 0 {
		return errors.New("the module of kwok has no stages")
	}
	return os.WriteFile(filepath.Join(to, stagesFile), all, 0o600) //nolint:gosec // our own folder
}

const stagesFile = "kwok-stages.yaml"
