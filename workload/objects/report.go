package objects

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Line is a line that the load generator prints: a Step, then another, and an End at last. One of the fields is set.
type Line struct {
	Step     *Step `json:"step,omitempty"`
	Measured bool  `json:"measured,omitempty"` // the measured time is over: what follows is clearing away
	End      *End  `json:"end,omitempty"`
}

// measuredLine begins the line that ends the measured time.
const measuredLine = `{"measured":true`

// Step is what happened until the pods of one more step ran.
type Step struct {
	Number  int     `json:"number"`  // from 1
	Objects int     `json:"objects"` // that there are to be after it
	Made    int     `json:"made"`    // objects created in it, without churn
	Failed  int     `json:"failed"`  // objects not created
	Pods    int     `json:"pods"`    // that run after it
	Begin   float64 `json:"begin_s"` // since the first step began
	Create  float64 `json:"create_s"`
	Settle  float64 `json:"settle_s"` // from the last answer until the pods ran
	Churn   float64 `json:"churn_s"`  // deleting a part, creating it again, and waiting for it

	Calls   []Call  `json:"calls"`
	Limited float64 `json:"limited_s"`          // that the client's own limit held requests back, summed over them
	Busy    float64 `json:"busy_s"`             // that workers spent on requests, summed over them, in Create
	Asked   float64 `json:"asked_s"`            // the most that they could have spent so: a batch of a file may have fewer requests than there are workers
	Late    float64 `json:"late_s"`             // the median of how late requests were sent, in the open loop
	Paced   float64 `json:"paced_s,omitempty"`  // of Create: schedules of a file that were kept
	Paused  float64 `json:"paused_s,omitempty"` // pauses of a file between its batches

	Start  *Starts `json:"start,omitempty"`
	Claims *Claims `json:"claims,omitempty"`
	Server *Server `json:"server,omitempty"` // nil: it could not be read
	// Kubelets says what the nodes with the step's pods did; nil: the step had no pods, or the load is older than these readings.
	Kubelets *Kubelets `json:"kubelets,omitempty"`
	Control  []Part    `json:"control,omitempty"` // of the control plane; those that could be read
	// Node is what the load's own node said in the step, if its pods run there. The last one is of its plateau, after the
	// pause, with all that was written on the disks. The first step begins with one of before.
	Node   []Reading `json:"node,omitempty"`
	Why    string    `json:"why,omitempty"`   // why the step was not reached, or what the API server refused
	Ended  bool      `json:"ended,omitempty"` // the load ended here, before its last step
	Broken int       `json:"watches_broken,omitempty"`
	Down   float64   `json:"down_s,omitempty"` // that the API server could not be reached
}

// Call is one verb on one kind of object.
type Call struct {
	Verb      string `json:"verb"`
	Resource  string `json:"resource"`
	Count     int64  `json:"count"`     // answers that say that it worked
	Errors    int64  `json:"errors"`    // that do not, but for the next
	Throttled int64  `json:"throttled"` // 429 Too Many Requests: tried again
	// Latency is from when a call was due, Server from when it was sent, both to its answer: HdrHistogram V2, nanoseconds.
	Latency string `json:"latency"`
	Server  string `json:"server"`
}

// Starts are the starts of a step's pods, or of the guests of its virtual machines, from when the object was due.
type Starts struct {
	Total    string  `json:"total"`      // until the pod or the guest ran: HdrHistogram V2, nanoseconds
	Never    int     `json:"never"`      // of these pods did not run: they count with the time until the step ended
	Answered float64 `json:"answered_s"` // means of the steps of a start: until the API server answered,
	Placed   float64 `json:"placed_s"`   // then until the watch said that the pod has a node (with a controller's time for a deployment),
	Ran      float64 `json:"ran_s"`      // then until it said that the pod runs
	// Only of virtual machines: between Answered and Placed, until virt-controller had created the pod; and after Ran, until it had
	// handed the machine over to the node's virt-handler, and until that said that the guest runs.
	Launched float64 `json:"launched_s,omitempty"`
	Handed   float64 `json:"handed_s,omitempty"`
	Booted   float64 `json:"booted_s,omitempty"`
	Nodes    int     `json:"nodes"`             // that took the pods
	Image    []Stage `json:"image,omitempty"`   // of loads that build images: Waited, Built, Pushed and Pulled. Each has its own time, not that since the object was due
	Message  string  `json:"message,omitempty"` // what the scheduler says of a pod that it cannot place
}

// Server is what the API server's own metrics say of a step.
type Server struct {
	Cores      float64 `json:"cores"`
	Memory     float64 `json:"memory_bytes"` // at its end
	Rejected   float64 `json:"rejected"`     // requests refused by priority and fairness
	Queued     float64 `json:"queued_s"`     // that requests waited in its queues, summed over them
	Store      float64 `json:"store_s"`      // that requests to etcd took, summed over those that change something
	Stores     float64 `json:"stores"`       // such requests
	Processors int     `json:"processors"`   // of its node; 0: not known
}

