package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"tare/host/cgroup"
	"tare/host/rootfs"
	"tare/host/state"
	"tare/sandbox"
	"tare/sandbox/all"
)

// launches in each round on each side.
const launches = 5

// startup is the lifecycle of /bin/true in a container of runc, as the workload
// startup times it, beside hyperfine on `runc run` of an equal bundle. A second
// hyperfine in each round shows what difference the machine makes by itself.
func (b *bench) startup(ctx context.Context) (_ []row, err error) {
	l := lifecycle{bench: b, args: []string{"/bin/true"}, name: "bench" + strconv.FormatInt(int64(os.Getpid()), 36)}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	const figure = "startup of `true` under runc, whole lifecycle"
	hyperfine, ok := rootfs.Lookup("hyperfine")
	n := b.wants(24)
	if !ok {
		var v []float64
		for range n {
			x, err := l.ours(ctx)
			if err != nil {
				return nil, err
			}
			v = append(v, x)
		}
		return []row{{Figure: figure, Unit: "s", Tare: median(v), Rounds: n, Note: "hyperfine is not installed: nothing beside it"}}, nil
	}
	var pairs, null []pair
	for i := range n {
		var got [3]float64 // ours, hyperfine, hyperfine again; each comes first in every third round
		for j := range got {
			k := (i + j) % len(got)
			if k == 0 {
				got[k], err = l.ours(ctx)
			} else {
				got[k], err = l.theirs(ctx, hyperfine)
			}
			if err != nil {
				return nil, err
			}
		}
		pairs = append(pairs, pair{got[0], got[1]})
		null = append(null, pair{got[2], got[1]})
	}
	r := row{Figure: figure, Unit: "s"}.beside("difference", "hyperfine", pairs).below(1e-3)
	r.Note = fmt.Sprintf("a round is the medians of %d launches on each side", launches)
	c := row{Figure: "the same, hyperfine in place of tare", Unit: "s"}.beside("difference", "hyperfine", null)
	c.Note = "what the machine alone makes of equal things"
	return []row{r, c}, nil
}

// lifecycle is what both sides need to take a container from start to removal.
type lifecycle struct {
	*bench
	name   string   // of everything on the host
	args   []string // the container's program
	dir    string   // files of both sides
	tree   string
	kind   sandbox.Launcher
	runc   string
	state  string // runc's own, for hyperfine's side
	bundle string
	group  *cgroup.Group
	count  int
}

func (l *lifecycle) command() sandbox.Command { return sandbox.Command{Args: l.args} }

// open finds runc and makes the bundle for hyperfine.
func (l *lifecycle) open(ctx context.Context) (err error) {
	if l.dir, err = (state.Dirs{Base: state.RunDir}).Make(l.name); err != nil {
		return err
	}
	for _, k := range all.Kinds(all.Env{StateDir: l.dir}) {
		if k.Name() == "runc" {
			l.kind, _ = k.(sandbox.Launcher)
		}
	}
	if l.kind == nil {
		return errors.New("tare has no kind runc that launches")
	}
	if err := l.kind.Check(ctx); err != nil {
		return err
	}
	tree, err := rootfs.Build(ctx, "/var/cache/tare/rootfs", l.tare, []string{"true"})
	if err != nil {
		return err
	}
	l.tree = tree.Path
	l.runc, _ = rootfs.Lookup("runc")
	return l.equalBundle(ctx)
}

// equalBundle takes the config.json that tare wrote for a sandbox, changed in
// the command and the name of the group. That group's parent is made
// beforehand, as tare does it, so that runc finds the same.
func (l *lifecycle) equalBundle(ctx context.Context) error {
	spec, err := l.spec("seen")
	if err != nil {
		return err
	}
	i, err := l.kind.Start(ctx, spec)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(spec.Dir, "bundle", "config.json"))
	if err := errors.Join(err, i.Stop(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	name := l.name + "-plain"
	if text, err = changeConfig(text, l.command().Args, "/tare/"+name+"/c"); err != nil {
		return err
	}
	l.bundle = filepath.Join(l.dir, "plain")
	if err := os.Mkdir(l.bundle, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(l.bundle, "config.json"), text, 0o600); err != nil { //nolint:gosec // in our own directory
		return err
	}
	h, err := cgroup.Detect()
	if err != nil {
		return err
	}
	if l.group, err = h.Create("tare/"+name, cgroup.Limits{}); err != nil {
		return err
	}
	// With a runtime.json `tare clean` can delete what a crash leaves.
	l.state = filepath.Join(state.RunDir, "oci", l.name)
	if err := os.MkdirAll(l.state, 0o700); err != nil {
		return err
	}
	how, err := json.Marshal(state.Runtime{Binary: l.runc})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.state, "runtime.json"), how, 0o600)
}

