package objects

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/record"
	"tare/workload/output"
)

// Claims has the figures of a step's claims.
type Claims struct {
	Way      []Stage `json:"way"`        // stages until the claims were usable, in the order of Way
	Removal  []Stage `json:"removal"`    // stages until the claims were gone, from when their deletion was due
	Settled  int     `json:"settled"`    // claims that were usable
	Gone     int     `json:"gone"`       // claims that were removed, with their pods and volumes
	Bound    int     `json:"bound"`      // claims that were bound
	Bind     float64 `json:"bind_s"`     // when the last one was bound, since the step began
	Remove   float64 `json:"remove_s"`   // from the first deletion until the last claim was gone, or until the timeout
	Volumes  int     `json:"volumes"`    // volumes that appeared
	Appear   float64 `json:"appear_s"`   // from the first volume to the last one
	Vanish   float64 `json:"vanish_s"`   // from when the first volume was gone until the last one was gone
	Vanished int     `json:"vanished"`   // volumes that were gone
	Skewed   int     `json:"skewed"`     // pods whose clock cannot be right; they have the watch's times
	Made     string  `json:"made_by"`    // the provisioner
	Mode     string  `json:"binding"`    // WaitForFirstConsumer or Immediate
	Message  string  `json:"message"`    // message of the scheduler, the provisioner or the pod about claims that were not usable
	Stuck    string  `json:"stuck_in"`   // the stage that most claims did not reach that were not usable
	Held     string  `json:"held_until"` // the stage that most claims did not reach that were not gone
}

// Stage is a stage that some or all claims reached. In the stages that the report shows, claims that were not usable or not gone count
// with the time until the step ended.
type Stage struct {
	Name  string  `json:"name"`
	Times string  `json:"times"`          // since the claim or its deletion was due: HdrHistogram V2, nanoseconds
	Late  int     `json:"late,omitempty"` // of the times: those of claims that did not reach the stage before the step ended
	Part  float64 `json:"part_s"`         // mean time since the stage before, of the claims that reached the last stage, in seconds
}

// Stages of a claim.
const (
	Answered    = "answered"    // the API server has created the claim and its pod
	Chosen      = "chosen"      // the scheduler has chosen a node for the volume (WaitForFirstConsumer)
	Provisioned = "provisioned" // the volume's object exists
	BoundTo     = "bound"
	Scheduled   = "scheduled" // the pod has a node
	Attached    = "attached"  // the volume is attached to the node, with drivers that attach
	Mounted     = "mounted"   // the program in the pod began
	Written     = "written"   // the program has written and synced a byte

	PodGone    = "pod_gone"
	ClaimGone  = "claim_gone"
	Detached   = "detached"
	VolumeGone = "volume_gone"
)

// stage has a stage's name, what bounds claims if this stage is the longest, and its text after "until".
type stage struct {
	name string
	by   By
	text string
}

func way() []stage {
	return []stage{
		{Answered, ByAnswers, "the API server answered"}, {Chosen, ByScheduler, "the scheduler chose a node"},
		{Provisioned, ByProvisioner, "the volume existed"}, {BoundTo, ByController, "the claim was bound"}, {Scheduled, ByScheduler, "the pod had a node"},
		{Attached, ByAttacher, "the volume was attached"}, {Mounted, ByNodes, "the pod's program began"}, {Written, ByVolume, "the first byte was written"},
	}
}

func removal() []stage {
	return []stage{
		{PodGone, ByNodes, "the pod was gone"}, {ClaimGone, ByController, "the claim was gone"},
		{Detached, ByAttacher, "the volume was detached"}, {VolumeGone, ByProvisioner, "the volume was gone"},
	}
}

// Way returns the names of the stages until a claim is usable, in their order.
func Way() []string { return names(way()) }

// Removal returns the names of the stages until a claim is gone, in their order.
func Removal() []string { return names(removal()) }

func names(stages []stage) (out []string) {
	for _, s := range stages {
		out = append(out, s.name)
	}
	return out
}

