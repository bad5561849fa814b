package cgroup

import (
	"errors"
	"io/fs"
	"slices"

	"tare/collect/internal/metered"
	"tare/internal/held"
	"tare/record"
)

// file is one held file and its content in this Read.
type file struct {
	*held.File
	data []byte // of this Read; nil: gone
	buf  []byte
}

// reading is one figure in one file.
type reading struct {
	file  *file
	per   *file // nil: the figure is not divided
	parse func([]byte) (uint64, bool)
	scale float64
	last  float64 // its last value, in the base unit
	seen  bool    // it has had a value
}

// series is one figure of one endpoint.
type series struct {
	sample   record.Sample
	readings []reading
	whole    bool
}

type probe struct {
	metered.Reader
	files  []*file
	series []series
	buf    []byte
}

// add opens one endpoint's files.
func (p *probe) add(paths Paths, b *held.Budget, e endpoint) error {
	for _, f := range figures() {
		s := series{sample: record.Sample{Name: f.name, Labels: e.labels, Unit: f.unit, Kind: f.kind}, whole: f.whole}
		for _, g := range e.groups() {
			r, err := p.reading(paths, b, f.sources, g)
			if err != nil {
				return err
			}
			if r.file != nil {
				s.readings = append(s.readings, r)
			}
		}
		if len(s.readings) > 0 {
			p.series = append(p.series, s)
		}
	}
	return nil
}

// group is one cgroup and what may be read from it.
type group struct {
	rel            string
	outer, limited bool
}

func (e *endpoint) groups() []group {
	var out []group
	for _, g := range e.outer {
		out = append(out, group{g, true, slices.Contains(e.limited, g)})
	}
	for _, g := range e.limited {
		if !slices.Contains(e.outer, g) {
			out = append(out, group{g, false, true})
		}
	}
	return out
}

// has reports whether a figure is read from this cgroup.
func (g group) has(w which) bool {
	return w == both || w == outer && g.outer || w == limited && g.limited
}

// reading opens the first of a figure's files that exists and can be parsed.
func (p *probe) reading(paths Paths, b *held.Budget, sources []source, g group) (reading, error) {
	for _, src := range sources {
		if !g.has(src.from) {
			continue
		}
		dir, ok := paths.Path(src.controller, g.rel)
		if !ok {
			continue
		}
		h, err := p.open(dir+"/"+src.file, b)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return reading{}, err
		}
		data, err := h.Read(&h.buf)
		if err != nil {
			continue // such as cpu.pressure with psi=0 on the kernel's command line: EOPNOTSUPP
		}
		if _, ok := src.parse(data); !ok && !src.late {
			continue
		}
		out := reading{file: h, parse: src.parse, scale: src.scale}
		if src.per != "" {
			out.per, err = p.open(dir+"/"+src.per, b)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return reading{}, err
			}
		}
		return out, nil
	}
	return reading{}, nil
}

// open opens a file once, however many figures are in it.
func (p *probe) open(path string, b *held.Budget) (*file, error) {
	if i := slices.IndexFunc(p.files, func(f *file) bool { return f.Path() == path }); i >= 0 {
		return p.files[i], nil
	}
	h, err := held.Open(path, b)
	if err != nil {
		return nil, err
	}
	f := &file{File: h}
	p.files = append(p.files, f)
	return f, nil
}

// take reads every file once and appends a sample for each series.
func (p *probe) take(dst []record.Sample) ([]record.Sample, error) {
	for _, f := range p.files {
		var err error
		if f.data, err = f.Read(&f.buf); err != nil {
			f.data = nil // the cgroup was removed: ENODEV
		}
	}
	for i := range p.series {
		dst = p.series[i].append(dst)
	}
	return dst, nil
}

// append adds up the cgroups. The counter of a removed cgroup stays in the sum, its gauge
// does not. Without any value there is no sample.
func (s *series) append(dst []record.Sample) []record.Sample {
	sum, seen := 0.0, false
	for i := range s.readings {
		r := &s.readings[i]
		counter := s.sample.Kind == record.Counter
		n, ok := r.value()
		switch {
		case ok && counter:
			r.last, r.seen = max(r.last, n), true
		case ok:
			r.last = n
		case s.whole && r.file.data != nil:
			return dst
		case !counter, !r.seen:
			continue
		}
		sum, seen = sum+r.last, true
	}
	if !seen {
		return dst
	}
	out := s.sample
	out.Value = sum
	return append(dst, out)
}

// value returns the figure in this Read's file, in the base unit.
func (r *reading) value() (float64, bool) {
	if r.file.data == nil {
		return 0, false
	}
	n, ok := r.parse(r.file.data)
	if r.per == nil || !ok {
		return float64(n) * r.scale, ok
	}
	per, ok := bare(r.per.data)
	if !ok || per == 0 {
		return 0, false
	}
	return float64(n) * r.scale / float64(per), true
}

// Close releases every descriptor. It is idempotent.
func (p *probe) Close() error {
	p.Reader.Close()
	var err error
	for _, f := range p.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
