package objects

import (
	"errors"
	"fmt"

	"tare/record"
	"tare/workload/output"
)

// sane refuses readings that no kubelet can give.
func (k *Kubelets) sane() error {
	least, most := min(k.Simulated, k.SimulatedPods, k.RealPods, k.Nodes), max(k.Simulated, k.SimulatedPods, k.RealPods, k.Nodes)
	if least < 0 || most > maxCount || len(k.Missing) > maxText || !fine(maxTime, k.Sandbox, k.Create, k.Begin, k.Pull, k.Queued, k.Poll) ||
		!fine(maxSum, k.Pods, k.Cores, k.Processors) || !fine(2, k.Disk) {
		return errors.New("the readings of the kubelets are out of range")
	}
	return nil
}

// samples adds what kubelets said; nil: they were not read.
func (k *Kubelets) samples(add func(name string, u record.Unit, v float64, labels ...string)) {
	if k == nil {
		return
	}
	if k.Simulated > 0 {
		add("simulated_nodes", record.Count, float64(k.Simulated))
	}
	if k.read() {
		add("kubelets", record.Count, float64(k.Nodes))
		add("start_sandbox", record.Second, k.Sandbox)
		add("start_created", record.Second, k.Create)
		add("start_begun", record.Second, k.Begin)
		add("start_pulled", record.Second, k.Pull)
		add("start_queued", record.Second, k.Queued)
	}
	if k.Poll > 0 {
		add("kubelet_poll", record.Second, k.Poll)
	}
	if k.Processors > 0 {
		add("nodes_cpu", record.Cores, k.Cores)
		add("nodes_processors", record.Count, k.Processors)
	}
	if k.Disk > 0 {
		add("node_disk_busy", record.Fraction, k.Disk)
	}
}

// read reports whether kubelets say how the time of a pod's start passed.
func (k *Kubelets) read() bool { return k != nil && k.Nodes > 0 && k.Pods > 0 }

// busy returns the parts of the processors' time and of the disk's time that were used.
func (k *Kubelets) busy() (cpu, disk float64) {
	if k.Processors > 0 {
		cpu = k.Cores / k.Processors
	}
	return cpu, k.Disk
}

// inNodes says what in the nodes bound pods that took so long there. Its text continues the text before it. pulls: that time includes the pulls
// of images. The share is 0 if it is only known that the nodes bind. Requests to the runtime for several pods run at the same time, so the
// means for a pod compare with the time of a start, and the sums do not.
func (s *Step) inNodes(took float64, pulls bool) (b Bound) {
	k := s.Kubelets
	b.By = ByNodes
	if k == nil {
		return b
	}
	if k.Simulated > 0 {
		b.Text = fmt.Sprintf("; %s (kwok) ran %s: kwok's own delay, no runtime", counted(k.Simulated, "simulated node"), counted(k.SimulatedPods, "pod"))
		if k.RealPods == 0 {
			return b
		}
	}
	runtime, pull := k.Sandbox+k.Create+k.Begin, 0.0
	if pulls {
		pull = k.Pull
	}
	rest := max(0, took-runtime-pull)
	if k.read() {
		b.Text += fmt.Sprintf("; on %s: %s to create the sandbox, %s to create and start containers", counted(k.Nodes, "node"), output.Seconds(k.Sandbox), output.Seconds(k.Create+k.Begin))
		if pulls {
			b.Text += fmt.Sprintf(", %s to pull images", output.Seconds(pull))
		}
		b.Text += fmt.Sprintf(", and %s that the kubelet and its watch took", output.Seconds(rest))
		if k.Queued > 0 {
			b.Text += fmt.Sprintf(", %s of it in the kubelet's queue", output.Seconds(k.Queued))
		}
		if k.Poll > 0 {
			b.Text += fmt.Sprintf("; the kubelet polled the runtime every %s", output.Seconds(k.Poll))
		}
	}
	cpu, disk := k.busy()
	if k.Processors > 0 {
		b.Text += fmt.Sprintf("; %.1f of %.4g processors were busy", k.Cores, k.Processors)
	}
	if disk > 0 {
		b.Text += fmt.Sprintf("; the busiest disk of the load's node was busy for %.0f %% of the step", 100*disk)
	}
	if k.Missing != "" {
		b.Text += "; " + k.Missing
	}
	most := max(rest, runtime, pull)
	polled := k.read() && most == rest && rest <= k.Poll // more processors would not shorten the wait for a poll
	switch {
	case k.SimulatedPods > k.RealPods: // the means are kwok's
		return b
	case cpu >= full && !polled:
		b.By, b.Share = ByNodeCPU, min(1, cpu)
	case disk >= full:
		b.By, b.Share = ByDisk, min(1, disk)
	case !k.read():
	case most == rest:
		b.By, b.Share = ByKubelet, rest/took
	case most == runtime:
		b.By, b.Share = ByRuntime, min(1, runtime/took)
	default:
		b.By, b.Share = ByPull, min(1, pull/took)
	}
	return b
}
