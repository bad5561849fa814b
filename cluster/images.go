package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/cluster/pod"
	"tare/host/image"
	"tare/sandbox"
	"tare/site"
	"tare/trial"
	"tare/volume"
	"tare/workload"
)

// Image is an image that a study names, in the cluster's form.
type Image struct {
	trial.Image
	Reference string              // that pods pull
	User      string              // whose number only the image tells: a name, or a user with a named group
	UID, GID  *int64              // of its user; nil: not known, or root
	Copies    map[string][]string // references of its copies for cold starts, by processor
	Missing   string              // why the cluster cannot use it, and which it is, in words a user can act on; "": it can
}

// askWithin bounds what a registry may take to say what an image is.
const askWithin = 15 * time.Second

// lookWithin is askWithin for tare's own image, of which nothing but its absence matters.
const lookWithin = 5 * time.Second

// references finds what the names of a study's images stand for, without asking anyone. It tells the user of all images that must be
// pushed first, because each cell tells only of one.
func (s *Site) references(r site.Request, loads map[string]workload.Workload) (map[string]Image, error) {
	names, err := (&trial.Maker{Study: r.Study, Catalogue: r.Catalogue, Workloads: loads}).NeedsImages()
	if err != nil {
		return nil, err
	}
	out, push := map[string]Image{}, []string{}
	for _, name := range names {
		img := Image{}
		if img.Reference, err = reference(name, s.Apps); err != nil {
			img.Missing = fmt.Sprintf("image %s: %v", name, err)
		}
		if out[name] = img; errors.Is(err, errNotPushed) {
			push = append(push, name)
		}
	}
	if len(push) < 2 {
		return out, nil
	}
	why := fmt.Sprintf("images %s: the cluster must pull them from a registry; push them with `tare image push --study STUDY REGISTRY/PREFIX`, with the same --set, then add the flags that it prints", strings.Join(push, ", "))
	for _, name := range push {
		img := out[name]
		img.Missing = why
		out[name] = img
	}
	if s.Say != nil {
		s.Say("%s", why)
	}
	return out, nil
}

// pushes is the command that pushes what a study names as an image: a name, or a path.
func pushes(name string) string {
	return fmt.Sprintf("tare image push %s REGISTRY/%s", name, path.Base(name))
}

// ToPush lists the images of a study that are not in a registry: recipes, and files or folders of this machine.
func (s *Site) ToPush(r site.Request) ([]string, error) {
	names, err := (&trial.Maker{Study: r.Study, Catalogue: r.Catalogue, Workloads: s.Workloads}).NeedsImages()
	return slices.DeleteFunc(names, func(name string) bool {
		_, err := reference(name, s.Apps)
		return !errors.Is(err, errNotPushed)
	}), err
}

// images finds out what a study's images are, for nodes of these processors. The registries are asked from here,
// with the user's credentials. Where one does not answer, the nodes may have the image all the same.
func (s *Site) images(ctx context.Context, r site.Request, archs []string) (map[string]Image, error) {
	out, err := s.references(r, s.Workloads)
	if err != nil {
		return nil, err
	}
	var root []string
	var absent []error
	for _, name := range slices.Sorted(maps.Keys(out)) {
		img := out[name]
		if img.Missing != "" {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, askWithin)
		a, copies, err := s.ask(limited, img.Reference, archs)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, image.ErrAbsent):
			absent = append(absent, fmt.Errorf("image %s: %w", img.Reference, err))
		case errors.Is(err, image.ErrPlatform) || errors.Is(err, image.ErrReference):
			img.Missing = fmt.Sprintf("image %s: %v", name, err)
		case err != nil:
			if errors.Is(err, image.ErrInsecure) {
				err = fmt.Errorf("%w; give --insecure-registry to ask it anyway", err)
			}
			s.Say("image %s: its command, user and digest are unknown to this machine: %v", img.Reference, err)
			img.Problem = "its command is unknown; give a command"
		default:
			var isRoot bool
			if img, isRoot = described(a); isRoot {
				root = append(root, name)
			}
			img.Copies = copies
		}
		out[name] = img
	}
	if len(absent) > 0 {
		return nil, errors.Join(absent...)
	}
	if len(root) > 0 {
		s.Say("the user of these images is root, so in pods their programs run as user %d (docs/cluster.md): %s", pod.User, strings.Join(root, ", "))
	}
	return out, nil
}

// ask asks a registry about an image for each of these processors. It returns the answer for the first one, and the copies by processor.
func (s *Site) ask(ctx context.Context, reference string, archs []string) (first image.Asked, copies map[string][]string, err error) {
	copies = map[string][]string{}
	for i, arch := range archs {
		a, err := image.Ask(ctx, reference, arch, s.Insecure)
		if err != nil {
			return first, copies, err
		}
		if copies[arch] = a.Copies; i == 0 {
			first = a
		}
	}
	return first, copies, nil
}

