// Package record holds the types that every other package shares: a trial, its cell, the
// samples and series read from it, and the host it ran on. It imports no other package of
// tare and does no I/O, so that old results can be analysed anywhere.
//
// Values are in base units (seconds, bytes, per second, cores) from the parser on.
// Sample.Original keeps what a tool printed.
package record

import (
	"fmt"
	"slices"
	"time"
)

// Unit is the base unit of a value, spelled as in the report.
type Unit string

// The base units. Every value is converted to one of these when it is parsed.
const (
	Second         Unit = "s"
	Byte           Unit = "B"
	BytesPerSecond Unit = "B/s"
	PerSecond      Unit = "1/s"
	Cores          Unit = "cores" // CPU seconds per second
	Count          Unit = "count"
	Fraction       Unit = "1"
)

// BitsPerSecond is how people read a network's rate: Value of package words writes bytes a
// second so. No value is in it.
const BitsPerSecond Unit = "b/s"

// Better says which direction of a response is an improvement.
type Better string

// Directions of improvement.
const (
	Higher  Better = "higher"
	Lower   Better = "lower"
	Neither Better = "neither" // a figure without a verdict
)

// Response describes one figure that is read from a trial and compared.
type Response struct {
	Name   string `json:"name"`
	Unit   Unit   `json:"unit"`
	Better Better `json:"better"`
	Help   string `json:"help,omitempty"`

	// Operation is what the response counts or times: request, call, run, byte. It is "" for
	// other figures, such as a percentile. A rate x means 1/x seconds an operation.
	Operation string `json:"operation,omitempty"`

	// Network says that the bytes of the response go over a network.
	Network bool `json:"network,omitempty"`

	// Step says whose work the response times, if it is a part of the operation's time: the
	// runtime's, the program's or the disk's. It is "" for other responses.
	Step Step `json:"step,omitempty"`
}

// Shown is the unit that reports write the response's values in.
func (r Response) Shown() Unit {
	if r.Network && r.Unit == BytesPerSecond {
		return BitsPerSecond
	}
	return r.Unit
}

// Step says whose work a part of an operation is.
type Step string

// Steps of a launch, and of a load on files.
const (
	RuntimeStep Step = "runtime" // calls of the runtime: create, start, delete
	ProgramStep Step = "program" // from the program's first instruction to its answer or its end
	SyncStep    Step = "sync"    // waiting until what was written is on the disk: a part of the time, 0 to 1
)

// SampleType says how a sample develops in time, and so how it is reduced.
type SampleType string

// Types of sample.
const (
	Value   SampleType = "value"   // one reading of the whole trial
	Counter SampleType = "counter" // only rises; reduced to a rate
	Gauge   SampleType = "gauge"   // a state; reduced to its mean and maximum
)

// Sample is one value. As part of a trial it is a response or another value of the whole
// trial; from a collector it is one point of a series.
type Sample struct {
	Name     string     `json:"name"`
	Labels   Labels     `json:"labels,omitempty"`
	Unit     Unit       `json:"unit"`
	Kind     SampleType `json:"kind,omitempty"`
	Value    float64    `json:"value"`
	Original string     `json:"original,omitempty"` // the value and unit as the tool printed it, if other
}

// Series is a sample followed over time. T[i] is the offset of V[i] from the
// trial's start; both have the same length and T does not fall.
type Series struct {
	Name   string          `json:"name"`
	Labels Labels          `json:"labels,omitempty"`
	Unit   Unit            `json:"unit"`
	Kind   SampleType      `json:"kind"`
	T      []time.Duration `json:"t"`
	V      []float64       `json:"v"`
}

// Histogram is a latency distribution in HdrHistogram's V2 compressed encoding
// (base64), whose recorded integers are multiples of Scale base units: 1e-9 for
// nanoseconds and unit "s".
type Histogram struct {
	Name    string  `json:"name"`
	Labels  Labels  `json:"labels,omitempty"`
	Unit    Unit    `json:"unit"`
	Scale   float64 `json:"scale"`
	Encoded []byte  `json:"encoded"`
}

