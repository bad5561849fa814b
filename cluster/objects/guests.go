package objects

import (
	"cmp"
	"time"
)

// machines is the path of KubeVirt's virtual machines.
const machines = "/apis/kubevirt.io/v1/virtualmachineinstances"

// seenGuest has the fields of a VirtualMachineInstance that the load needs.
type seenGuest struct {
	Metadata meta `json:"metadata"`
	Status   struct {
		Phase      string      `json:"phase"`
		NodeName   string      `json:"nodeName"` // virt-controller writes it when it hands the machine over
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// boots notes an event of a virtual machine that was received at a moment.
func (p *pods) boots(e *event[seenGuest], at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, s := p.waited[e.Object.Metadata.Labels.Object], &e.Object.Status
	if o == nil || e.Type == deleted {
		return
	}
	if o.handed.IsZero() && s.NodeName != "" {
		o.handed = at
	}
	switch {
	case !o.booted.IsZero():
	case s.Phase == running || s.Phase == succeeded:
		o.booted = at
		p.running++
		p.arrived(1)
	default:
		for _, c := range s.Conditions {
			if c.Type == "Synchronized" && c.Status == "False" { // virt-controller or virt-handler failed
				p.message = cmp.Or(bounded(c.Message), p.message)
			}
		}
	}
}

// machineSpec is the smallest virtual machine, on the same nodes as a pod would be. It has no disk and no network: its guest is the firmware.
func machineSpec(o *options) fields {
	spec := fields{
		"terminationGracePeriodSeconds": 0,
		"domain": fields{
			"memory":  fields{"guest": "64Mi"},
			"devices": fields{"autoattachPodInterface": false, "autoattachGraphicsDevice": false, "autoattachMemBalloon": false, "autoattachSerialConsole": false},
		},
	}
	of := podSpec(o)
	for _, field := range []string{"affinity", "tolerations", "nodeSelector"} {
		if v, has := of[field]; has {
			spec[field] = v
		}
	}
	return spec
}