func changeConfig(text []byte, args []string, group string) ([]byte, error) {
	var c map[string]any
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	process, ok1 := c["process"].(map[string]any)
	linux, ok2 := c["linux"].(map[string]any)
	if !ok1 || !ok2 {
		return nil, errors.New("config.json has no process or no linux")
	}
	process["args"], linux["cgroupsPath"] = args, group
	return json.MarshalIndent(c, "", "\t")
}

func (l *lifecycle) spec(suffix string) (sandbox.Spec, error) {
	name := l.name + "-" + suffix
	dir := filepath.Join(l.dir, suffix)
	// All: a Check takes its directory away again when nothing else is in it.
	return sandbox.Spec{Want: sandbox.Want{Name: name}, Dir: dir, Root: l.tree}, os.MkdirAll(dir, 0o700)
}

// ours is the median of the launches that tare launches, after one that is not
// counted, as at hyperfine.
func (l *lifecycle) ours(ctx context.Context) (float64, error) {
	var v []float64
	for i := range launches + 1 {
		l.count++
		spec, err := l.spec(strconv.Itoa(l.count))
		if err != nil {
			return 0, err
		}
		got, err := l.kind.Launch(ctx, spec, l.command(), sandbox.Whole)
		if err == nil && got.Exit.Code != 0 {
			err = fmt.Errorf("true ended with exit code %d", got.Exit.Code)
		}
		if err := errors.Join(err, os.RemoveAll(spec.Dir)); err != nil {
			return 0, err
		}
		if i > 0 {
			v = append(v, got.Deleted.Seconds())
		}
	}
	return median(v), nil
}

// theirs is the median that hyperfine finds, without a shell between.
func (l *lifecycle) theirs(ctx context.Context, hyperfine string) (float64, error) {
	file := filepath.Join(l.dir, "hyperfine.json")
	cmd := exec.CommandContext(ctx, hyperfine, "-N", "--style", "none", "--warmup", "1", "--runs", strconv.Itoa(launches), "--export-json", file, //nolint:gosec // the peer
		fmt.Sprintf("%s --root %s run --bundle %s %s", l.runc, l.state, l.bundle, l.name))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("hyperfine: %w: %s", err, tail(said.Bytes()))
	}
	text, err := os.ReadFile(file) //nolint:gosec // our own file
	if err != nil {
		return 0, err
	}
	return parseHyperfine(text)
}

// parseHyperfine reads the times of --export-json, in seconds.
func parseHyperfine(text []byte) (float64, error) {
	var out struct {
		Results []struct {
			Times []float64 `json:"times"`
		} `json:"results"`
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return 0, fmt.Errorf("hyperfine's JSON: %w", err)
	}
	if len(out.Results) != 1 || len(out.Results[0].Times) == 0 {
		return 0, errors.New("hyperfine's JSON has no times")
	}
	return median(out.Results[0].Times), nil
}

// close takes everything away again.
func (l *lifecycle) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var err error
	if l.state != "" {
		// Nothing is there unless hyperfine was interrupted.
		_ = exec.CommandContext(ctx, l.runc, "--root", l.state, "delete", "--force", l.name).Run() //nolint:gosec // the runtime
		err = os.RemoveAll(l.state)
		_ = os.Remove(filepath.Dir(l.state)) // if it is empty
	}
	if l.group != nil {
		err = errors.Join(err, l.group.Destroy(ctx))
	}
	if l.dir != "" {
		err = errors.Join(err, (state.Dirs{Base: state.RunDir}).Remove(l.name))
	}
	return err
}
