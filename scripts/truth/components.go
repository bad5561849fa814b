package main

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"tare/scripts/truth/causes"
)

// componentsFile is what -extract printed for the results of components.yaml.
//
//go:embed components.csv
var componentsFile []byte

// component is how the trials of one cell scatter about their cell's level, as natural
// logarithms: 0.05 is about 5 %.
type component struct {
	result   int // number of the results folder, from 1
	workload string
	response string
	sandbox  string
	baseline bool
	blocks   int
	scatter  float64 // standard deviation over the blocks
	together float64 // correlation of two cells in a block, the mean over the pairs of the response
	ratio    float64 // standard deviation of the ratio to the baseline over the blocks; NaN for the baseline
	next     float64 // correlation of a value with that of the next block
	nextOf   float64 // the same of the ratio; NaN for the baseline
	kurtosis float64 // excess, of the values
}

func componentColumns() []string {
	return []string{"result", "workload", "response", "sandbox", "baseline", "blocks", "scatter", "together", "ratio", "next_block", "next_ratio", "kurtosis"}
}

func (c *component) record() []string {
	f := func(x float64) string {
		if math.IsNaN(x) {
			return ""
		}
		return strconv.FormatFloat(x, 'f', 4, 64)
	}
	return []string{strconv.Itoa(c.result), c.workload, c.response, c.sandbox, strconv.FormatBool(c.baseline), strconv.Itoa(c.blocks),
		f(c.scatter), f(c.together), f(c.ratio), f(c.next), f(c.nextOf), f(c.kurtosis)}
}

// readComponents reads what -extract prints.
func readComponents(src []byte) ([]component, error) {
	r := csv.NewReader(bytes.NewReader(src))
	r.Comment = '#'
	head, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("cannot read the variance components: %w", err)
	}
	if !slices.Equal(head, componentColumns()) {
		return nil, fmt.Errorf("the variance components have the columns %q; make them with -extract", head)
	}
	var out []component
	for {
		rec, err := r.Read()
		if err == io.EOF { //nolint:errorlint // encoding/csv returns it as it is
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the variance components: %w", err)
		}
		c := component{workload: rec[1], response: rec[2], sandbox: rec[3], baseline: rec[4] == "true"}
		for i, at := range []*int{&c.result, &c.blocks} {
			if *at, err = strconv.Atoi(rec[5*i]); err != nil {
				return nil, fmt.Errorf("cannot read the variance components: %w", err)
			}
		}
		for i, at := range []*float64{&c.scatter, &c.together, &c.ratio, &c.next, &c.nextOf, &c.kurtosis} {
			if *at, err = strconv.ParseFloat(rec[6+i], 64); err != nil {
				*at = math.NaN()
			}
		}
		out = append(out, c)
	}
}

// source is a response of a workload that scatter is drawn from.
type source struct {
	baseline component
	others   []component
}

// population is what the noise of simulated studies is drawn from.
type population struct {
	sources []source
	center  float64 // mean of ln scatter
	keep    float64 // share of a logarithm's distance from the center that is not chance of few blocks
	jitter  float64 // standard deviation of ln scatter among the strata of a workload
}

