package pod

import (
	"fmt"
	"hash/crc32"

	corev1 "k8s.io/api/core/v1"

	"tare/param"
	"tare/sandbox"
)

// NodeFill is the factor for how full a sandbox's node is: idle pods of the default runtime are so many percent of the
// pods that the node can have.
const NodeFill = "node-fill"

// mostFill leaves room for the pods that are measured, and for those of the node's own services.
const mostFill = 90

func fillParam() param.Param {
	return param.Param{Name: NodeFill, Type: param.Int, Default: "0", Min: 0, Max: mostFill,
		Help: "percent of the pods that the node can have that are there already, idle: what a start costs on a full node"}
}

// fillRole is the role of the pods that fill a node.
const fillRole = "fill"

// Filler is the i-th idle pod of a node.
func (s *Study) Filler(node string, i int) *corev1.Pod {
	want := sandbox.Want{Trial: fillTrial(node), Role: fillRole}
	p := plain(s.meta(fmt.Sprintf("%s-%s-%d", s.ID, want.Trial, i), &want), s.Image, "")
	p.Spec.ActiveDeadlineSeconds = nil // it goes with the coordinator
	p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	p.Spec.Tolerations = s.Tolerations
	p.Spec.Volumes, p.Spec.Containers[0].VolumeMounts = nil, nil
	p.Spec.Containers[0].Command = []string{"/tare-pause"}
	return p
}

// Fillers is the selector of a node's idle pods.
func (s *Study) Fillers(node string) string {
	return LabelStudy + "=" + s.ID + "," + LabelTrial + "=" + fillTrial(node)
}

// fillTrial stands for a trial in names and labels, which are shorter than a node's name may be.
func fillTrial(node string) string { return fmt.Sprintf("fill-%08x", crc32.ChecksumIEEE([]byte(node))) }