// Reading is everything that was read from one role's output or one collector.
type Reading struct {
	Samples    []Sample
	Histograms []Histogram
	Series     []Series
	Warnings   []Warning
}

// Add appends o to r.
func (r *Reading) Add(o Reading) {
	r.Samples = append(r.Samples, o.Samples...)
	r.Histograms = append(r.Histograms, o.Histograms...)
	r.Series = append(r.Series, o.Series...)
	r.Warnings = append(r.Warnings, o.Warnings...)
}

// Value adds a value of the whole trial. labels are pairs of a name and a text.
func (r *Reading) Value(name string, u Unit, v float64, labels ...string) {
	r.Samples = append(r.Samples, NewValue(name, u, v, labels...))
}

// Warn adds a warning.
func (r *Reading) Warn(code, format string, args ...any) {
	r.Warnings = append(r.Warnings, Warning{Code: code, Text: fmt.Sprintf(format, args...)})
}

// NewValue is a sample of the whole trial. labels are pairs of a name and a text.
func NewValue(name string, u Unit, v float64, labels ...string) Sample {
	return Sample{Name: name, Labels: MakeLabels(labels...), Unit: u, Kind: Value, Value: v}
}

// Warning is a reason to doubt results. It is stored with the data and shown in the report.
// Code is a stable word for programs, Text a sentence for people.
type Warning struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// LabelStep is the label of figures of one step of a load that grows within a trial, from 1. StepBound is the sample that
// says what bound a step: its label LabelBound has a word, its Original a sentence. RemovalBound says what
// bound the removal of the objects of a step.
const (
	LabelStep  = "step"
	LabelBound = "by"
	// StepLate is how many pods or claims of a step did not reach a stage in time; without the label LabelStep, of all steps. Its
	// label LabelFigure names a figure of the step, or a response, that is only a lower bound for this reason.
	StepLate     = "late"
	LabelFigure  = "figure"
	StepBound    = "step_bound"
	RemovalBound = "step_removal_bound"
	// CallTime begins the names of percentiles of the times of a step's calls to an API server, such as server_p99: each from when its last
	// request was sent to the answer. LabelVerb and LabelResource say which calls.
	CallTime      = "server_p"
	LabelVerb     = "verb"
	LabelResource = "resource"
)

// BelowNoise begins the code of a warning that a response's value cannot be distinguished
// from noise; the response's name follows: below-noise:NAME. The value is stored, but no
// ratio is made with it.
const BelowNoise = "below-noise:"

// FewRequests begins the code of a warning that a percentile rests on few requests; the response's name follows.
const FewRequests = "few-requests:"

// WarnPageCache is the code of a warning that memory answered requests that were to reach a disk.
const WarnPageCache = "page-cache"

// GeneratorLate is the code of the warning that a load generator in the open loop fell behind its schedule by itself: it
// lacked processor time. Its latencies and its limit are then no fault of what it loads.
const GeneratorLate = "generator-late"

// Samples of a load generator in the open loop: requests that were due in the measured time, and of these the ones that it
// had not sent by the end.
const (
	SampleDue    = "due"
	SampleUnsent = "unsent"
)

// Status of a trial.
type Status string

// A trial succeeded or failed; there is no third state.
const (
	OK     Status = "ok"
	Failed Status = "failed"
)

// Failure says why a trial failed.
type Failure struct {
	Phase  string `json:"phase"`          // the phase it failed in
	Kind   string `json:"kind"`           // died, hung, garbage, unfit, no-image, refused, memory, disk, unsupported, limit, start, stop, interrupted, node-lost, unreached, other
	Reason string `json:"reason"`         // a sentence a user can act on
	Tail   string `json:"tail,omitempty"` // the end of its output, at most 4 KiB
	Role   string `json:"role,omitempty"` // the workload's role that failed
}

// Unfit is the kind of a Failure whose program printed something else than the study looks for. Running it
// again changes nothing about that.
const Unfit = "unfit"

// NoImage is the kind of a Failure whose node cannot get the image of a sandbox until somebody changes something. Until then,
// running it again changes nothing, so only a later session tries again.
const NoImage = "no-image"

