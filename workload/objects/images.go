package objects

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/record"
	"tare/workload/output"
)

// Stages of the images that a load builds for its pods.
const (
	Waited = "waited" // for a free worker, from when the object was due
	Built  = "built"
	Pushed = "pushed"
	Pulled = "pulled" // by the node, with the wait for other pulls
)

// ImageStages returns these stages in their order.
func ImageStages() []string { return []string{Waited, Built, Pushed, Pulled} }

// repositoryRE matches HOST/PATH without a tag, as the registries' specification has it.
var repositoryRE = regexp.MustCompile(`^[a-zA-Z0-9.-]+(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`)

// repository checks the parameter build.
func repository(text string) error {
	if text != "" && !repositoryRE.MatchString(text) {
		return fmt.Errorf("%q is not a repository; write HOST/PATH without a tag, such as registry.example.org/pipeline", text)
	}
	return nil
}

// imageTimes are the responses of loads that build images.
func imageTimes() (out []record.Response) {
	for _, r := range [][2]string{
		{Built, "median time to build an image: read the files, pack and compress them, compute the digests"},
		{Pushed, "median time to push it"},
		{Pulled, "median time of the node's pull, with the wait for other pulls"},
	} {
		out = append(out, record.Response{Name: r[0] + "_p50", Unit: record.Second, Better: record.Lower, Help: r[1]})
	}
	return out
}

// images adds the figures of the images of a step.
func (p *Starts) images(add func(name string, u record.Unit, x float64, labels ...string)) error {
	for _, s := range p.Image {
		h, err := decode(s.Times)
		if err != nil {
			return err
		}
		for _, q := range []float64{50, 95, 99} {
			add(fmt.Sprintf("%s_p%g", s.Name, q), record.Second, percentile(h, q))
		}
	}
	return nil
}

// images adds the figures of the images of all steps together.
func (r *report) images(rd *record.Reading) error {
	all := map[string]*hdrhistogram.Histogram{}
	for i := range r.steps {
		p := r.steps[i].Start
		if p == nil {
			continue
		}
		for _, s := range p.Image {
			h, err := decode(s.Times)
			if err != nil {
				return err
			}
			if all[s.Name] == nil {
				all[s.Name] = NewHistogram()
			}
			all[s.Name].Merge(h)
		}
	}
	if len(all) > 0 && all[Pulled] == nil {
		return errors.New("the nodes reported no pull of an image: their kubelets send no events, or no pod ran")
	}
	for _, name := range ImageStages() {
		h := all[name]
		if h == nil {
			continue
		}
		for _, q := range []float64{50, 95, 99} {
			rd.Value(fmt.Sprintf("%s_p%g", name, q), record.Second, percentile(h, q))
		}
		if err := output.Histogram(rd, name, h); err != nil {
			return err
		}
	}
	return nil
}

// pipeline says what bound a step of a load that builds images, by the longest part of the time until a pod ran.
func (s *Step) pipeline(rate float64, workers int) Bound {
	p := s.Start
	of := map[string]float64{}
	for _, x := range p.Image {
		of[x.Name] = x.Part
	}
	parts := []struct {
		by   By
		took float64
		text string
	}{
		{ByBuild, of[Built], "it was built"}, {ByPush, of[Pushed], "it was pushed"}, {ByAnswers, p.Answered, "the API server answered"},
		{ByScheduler, p.Placed, "its pod had a node"}, {ByPull, min(of[Pulled], p.Ran), "the node had pulled it"}, {ByNodes, max(0, p.Ran-of[Pulled]), "the pod ran"},
	}
	sum, most := 0.0, 0
	var words []string
	for i, x := range parts {
		if sum += x.took; x.took > parts[most].took {
			most = i
		}
		words = append(words, output.Seconds(x.took)+" until "+x.text)
	}
	if sum <= 0 {
		return Bound{ByNodes, 1, "no pod ran"}
	}
	b := Bound{parts[most].by, parts[most].took / sum, fmt.Sprintf("an image took %s until its pod ran, after a wait of %s for a worker: %s", output.Seconds(sum), output.Seconds(of[Waited]), strings.Join(words, ", "))}
	switch {
	case b.By == ByAnswers:
		more := s.creation(rate, workers)
		b.By, b.Text = more.By, b.Text+"; "+more.Text
	case of[Waited] > sum: // the workers are busy until the API server has answered
		busy := parts[:3]
		i := 0
		for j := range busy {
			if busy[j].took > busy[i].took {
				i = j
			}
		}
		b = Bound{busy[i].by, min(1, busy[i].took/(busy[0].took+busy[1].took+busy[2].took)), b.Text + fmt.Sprintf("; all %d workers were busy", workers)}
	case b.By == ByNodes:
		in := s.inNodes(parts[most].took, false)
		b = Bound{in.By, cmp.Or(in.Share, b.Share), b.Text + in.Text}
	}
	return b
}

// saneStages refuses stages that are out of place or out of range.
func saneStages(stages []Stage, order []string) error {
	last := -1
	for _, s := range stages {
		i := slices.Index(order, s.Name)
		if i <= last || s.Late < 0 || !fine(maxTime, s.Part) {
			return fmt.Errorf("the stage %q is out of place or out of range", s.Name)
		}
		last = i
	}
	return nil
}