// newPopulation groups the components. Standard deviations from few blocks are more
// spread than the true ones, so each is drawn towards the center by what the number of blocks
// explains.
func newPopulation(all []component) (*population, error) {
	p := &population{}
	var logs, chance []float64
	index := map[string]int{}
	for _, c := range all {
		if !(c.scatter > 0) || c.blocks < 4 {
			continue
		}
		key := fmt.Sprint(c.result, " ", c.workload, " ", c.response)
		i, ok := index[key]
		if !ok {
			i = len(p.sources)
			index[key] = i
			p.sources = append(p.sources, source{})
		}
		if c.baseline {
			p.sources[i].baseline = c
		} else {
			p.sources[i].others = append(p.sources[i].others, c)
		}
		logs, chance = append(logs, math.Log(c.scatter)), append(chance, 0.5/float64(c.blocks-1))
	}
	p.sources = slices.DeleteFunc(p.sources, func(s source) bool { return s.baseline.blocks == 0 || len(s.others) == 0 })
	if len(p.sources) == 0 {
		return nil, fmt.Errorf("the variance components have no response of a baseline and a treatment with four blocks; make them with -extract from a study with stop: {fixed: 8}")
	}
	mean, variance := moments(logs)
	known, _ := moments(chance)
	p.center = mean
	p.keep = math.Sqrt(math.Max(0, 1-known/variance))
	// Among the sandboxes of one response, as an idea of how strata of one workload differ.
	var inside, n float64
	for _, s := range p.sources {
		var l []float64
		for _, c := range s.others {
			l = append(l, math.Log(c.scatter))
		}
		if len(l) > 1 {
			_, v := moments(l)
			inside, n = inside+v, n+1
		}
	}
	if n > 0 {
		p.jitter = math.Sqrt(math.Max(0, inside/n-known))
	}
	return p, nil
}

// quiet is the typical scatter of a trial on a machine that does nothing else: the geometric
// mean of the 3 and 31 % that trials were found to scatter by there. The shipped components are
// of a busy machine and are taken down to it; what they say of how unlike cells are holds for both.
const quiet = 0.096

// tuned is the same of a host that is set up for measuring, where the middle 80 % of the cells
// scatter by 0.6 to 5.6 %. It is an assumption: no components are of such a host.
const tuned = 0.018

// sd is the scatter of one component without the chance in it, where the typical one is most
// at most.
func (p *population) sd(c component, most float64) float64 {
	return math.Exp(min(p.center, math.Log(most)) + p.keep*(math.Log(c.scatter)-p.center))
}

// tied is the correlation of two cells of a block.
func (s *source) tied() float64 { return min(max(s.baseline.together, 0), 0.95) }

// Names of the bands of causes.
const (
	lowScatter  = "low scatter"
	realScatter = "real scatter"
)

// bands are what causes are planted in: a host that is set up for measuring, and usual ones.
func (p *population) bands() []causes.Band {
	return []causes.Band{p.band(lowScatter, tuned), p.band(realScatter, quiet)}
}

// band draws the scatter of a cell and its baseline, where the typical one is most at most.
func (p *population) band(name string, most float64) causes.Band {
	return causes.Band{Name: name, Draw: func(r *rand.Rand) causes.Noise {
		from := &p.sources[r.IntN(len(p.sources))]
		return causes.Noise{Base: p.sd(from.baseline, most), Own: p.sd(from.others[r.IntN(len(from.others))], most), Together: from.tied()}
	}}
}

// moments are the mean and the sample variance, by way of pairs of values, which no other
// part of the program does.
func moments(v []float64) (mean, variance float64) {
	n := 0.0
	for _, x := range v {
		n++
		d := x - mean
		mean += d / n
		variance += d * (x - mean)
	}
	if n < 2 {
		return mean, 0
	}
	return mean, variance / (n - 1)
}

// quantile sorts its argument.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	at := q * float64(len(v)-1)
	i := int(at)
	if i+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[i] + (at-float64(i))*(v[i+1]-v[i])
}

// draw gives the scatter of each cell of a study: by stratum, then by cell with the
// baseline first; and the correlation of the cells of a block, by stratum. The typical scatter is most
// at most.
func (p *population) draw(r *rand.Rand, s shape, most float64) (sd [][]float64, together []float64) {
	for range s.workloads {
		from := &p.sources[r.IntN(len(p.sources))]
		of := []float64{p.sd(from.baseline, most)}
		for range s.treatments() {
			of = append(of, p.sd(from.others[r.IntN(len(from.others))], most))
		}
		for range s.points {
			f := 1.0
			if s.points > 1 {
				f = math.Exp(p.jitter * r.NormFloat64())
			}
			row := make([]float64, len(of))
			for k := range of {
				row[k] = f * of[k]
			}
			sd, together = append(sd, row), append(together, from.tied())
		}
	}
	return sd, together
}