// sane refuses figures that a step with made claims cannot have.
func (c *Claims) sane(made int) error {
	for _, n := range []int{c.Settled, c.Gone, c.Bound, c.Volumes, c.Vanished, c.Skewed} {
		if n < 0 || n > made {
			return fmt.Errorf("of %d claims, %d were bound, %d were usable, %d were gone, %d had volumes, %d had lost them, and %d had a wrong clock", made, c.Bound, c.Settled, c.Gone, c.Volumes, c.Vanished, c.Skewed)
		}
	}
	if !fine(maxTime, c.Bind, c.Remove, c.Appear, c.Vanish) || c.Bound > 0 && c.Bind == 0 || c.Gone > 0 && c.Remove == 0 {
		return errors.New("a time of the claims is out of range")
	}
	if max(len(c.Made), len(c.Message)) > maxText || len(c.Mode) > 40 || !known(c.Stuck, Way()) || !known(c.Held, Removal()) {
		return errors.New("a text about the claims is too long or unknown")
	}
	for _, part := range []struct {
		stages []Stage
		order  []string
	}{{c.Way, Way()}, {c.Removal, Removal()}} {
		if err := saneStages(part.stages, part.order); err != nil {
			return fmt.Errorf("of the claims: %w", err)
		}
	}
	return nil
}

func known(word string, words []string) bool { return word == "" || slices.Contains(words, word) }

// samples adds the figures of a step's claims.
func (c *Claims) samples(rd *record.Reading, step string) error {
	add := func(name string, u record.Unit, x float64, labels ...string) {
		rd.Value(name, u, x, append([]string{record.LabelStep, step}, labels...)...)
	}
	add("settled", record.Count, float64(c.Settled))
	add("gone", record.Count, float64(c.Gone))
	rates := func(name string, n int, took float64) {
		if n > 0 && took > 0 {
			add(name, record.PerSecond, float64(n)/took)
		}
	}
	rates("rate", c.Bound, c.Bind)
	rates("removal_rate", c.Gone, c.Remove)
	rates("volume_rate", c.Volumes-1, c.Appear)
	rates("volume_removal_rate", c.Vanished-1, c.Vanish)
	for _, s := range slices.Concat(c.Way, c.Removal) {
		h, err := decode(s.Times)
		if err != nil {
			return err
		}
		if n := h.TotalCount(); n == 0 || n > maxCount || n < int64(s.Late) {
			return fmt.Errorf("the stage %s has %d times, of which %d are too late", s.Name, n, s.Late)
		}
		for _, q := range []float64{50, 95, 99} {
			quantile(add, s.Name, h, q, s.Late)
		}
		add(s.Name+"_part", record.Second, s.Part)
		if err := output.Histogram(rd, s.Name, h, record.LabelStep, step); err != nil {
			return err
		}
	}
	return nil
}

// claims adds the figures of the claims of all steps together.
func (r *report) claims(rd *record.Reading) error {
	all, late := map[string]*hdrhistogram.Histogram{}, map[string]int{}
	var bound, gone, skewed int
	var bind, remove float64
	for i := range r.steps {
		c := r.steps[i].Claims
		bound, bind, gone, remove, skewed = bound+c.Bound, bind+c.Bind, gone+c.Gone, remove+c.Remove, skewed+c.Skewed
		for _, s := range slices.Concat(c.Way, c.Removal) {
			h, err := decode(s.Times)
			if err != nil {
				return err
			}
			if all[s.Name] == nil {
				all[s.Name] = NewHistogram()
			}
			all[s.Name].Merge(h)
			late[s.Name] += s.Late
		}
	}
	why := r.steps[0].Why
	switch {
	case bound == 0 || bind <= 0:
		return fmt.Errorf("no claim was bound: %s", why)
	case gone == 0 || remove <= 0:
		return fmt.Errorf("no claim was removed: %s", why)
	}
	rd.Value("rate", record.PerSecond, float64(bound)/bind)
	rd.Value("removal_rate", record.PerSecond, float64(gone)/remove)
	for _, name := range slices.Concat(Way(), Removal()) {
		h := all[name]
		if h == nil {
			continue
		}
		for _, q := range []float64{50, 95, 99} {
			quantile(rd.Value, name, h, q, late[name])
		}
		if err := output.Histogram(rd, name, h); err != nil {
			return err
		}
	}
	if skewed > 0 {
		rd.Warn("objects-clock", "the clocks of the nodes and of the load differ; for %d of %d claims, the mount has the time at which the watch reported it; synchronize the clocks", skewed, bound)
	}
	return nil
}

