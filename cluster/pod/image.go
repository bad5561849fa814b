package pod

import (
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/moby/sys/user"
	corev1 "k8s.io/api/core/v1"

	"tare/internal/files"
)

// Image is a root file system that pods of a study use instead of tare's own.
type Image struct {
	Reference string
	UID, GID  *int64 // of its user; nil: User
}

// Where the container that copies tare puts it, and where the program is in every image.
const (
	copies  = "/copy"
	program = "/tare"
)

// into has a pod run from the image. Its first process is this program all the same, which a container
// of tare's own image copies to the pod before: so the image needs nothing, not even a shell.
func (i Image) into(p *corev1.Pod, tare string) {
	main := &p.Spec.Containers[0]
	first := corev1.Container{
		Name: "copy", Image: tare, ImagePullPolicy: main.ImagePullPolicy, SecurityContext: main.SecurityContext.DeepCopy(), Resources: main.Resources,
		Command:      []string{program, "internal", "copy", path.Join(copies, path.Base(program))},
		VolumeMounts: []corev1.VolumeMount{{Name: "program", MountPath: copies}},
	}
	p.Spec.InitContainers = append(p.Spec.InitContainers, first)
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "program", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	main.Image = i.Reference
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "program", MountPath: program, SubPath: path.Base(program), ReadOnly: true})
	if i.UID == nil {
		return
	}
	// Without a group the runtime takes the user's from the image, unless the pod has one.
	first.SecurityContext.RunAsUser, first.SecurityContext.RunAsGroup = p.Spec.SecurityContext.RunAsUser, p.Spec.SecurityContext.RunAsGroup
	p.Spec.SecurityContext.RunAsUser, p.Spec.SecurityContext.RunAsGroup = nil, nil
	main.SecurityContext.RunAsUser, main.SecurityContext.RunAsGroup = i.UID, i.GID
}

// environment is that of commands, where the image and the runtime say nothing.
func (k *RuntimeClass) environment(image string) []string {
	switch {
	case image == "":
		return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp"}
	case k.study.Images[image].UID == nil:
		return []string{"HOME=/tmp"} // User has no home in the image
	}
	return nil
}

// cold returns an error if a start should have been cold but was not, or may not have been. The kubelet sends the event Pulling if, and
// only if, it begins to pull an image.
func (i *instance) cold() error {
	switch {
	case i.spec.Copy == "" || !i.heard.at[eventPulling].IsZero():
		return nil
	case !i.heard.at[eventPulled].IsZero():
		return fmt.Errorf("the start was not cold: the node %s already had the image %s", i.pod.Spec.NodeName, i.spec.Copy)
	}
	return errors.New("cannot tell whether the start was cold: the kubelet's events Pulling and Pulled did not arrive")
}

// Copy is `tare internal copy TO`. It copies this program for a container of another image.
func Copy(args []string, _ io.Writer) error {
	if len(args) != 1 {
		return errors.New("give the path of the copy")
	}
	return files.Copy(args[0], "/proc/self/exe", 0o755)
}

// Number is `tare internal user NAME`: it prints UID:GID of a user in this image, found as engines
// do (https://github.com/opencontainers/image-spec/blob/main/config.md).
func Number(args []string, stdout io.Writer) error {
	if len(args) != 1 {
		return errors.New("give a user")
	}
	u, err := user.GetExecUserPath(args[0], nil, "/etc/passwd", "/etc/group")
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%d:%d\n", u.Uid, u.Gid)
	}
	return err
}
