package pod

import (
	"errors"
	"fmt"
	"strings"

	"tare/cluster/kube"
	"tare/sandbox"
	"tare/volume"
)

// insecure explains that Pod Security admission has refused a pod, as a sandbox.RefusedError; nil if the API server had another reason.
func (k *RuntimeClass) insecure(refusal error, want *sandbox.Want) error {
	level, what, is := kube.Violation(refusal.Error())
	if !is {
		return nil
	}
	asks, instead := k.host(want)
	if len(asks) == 0 { // an annotation of the study, or a standard that is newer than tare
		asks, instead = []string{fmt.Sprintf("this pod (%s)", what)}, []string{"leave out what asks for it"}
	}
	whose := "namespace " + k.study.Namespace
	if k.study.UID != "" {
		whose = "the study's own namespace"
	}
	return &sandbox.RefusedError{Raw: refusal.Error(), Why: fmt.Sprintf("%s enforces the Pod Security level %s, which does not admit %s; %s, or give -n NAME with a namespace that admits it: "+
		"`kubectl label namespace NAME pod-security.kubernetes.io/enforce=privileged`", whose, level, strings.Join(asks, " and "), strings.Join(instead, " and "))}
}

// host are the settings of a study that have a pod see its node, and what to write instead.
func (k *RuntimeClass) host(want *sandbox.Want) (asks, instead []string) {
	for _, s := range []struct {
		is      bool
		key, no string
	}{{k.set.hostNetwork, keyNetwork, onPodNetwork}, {k.set.hostNamespace, keyNamespaces, ofPod}} {
		if s.is {
			asks, instead = append(asks, fmt.Sprintf("`%s: %s`", s.key, ofHost)), append(instead, fmt.Sprintf("write `%s: %s`", s.key, s.no))
		}
	}
	if len(asks) > 0 {
		asks[0] += " of sandbox " + k.name
	}
	for _, v := range want.Volumes {
		if v.Medium == volume.Bind {
			asks, instead = append(asks, "the node's directory "+v.Host+", which the workload mounts"), append(instead, "leave the mount out")
			break
		}
	}
	return asks, instead
}

// shortly is err, or the refusal in it alone: the name of a pod of tare's own says nothing.
func shortly(err error) error {
	if r, is := errors.AsType[*sandbox.RefusedError](err); is {
		return r
	}
	return err
}