// BoundWay says what bound a step's claims until they were usable.
func (s *Step) BoundWay(rate float64, workers int) Bound {
	c := s.Claims
	if b := s.outage(); b.Text != "" {
		return b
	}
	if s.Failed > 0 {
		return Bound{ByRefusal, float64(s.Failed) / float64(s.Failed+s.Made), notCreated(s.Failed, "claim", s.Why)}
	}
	if c.Stuck != "" {
		return Bound{byOf(way(), c.Stuck), 1, strings.TrimSuffix(fmt.Sprintf("%d claims were not usable in time; most did not reach the stage %s: %s", s.Made-c.Settled, c.Stuck, c.Message), ": ")}
	}
	b := slowest(c.Way, way(), "a claim needed %s until it was usable: %s")
	if b.By == ByAnswers {
		more := s.creation(rate, workers)
		b.By, b.Text = more.By, b.Text+"; "+more.Text
	}
	if i := slices.IndexFunc(c.Way, func(s Stage) bool { return s.Name == Mounted }); b.By == ByNodes && i >= 0 {
		in := s.inNodes(c.Way[i].Part, true)
		b = Bound{in.By, cmp.Or(in.Share, b.Share), b.Text + in.Text}
	}
	if b.By == ByProvisioner && c.Volumes > 1 && c.Appear > 0 {
		b.Text += fmt.Sprintf("; %s created %.3g volumes a second", c.maker(), float64(c.Volumes-1)/c.Appear)
	}
	if c.reached(Mounted) && !c.reached(Attached) {
		b.Text += "; the volumes have no VolumeAttachment, so nothing was attached or detached"
	}
	return b
}

// BoundRemoval says what bound the removal of a step's claims.
func (s *Step) BoundRemoval() Bound {
	c := s.Claims
	if c.Held != "" {
		return Bound{byOf(removal(), c.Held), 1, fmt.Sprintf("%d claims were not gone in time; most did not reach the stage %s", s.Made-c.Gone, c.Held)}
	}
	b := slowest(c.Removal, removal(), "a claim's removal took %s: %s")
	if b.By == ByProvisioner && c.Vanished > 1 && c.Vanish > 0 {
		b.Text += fmt.Sprintf("; %s removed %.3g volumes a second", c.maker(), float64(c.Vanished-1)/c.Vanish)
	}
	return b
}

// reached reports whether any claim reached a stage.
func (c *Claims) reached(stage string) bool {
	return slices.ContainsFunc(c.Way, func(s Stage) bool { return s.Name == stage })
}

func (c *Claims) maker() string {
	if c.Made == "" {
		return "the provisioner"
	}
	return "the provisioner " + c.Made
}

// slowest returns the verdict for the longest of the stages. The format takes the sum and the parts.
func slowest(stages []Stage, all []stage, format string) Bound {
	sum, most := 0.0, Stage{}
	var parts []string
	for _, s := range stages {
		sum += s.Part
		if s.Part > most.Part {
			most = s
		}
		parts = append(parts, output.Seconds(s.Part)+" "+until(all, s.Name))
	}
	if sum <= 0 {
		return Bound{ByNodes, 1, "no claim reached the last stage"}
	}
	return Bound{byOf(all, most.Name), most.Part / sum, fmt.Sprintf(format, output.Seconds(sum), strings.Join(parts, ", "))}
}

func find(all []stage, name string) stage {
	return all[slices.IndexFunc(all, func(s stage) bool { return s.name == name })]
}

func byOf(all []stage, name string) By { return find(all, name).by }

func until(all []stage, name string) string { return "until " + find(all, name).text }