// Refused is the kind of a Failure whose sandbox the site does not admit. As with NoImage, only a later session tries again.
const Refused = "refused"

// Lasting reports whether the trial fails until somebody changes something outside of it.
func (f *Failure) Lasting() bool { return f != nil && (f.Kind == NoImage || f.Kind == Refused) }

// Kinds of Failure that say nothing about the cell.
const (
	Interrupted = "interrupted" // the user ended the trial
	NodeLost    = "node-lost"   // the node that it ran on is gone
	Unreached   = "unreached"   // it was not made, because tare cannot reach what makes the trials
)

// Passing reports whether the trial failed by no fault of its cell: it counts as if it had
// not been made.
func (f *Failure) Passing() bool { return f.Lost() || f != nil && f.Kind == Interrupted }

// Lost reports whether no more trials can be made where this one was to be made.
func (f *Failure) Lost() bool { return f != nil && (f.Kind == NodeLost || f.Kind == Unreached) }

// Phase is one stretch of a trial. Offset is from the trial's start.
type Phase struct {
	Name     string        `json:"name"`
	Offset   time.Duration `json:"offset"`
	Duration time.Duration `json:"duration"`
}

// Trial is one measured execution of a cell.
type Trial struct {
	Seq        int               `json:"seq"`               // place in the order of execution, from 1
	Block      int               `json:"block"`             // the pass it belongs to, from 1
	Attempt    int               `json:"attempt"`           // from 1; a retry counts up
	Session    int64             `json:"session,omitempty"` // the run that stored it; 0 before it is stored
	Node       string            `json:"node,omitempty"`    // Node.Name of the machine it ran on; "" where results have one node without a name
	Cell       Cell              `json:"cell"`
	Status     Status            `json:"status"`
	Failure    *Failure          `json:"failure,omitempty"`
	Start      time.Time         `json:"start"`
	Duration   time.Duration     `json:"duration"`
	Phases     []Phase           `json:"phases,omitempty"`
	Samples    []Sample          `json:"samples,omitempty"`
	Histograms []Histogram       `json:"histograms,omitempty"`
	Warnings   []Warning         `json:"warnings,omitempty"`
	Facts      map[string]string `json:"facts,omitempty"` // what the sandbox was: runtime version, accelerator...
}

// Sample returns the trial's value of a response, and whether it has one.
func (t *Trial) Sample(name string) (float64, bool) {
	for i := range t.Samples {
		if t.Samples[i].Name == name && t.Samples[i].Labels == "" {
			return t.Samples[i].Value, true
		}
	}
	return 0, false
}

// AtLeast reports whether the trial's value of a response is a lower bound, because pods or claims came late.
func (t *Trial) AtLeast(response string) bool {
	labels := MakeLabels(LabelFigure, response)
	return slices.ContainsFunc(t.Samples, func(s Sample) bool { return s.Name == StepLate && s.Labels == labels })
}

// BelowNoise reports whether a warning of the trial says that its value of a response cannot
// be distinguished from noise.
func (t *Trial) BelowNoise(response string) bool {
	return t.Warned(BelowNoise + response)
}

// Warned reports whether a warning of the trial has the code.
func (t *Trial) Warned(code string) bool {
	return slices.ContainsFunc(t.Warnings, func(w Warning) bool { return w.Code == code })
}

// Raw is the output of one tool, kept so that it can be parsed again.
type Raw struct {
	Name string // file name without directories, such as "client.stdout"
	Data []byte
}

// RawManifests is the name of the Raw with the manifests that a trial's sandboxes were made from, where
// they have some.
const RawManifests = "manifests.yaml"

// Evidence is the large data of a trial, stored in files next to the database.
type Evidence struct {
	Series []Series
	Raw    []Raw
}

// Made is a finished trial and its evidence.
type Made struct {
	*Trial
	Evidence Evidence
}

// Skip is a cell that this host cannot run, and why.
type Skip struct {
	Cell   Cell   `json:"cell"`
	Reason string `json:"reason"`
}