// LookUp returns an error if no node can pull tare's image. It comes before the study is read: without the image, what the study names
// does not matter. It needs Discover.
func (s *Site) LookUp(ctx context.Context) error {
	_, err := s.lookUp(ctx, []string{s.ready[0].Status.NodeInfo.Architecture})
	if err != nil {
		return &site.UnableError{Err: err}
	}
	return nil
}

// lookUp asks the registry for tare's image, and returns its copies by processor. It returns an error only if no node can pull the image.
// If the registry does not answer from here, the nodes may still reach it.
func (s *Site) lookUp(ctx context.Context, archs []string) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	_, copies, err := s.ask(ctx, s.Image, archs)
	switch {
	case errors.Is(err, image.ErrReference):
		return nil, fmt.Errorf("--tare-image %s: %w", s.Image, err)
	case errors.Is(err, image.ErrAbsent):
		return nil, fmt.Errorf("--tare-image %s: %w; push it with `tare image push tare REFERENCE`, and pass the printed reference", s.Image, err)
	}
	return copies, nil
}

// ofPods are images as pods have them.
func ofPods(images map[string]Image) map[string]pod.Image {
	out := map[string]pod.Image{}
	for name, img := range images {
		out[name] = pod.Image{Reference: img.Reference, UID: img.UID, GID: img.GID}
	}
	return out
}

// described is an image that a registry describes, and whether its user is root.
func described(a image.Asked) (_ Image, root bool) {
	out := Image{Reference: a.Pinned, Image: trial.Image{Entrypoint: a.Entrypoint, Command: a.Command, Env: a.Env, Dir: a.Dir}}
	_, out.Digest, _ = strings.Cut(a.Pinned, "@")
	if len(a.Entrypoint)+len(a.Command) == 0 {
		out.Problem = "it has no command; give one"
	}
	if out.UID, out.GID, root = numbers(a.User); out.UID == nil && !root {
		out.User = a.User
	}
	return out, root
}

// numbers reads UID or UID:GID. Names have none.
func numbers(user string) (uid, gid *int64, root bool) {
	u, g, grouped := strings.Cut(user, ":")
	if u == "" || u == "0" || u == "root" {
		return nil, nil, true
	}
	n, err := strconv.ParseUint(u, 10, 31)
	if err != nil || n == 0 {
		return nil, nil, err == nil
	}
	id := int64(n)
	if !grouped {
		return &id, nil, false // the runtime looks its group up
	}
	if n, err = strconv.ParseUint(g, 10, 31); err != nil {
		return nil, nil, false
	}
	group := int64(n)
	return &id, &group, false
}

// errNotPushed says that the cluster cannot pull what a study names, until the user pushes it to a registry.
var errNotPushed = errors.New("the cluster must pull it from a registry")

// reference is what pods pull for the name of an image in a study.
func reference(name string, apps map[string]string) (string, error) {
	switch ref, given := apps[name]; {
	case given:
		return ref, nil
	case name == volume.HostRoot:
		return "", errors.New("a pod cannot use your machine's files; name an image with the program")
	case strings.HasPrefix(name, "/") || strings.HasPrefix(name, ".") || !strings.ContainsAny(name, "/:@"):
		return "", fmt.Errorf("%w; push it with `%s`, then give --app %s=REFERENCE", errNotPushed, pushes(name), name)
	}
	return name, nil
}

// users asks the images themselves for the numbers of users that they name, in a pod of each.
func (s *insideSite) users(ctx context.Context) {
	for i, name := range slices.Sorted(maps.Keys(s.brief.Images)) {
		img := s.brief.Images[name]
		if img.User == "" {
			continue
		}
		if err := s.user(ctx, &img, fmt.Sprintf("%s-user-%d", s.brief.ID, i), name); err != nil {
			img.Missing = fmt.Sprintf("image %s: cannot look up the number of its user %q: %v", name, img.User, err)
		}
		img.User = ""
		s.brief.Images[name] = img
	}
}

func (s *insideSite) user(ctx context.Context, img *Image, pods, name string) error {
	ctx, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
	k := pod.New(pod.Class{Name: sandbox.Native}, s.api, s.hub, s.study())
	in, err := k.Start(ctx, sandbox.Spec{Want: sandbox.Want{Name: pods, Trial: pods, Image: name}})
	if err != nil {
		return err
	}
	var said, wrong bytes.Buffer
	exit, err := in.Exec(ctx, sandbox.Command{Args: []string{"/tare", "internal", "user", img.User}, Stdout: &said, Stderr: &wrong})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("%.200s", strings.TrimSpace(wrong.String()))
	}
	var root bool
	if img.UID, img.GID, root = numbers(strings.TrimSpace(said.String())); err == nil && img.UID == nil && !root {
		err = fmt.Errorf("the image's answer is %.50q, not a number", said.String())
	}
	return errors.Join(err, in.Stop(context.WithoutCancel(ctx)))
}
