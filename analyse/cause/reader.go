package cause

import (
	"math"

	"tare/record"
)

// Reader keeps of each trial what causes are told by: one sheet for each endpoint, of
// 230 bytes, in place of up to a thousand labelled samples of a large guest. Results
// of 30,000 trials are to be analysed within 300 MB. The zero Reader is empty and
// ready.
type Reader struct {
	trials map[record.Identity][]endpointSheet
	names  map[string]uint16 // of endpoints and roles
	list   []string
	parsed map[kindKey]kind // labels are parsed once, not for each trial
}

type endpointSheet struct {
	endpoint, helper uint16           // names: of the end, and of the role whose thread is fHelperBusy
	figures          [figures]float32 // seven digits are more than any of them has
}

func (e *endpointSheet) unpack() sheet {
	var s sheet
	for i, v := range e.figures {
		s[i] = float64(v)
	}
	return s
}

type kindKey struct {
	name   string
	labels record.Labels
}

// kind is what a sample is of.
type kind struct {
	what                              string // its name; "" of one that is not read here
	endpoint, role, cpu, mode, device string
}

// maxKinds and maxNames bound what a damaged folder may make of labels.
const (
	maxKinds = 1 << 16
	maxNames = 1 << 12
)

func (r *Reader) kind(s *record.Sample) kind {
	at := kindKey{s.Name, s.Labels}
	k, ok := r.parsed[at]
	if ok {
		return k
	}
	k = kind{what: s.Name, endpoint: s.Labels.Get(record.LabelEndpoint), role: s.Labels.Get(record.LabelRole), cpu: s.Labels.Get(record.LabelCPU),
		mode: s.Labels.Get(record.LabelMode), device: s.Labels.Get(record.LabelDevice)}
	if len(r.parsed) < maxKinds {
		r.parsed[at] = k
	}
	return k
}

func (r *Reader) name(text string) uint16 {
	n, ok := r.names[text]
	if !ok {
		if len(r.list) == maxNames {
			return 0
		}
		n = uint16(len(r.list)) //nolint:gosec // bounded by maxNames
		r.names[text] = n
		r.list = append(r.list, text)
	}
	return n
}

// Read keeps what is read of a trial. Its Cell must stay the same slice until Build.
func (r *Reader) Read(t *record.Trial) {
	if r.trials == nil {
		r.trials, r.names, r.parsed = map[record.Identity][]endpointSheet{}, map[string]uint16{}, map[kindKey]kind{}
		r.name("")
	}
	g := gathered{soft: -1}
	for i := range t.Samples {
		s := &t.Samples[i]
		if s.Labels == "" || !ours(s.Name) || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		g.take(r.kind(s), s.Value)
	}
	if out := g.sheets(r); len(out) > 0 {
		r.trials[t.Identity()] = out
	}
}

// Ends are the ends of a part of what a trial's load passes through: PART, PART-2 and so on.
func (r *Reader) Ends(of record.Identity, part string) (out []string) {
	for _, e := range r.trials[of] {
		name := r.list[e.endpoint]
		if p, _ := record.CopyOf(name); p == part {
			out = append(out, name)
		}
	}
	return out
}

// Others returns what everything beside a trial used of its machine's processors, in cores, and how many these are. It
// is false if the collectors did not tell.
func (r *Reader) Others(of record.Identity) (cores, processors float64, ok bool) {
	for i := range r.trials[of] {
		s := r.trials[of][i].unpack()
		if s.has(fHostCores) && !s.has(fHostOthers) {
			continue // it is on another machine
		}
		if !s.has(fHostOthers, fHostCores) || !s.has(fCgroup) && !s.has(fWork) && !s.has(fVCPU) && !s.has(fHelperCPU) {
			return 0, 0, false // an end of the trial would count as others
		}
		cores, processors, ok = s[fHostOthers], s[fHostCores], true
	}
	return cores, processors, ok
}

// Take is Read, and takes what nobody else reads out of the trial's samples.
func (r *Reader) Take(t *record.Trial) {
	r.Read(t)
	t.Drop(func(s *record.Sample) bool { return s.Labels != "" && ours(s.Name) && !shared(s.Name) })
}

func ours(name string) bool {
	switch name {
	case cpuTime, runWait, cgroupCPU, quotaMean, periods, throttled, throttleTime, record.ThreadBusiest, record.ThreadBusiestWait,
		guestCPU, guestSoftIRQ, guestRunning, guestReady, systemCPU, hostSoft, systemCalls, linkReceived, linkSent, linkRate, linkBacklog, linkDrops,
		deviceBusy, deviceQueue, deviceRead, deviceWrote, deviceRequests, deviceFlushes,
		cgroupRead, cgroupWrote, cgroupReads, cgroupWrites, limitRead, limitWrite, limitReads, limitWrites, ioPressure, queuedMean:
		return true
	}
	return false
}
