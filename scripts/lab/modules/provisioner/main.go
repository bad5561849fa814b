// Command provisioner gives persistent volumes of the storage classes "local" and "local-immediate"
// to claims: a folder, or a file behind a loop device, below the lab's own folder.
//
// It runs beside the control plane, on the host's file system, so it needs no helper pods: it
// makes the volume in the folder that the chosen node mounts as its /var/lib/volumes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the cluster")
	run := flag.String("run", "", "the lab's folder, which has a folder for each node")
	flag.Parse()
	if err := serve(*kubeconfig, *run); err != nil {
		fmt.Fprintln(os.Stderr, "provisioner:", err)
		os.Exit(1)
	}
}

func serve(kubeconfig, run string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	controller.NewProvisionController(ctx, client, "lab/local", &local{run: run}, controller.LeaderElection(false)).Run(ctx)
	return nil
}

// local makes volumes below run/NODE/var/lib/volumes.
type local struct {
	run  string
	next atomic.Uint32 // next node, for classes that do not wait for a pod
}

// inNode is that folder as the node sees it.
const inNode = "/var/lib/volumes"

func (l *local) folder(node string) string {
	return filepath.Join(l.run, filepath.Base(node), "var", "lib", "volumes")
}

// node returns the node for a claim's volume: the node that the scheduler chose for the claim's first
// pod or, in a class that binds immediately, the next real node.
func (l *local) node(o controller.ProvisionOptions) (string, error) {
	if o.SelectedNodeName != "" {
		return o.SelectedNodeName, nil
	}
	if m := o.StorageClass.VolumeBindingMode; m != nil && *m == storagev1.VolumeBindingWaitForFirstConsumer {
		return "", fmt.Errorf("the claim %s has no node yet", o.PVC.Name)
	}
	all, err := filepath.Glob(l.folder("*"))
	if err != nil || len(all) == 0 {
		return "", errors.Join(errors.New("the lab has no real nodes"), err)
	}
	path := strings.TrimPrefix(all[int(l.next.Add(1)-1)%len(all)], l.run+string(filepath.Separator))
	node, _, _ := strings.Cut(path, string(filepath.Separator))
	return node, nil
}

// Provision creates a volume.
func (l *local) Provision(_ context.Context, o controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	node, err := l.node(o)
	if err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	mode := v1.PersistentVolumeFilesystem
	if o.PVC.Spec.VolumeMode != nil {
		mode = *o.PVC.Spec.VolumeMode
	}
	size := o.PVC.Spec.Resources.Requests[v1.ResourceStorage]
	if _, err := os.Stat(l.folder(node)); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("node %s is not one of the lab's real nodes: %w", node, err)
	}
	seen := filepath.Join(inNode, o.PVName)
	at := filepath.Join(l.folder(node), o.PVName)
	if mode == v1.PersistentVolumeBlock {
		seen, err = block(at, size.Value())
	} else if err = os.MkdirAll(at, 0o777); err == nil {
		err = os.Chmod(at, 0o777) // whatever the umask
	}
	if err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			AccessModes:                   o.PVC.Spec.AccessModes,
			VolumeMode:                    &mode,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: size},
			PersistentVolumeSource:        v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: seen}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}, controller.ProvisioningFinished, nil
}

// SupportsBlock tells the controller that claims may ask for block devices.
func (l *local) SupportsBlock(context.Context) bool { return true }

// block makes a sparse file and returns the loop device before it.
func block(file string, size int64) (string, error) {
	if devices, err := loops(file); err == nil && len(devices) > 0 {
		return devices[0], nil // tried before
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if err := f.Truncate(size); err != nil {
		return "", err
	}
	device, err := losetup("--find", "--show", file)
	if err != nil {
		return "", err
	}
	return device, owned(device, disk, 0o660)
}

// disk is the number of the group of block devices, in Debian and Red Hat.
const disk = 6

// owned gives a block device the group and mode that udev gives it on a node. Where udev runs, it does.
func owned(device string, group int, mode os.FileMode) error {
	if _, err := os.Stat("/run/udev/control"); err == nil {
		return nil
	}
	if err := os.Chown(device, 0, group); err != nil {
		return err
	}
	return os.Chmod(device, mode)
}

// loops are the loop devices of a file.
func loops(file string) ([]string, error) {
	out, err := losetup("--noheadings", "--output", "NAME", "--associated", file)
	return strings.Fields(out), err
}

func losetup(args ...string) (string, error) {
	out, err := exec.Command("losetup", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("losetup %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Delete removes what Provision made.
func (l *local) Delete(_ context.Context, volume *v1.PersistentVolume) error {
	found, err := filepath.Glob(filepath.Join(l.run, "*", "var", "lib", "volumes", filepath.Base(volume.Name)))
	if err != nil {
		return err
	}
	for _, at := range found {
		devices, err := loops(at)
		if err != nil {
			return err
		}
		for _, d := range devices {
			if _, err := losetup("--detach", d); err != nil {
				return err
			}
			if err := owned(d, 0, 0o600); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(at); err != nil {
			return err
		}
	}
	return nil
}
