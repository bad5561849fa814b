package objects

import (
	"cmp"
	"fmt"
	"strings"

	"tare/workload/output"
)

// By is what bound a step.
type By string

// What can bind a step.
const (
	ByRefusal   By = "refusal"   // the API server refused objects: a quota, a webhook, a right
	ByRoom      By = "room"      // no node has room for the pods
	ByFairness  By = "fairness"  // priority and fairness: the API server queues requests, or refuses them with 429
	ByClient    By = "client"    // the client's own limit of requests
	BySchedule  By = "schedule"  // nothing: the objects came as they were due
	ByStore     By = "store"     // the API server waits for etcd
	ByServer    By = "server"    // the API server's processors
	ByAnswers   By = "answers"   // the time of an answer, with all workers waiting for one
	ByWorkers   By = "workers"   // the client: its workers did not wait for answers
	ByScheduler By = "scheduler" // placing the pods; of deployments, making them too
	ByNodes     By = "nodes"     // kubelets and runtimes, if nothing says what of them
	ByOutage    By = "outage"    // the API server could not be reached

	// In the nodes.
	ByNodeCPU By = "node-cpu" // the nodes' processors
	ByDisk    By = "disk"     // the disk of the load's own node
	ByPull    By = "pull"     // pulling images
	ByRuntime By = "runtime"  // creating sandboxes, creating and starting containers
	ByKubelet By = "kubelet"  // what no request to the runtime explains: queues, polls, mounts

	// Only of images that the load builds.
	ByBuild By = "build" // reading, packing and compressing the files
	ByPush  By = "push"  // pushing the image

	// Of claims and of virtual machines.
	ByController By = "controller" // the controllers that bind and release claims; virt-controller

	// Only of claims.
	ByProvisioner By = "provisioner" // creating or removing volumes
	ByAttacher    By = "attacher"    // attaching volumes to nodes or detaching them
	ByVolume      By = "volume"      // the first write
)

// Bound is a verdict on a step: what bound it, how sure that is as a share of the time that it explains, and the readings.
type Bound struct {
	By    By
	Share float64
	Text  string
}

// Bounds of the verdict. Each is a part of the time that must be explained.
const (
	much = 0.5 // of the time that a start of a pod or an answer takes
	some = 0.1 // of the requests or of their time, for limits that ought not to bind at all
	full = 0.8 // of the processors of the API server's node, or of the workers' time
)

// Bound says what bound a step of a load with this rate and so many workers.
func (s *Step) Bound(rate float64, workers int) Bound {
	if b := s.outage(); b.Text != "" {
		return b
	}
	if s.Failed > 0 {
		return Bound{ByRefusal, float64(s.Failed) / float64(s.Failed+s.Made), notCreated(s.Failed, "object", s.Why)}
	}
	p := s.Start
	if p != nil && p.Never > 0 && p.Message != "" {
		return Bound{ByRoom, 1, fmt.Sprintf("%s did not run: %s", counted(p.Never, "pod"), p.Message)}
	}
	if p == nil {
		return s.creation(rate, workers)
	}
	if len(p.Image) > 0 {
		return s.pipeline(rate, workers)
	}
	controller, nodes := p.Launched+p.Handed, p.Ran+p.Booted
	all := p.Answered + p.Placed + controller + nodes
	if all <= 0 {
		return Bound{ByNodes, 1, "no pod ran"}
	}
	parts, what := p.parts(all)
	switch most := max(p.Answered, p.Placed, controller, nodes); {
	case most == p.Answered, s.scheduled(rate):
		b := s.creation(rate, workers)
		b.Text = parts + "; " + b.Text
		return b
	case most == p.Placed:
		return Bound{ByScheduler, most / all, parts}
	case most == controller:
		return Bound{ByController, most / all, parts}
	default:
		b := Bound{By: ByNodes}
		if p.Ran >= p.Booted { // of a guest's start, kubelets know only its pod's
			b = s.inNodes(p.Ran, true)
		}
		if k := s.Kubelets; k == nil || k.RealPods > 0 {
			parts += fmt.Sprintf("; %s ran %s", counted(p.Nodes, "node"), counted(s.Pods, what))
		}
		return Bound{b.By, cmp.Or(b.Share, most/all), parts + b.Text}
	}
}

// parts are the steps of a start, in words, and what started: a pod or a guest.
func (p *Starts) parts(all float64) (text, what string) {
	s := output.Seconds
	if p.Launched+p.Handed+p.Booted == 0 {
		return fmt.Sprintf("a pod's start took %s: %s until the API server answered, %s until it had a node, %s until it ran", s(all), s(p.Answered), s(p.Placed), s(p.Ran)), "pod"
	}
	return fmt.Sprintf("a guest's start took %s: %s until the API server answered, %s until virt-controller had created its pod, %s until that had a node, %s until it ran, %s until virt-controller had handed the machine over, %s until the guest ran",
		s(all), s(p.Answered), s(p.Launched), s(p.Placed), s(p.Ran), s(p.Handed), s(p.Booted)), "guest"
}