// Part is what a part of the control plane used in a step, with its pause, by the kubelets of its nodes.
type Part struct {
	Name   string  `json:"name"` // one of Parts
	Pods   int     `json:"pods"` // that it has
	Cores  float64 `json:"cores"`
	Memory float64 `json:"memory_bytes"` // at the end
}

// Parts of the control plane, beside the API server.
const (
	PartEtcd       = "etcd"
	PartScheduler  = "scheduler"
	PartController = "controller"
)

// Parts are the names that a Part can have, in the order of a step's.
func Parts() []string { return []string{PartEtcd, PartScheduler, PartController} }

// Kubelets is what the kubelets' metrics say of the nodes that took a step's pods. It counts the starts of all pods on these nodes.
type Kubelets struct {
	Simulated     int     `json:"simulated,omitempty"`      // simulated nodes that took pods, and have neither kubelet nor runtime
	SimulatedPods int     `json:"simulated_pods,omitempty"` // pods of the step on them
	RealPods      int     `json:"real_pods,omitempty"`      // on other nodes
	Nodes         int     `json:"nodes"`                    // whose kubelets were read before and after the step
	Missing       string  `json:"missing,omitempty"`        // why others were not read
	Pods          float64 `json:"pods"`                     // whose sandboxes these kubelets had created
	Sandbox       float64 `json:"sandbox_s"`                // time for each of these pods: to create its sandbox,
	Create        float64 `json:"create_s"`                 // to create its containers,
	Begin         float64 `json:"begin_s"`                  // to start them,
	Pull          float64 `json:"pull_s"`                   // to pull their images,
	Queued        float64 `json:"queued_s"`                 // and from when the kubelet saw it until a worker took it
	Poll          float64 `json:"poll_s"`                   // the mean time between two polls of the runtime for what changed; 0: not known
	Cores         float64 `json:"cores"`                    // that ran on nodes whose processors were read
	Processors    float64 `json:"processors"`               // of these nodes; 0: none was read
	Disk          float64 `json:"disk,omitempty"`           // part of the step that the busiest disk of the load's own node was busy; 0: not known, or idle
}

// Reading is what the load's node says at a moment.
type Reading struct {
	At        float64 `json:"at_s"`            // since the load's process began
	Available float64 `json:"available_bytes"` // memory
	Cache     float64 `json:"cache_bytes"`     // pages of files in memory
	Read      float64 `json:"read_bytes"`      // by its disks, since it started
	Written   float64 `json:"written_bytes"`   // likewise
	Used      float64 `json:"used_bytes"`      // of the file system that has the kubelet's files
}

// MaxReadings bounds the readings of a step.
const MaxReadings = 30_000

// End is how the load ended.
type End struct {
	Namespaces int     `json:"namespaces"`
	Removed    float64 `json:"removed_s"` // until the namespaces were gone; negative: they were not, in time
	// Held says what holds a namespace that is not gone; "": it is not known. At most MaxHeld bytes.
	Held   string  `json:"held,omitempty"`
	User   float64 `json:"cpu_user_s"`
	System float64 `json:"cpu_system_s"`
	Memory float64 `json:"memory_bytes"` // the most that the client had
	// Warnings are those of the API server about what the load sent, each once: the first MaxWarnings.
	Warnings []string `json:"warnings,omitempty"`
}

// Bounds of End.Warnings: how many, and the bytes of each.
const (
	MaxWarnings = 5
	MaxWarning  = 300
)

// Of a histogram: its longest time, and its significant digits.
const (
	longest = int64(2 * time.Hour)
	digits  = 2
)

// MaxHeld bounds End.Held.
const MaxHeld = 500

// NewHistogram returns a histogram of the kind that lines have.
func NewHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1000, longest, digits) }

// Note adds a time to a histogram.
func Note(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), 1), longest)) // it fits
}

// Encode makes a histogram part of a line.
func Encode(h *hdrhistogram.Histogram) (string, error) {
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	return string(b), err
}

// maxHistogram bounds an encoded histogram, in bytes.
const maxHistogram = 64 << 10

// decode reads a histogram, which others may have written.
func decode(text string) (*hdrhistogram.Histogram, error) {
	if len(text) > maxHistogram {
		return nil, errors.New("a histogram is too long")
	}
	h, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("a histogram: %w", err)
	}
	if h.LowestTrackableValue() != 1000 || h.HighestTrackableValue() != longest || h.SignificantFigures() != digits {
		return nil, errors.New("a histogram has another form")
	}
	return h, nil
}

// fine reports whether figures are numbers from 0 to most.
func fine(most float64, figures ...float64) bool {
	for _, f := range figures {
		if math.IsNaN(f) || f < 0 || f > most {
			return false
		}
	}
	return true
}