// scheduled reports whether the load's own schedule and pauses took at least half of a step with pods: then more pods would come with a
// faster schedule, whatever a single start takes.
func (s *Step) scheduled(rate float64) bool {
	own := s.Paced + s.Paused
	if rate > 0 && s.Late <= some/rate {
		own = s.Create
	}
	return own > 0 && own >= much*(s.Create+s.Paused+s.Settle)
}

// outage is the verdict on a step for a tenth of which the API server could not be reached. Its text is "" for other steps.
func (s *Step) outage() (b Bound) {
	took := s.Create + s.Settle
	if s.Claims != nil {
		took += s.Claims.Remove
	}
	if s.Down == 0 || s.Down < some*took {
		return b
	}
	b = Bound{ByOutage, min(1, s.Down/cmp.Or(took, 1)), fmt.Sprintf("the API server could not be reached for %s", output.Seconds(s.Down))}
	if s.Why != "" {
		b.Text += ": " + s.Why
	}
	return b
}

// creation says what bound the creation of objects.
func (s *Step) creation(rate float64, workers int) Bound {
	throttled, calls := int64(0), int64(0)
	for _, c := range s.Calls {
		if mutating(c.Verb) {
			throttled, calls = throttled+c.Throttled, calls+c.Count
		}
	}
	busy := cmp.Or(s.Busy, 1e-9)
	x := cmp.Or(s.Server, &Server{})
	read := s.readings()
	switch {
	case throttled > 0 && float64(throttled) >= some*float64(calls):
		return Bound{ByFairness, min(1, float64(throttled)/float64(calls)), fmt.Sprintf("the API server answered 429 to %d requests, and took %d; %s", throttled, calls, read)}
	case x.Queued >= some*busy:
		return Bound{ByFairness, min(1, x.Queued/busy), fmt.Sprintf("requests waited %s in the API server's queues, of %s altogether; %s", output.Seconds(x.Queued), output.Seconds(busy), read)}
	case s.Limited >= some*(busy+s.Limited):
		return Bound{ByClient, s.Limited / (busy + s.Limited), fmt.Sprintf("the client's own limit held requests back for %s in all, they took %s; %s", output.Seconds(s.Limited), output.Seconds(busy), read)}
	case rate > 0 && s.Late <= some/rate:
		return Bound{BySchedule, 1, fmt.Sprintf("requests were sent when they were due, half of them within %s; %s", output.Seconds(s.Late), read)}
	}
	if own, took := s.Paced+s.Paused, s.Create+s.Paused; own > 0 && own >= much*took {
		what := "schedule and pauses"
		switch {
		case s.Paused == 0:
			what = "schedule"
		case s.Paced == 0:
			what = "pauses"
		}
		return Bound{BySchedule, min(1, own/took), fmt.Sprintf("the file's %s took %s of %s; %s", what, output.Seconds(own), output.Seconds(took), read)}
	}
	asked := cmp.Or(s.Asked, s.Create*float64(workers))
	if x.Processors > 0 && x.Cores >= full*float64(x.Processors) {
		return Bound{ByServer, min(1, x.Cores/float64(x.Processors)), "the API server uses its node's processors; " + read}
	}
	if asked > 0 && s.Busy < much*asked {
		return Bound{ByWorkers, 1 - s.Busy/asked, fmt.Sprintf("the %d workers waited for answers only %.0f %% of the time: the client is what is slow; %s", workers, 100*s.Busy/asked, read)}
	}
	// Others write to etcd too, so sums would not do.
	if write, request := mean(x.Store, x.Stores), mean(s.Busy, float64(calls+throttled)); write > 0 && write >= much*request {
		return Bound{ByStore, min(1, write/max(request, write)), fmt.Sprintf("a write to etcd took %s of the %s that a request took; %s", output.Seconds(write), output.Seconds(request), read)}
	}
	share := 0.0
	if asked > 0 {
		share = min(1, s.Busy/asked)
	}
	return Bound{ByAnswers, share, fmt.Sprintf("all %d workers waited for answers: more workers may create more; %s", workers, read)}
}

// readings are those of the API server, in words.
func (s *Step) readings() string {
	x := s.Server
	if x == nil {
		return "the API server's metrics could not be read"
	}
	parts := []string{fmt.Sprintf("API server %.2f cores", x.Cores)}
	if x.Stores > 0 {
		parts = append(parts, fmt.Sprintf("etcd %s a write", output.Seconds(x.Store/x.Stores)))
	}
	return strings.Join(append(parts, fmt.Sprintf("queued %s in all", output.Seconds(x.Queued))), ", ")
}

// mean divides a sum by n. It returns 0 for n = 0.
func mean(sum, n float64) float64 {
	if n == 0 {
		return 0
	}
	return sum / n
}

// counted writes a number of things.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// notCreated says how many things were not created, and why.
func notCreated(n int, what, why string) string {
	were := "were"
	if n == 1 {
		were = "was"
	}
	return fmt.Sprintf("%s %s not created: %s", counted(n, what), were, why)
}
