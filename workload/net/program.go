package netload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tare/ordered"
	"tare/param"
	"tare/workload/net/uperf"
)

// modeProfile is the mode of a session that runs a uperf profile.
const modeProfile = "profile"

// Bounds of a profile, besides those of its language.
const (
	maxStrands     = uperf.MaxStrands
	maxOpen        = 1024      // connections of one strand
	maxProfileText = 64 << 10  // bytes: it travels in the client's command line
	maxBuffers     = 256 << 20 // bytes of all strands' buffers at one end
	maxBuffer      = 4 << 20   // of one strand: a larger read or write goes in parts
)

// program is a checked profile, as both ends see it.
type program struct {
	uperf.Profile
	vars     map[string]string
	strands  []int  // the group of each strand
	rounds   int    // most transactions of a group; transaction n of all groups runs in round n
	measured []bool // by round
	ops      []uperf.Op
	sends    bool // by the master, in a measured round
	receives bool
	paced    bool // a measured round has a rate
	notes    []string
}

// newProgram reads a profile and the values of its $variables.
func newProgram(text, vars string) (*program, error) {
	if len(text) > maxProfileText {
		return nil, fmt.Errorf("the profile has %d bytes; at most %d are possible: remove comments", len(text), maxProfileText)
	}
	p := &program{}
	used := map[string]bool{}
	var err error
	if p.vars, err = parseVars(vars); err != nil {
		return nil, inVars(err)
	}
	p.Profile, err = uperf.Parse(strings.NewReader(text), func(name string) (string, bool) {
		used[name] = true
		v, ok := p.vars[name]
		return v, ok
	})
	if err != nil {
		return nil, inProfile(err)
	}
	for _, name := range slices.Sorted(maps.Keys(p.vars)) {
		if !used[name] {
			return nil, inVars(fmt.Errorf("vars: the profile has no variable $%s; %s", name, hasVars(slices.Sorted(maps.Keys(used)))))
		}
	}
	return p, p.plan()
}

// inProfile puts a mistake where the study's reader finds its place.
func inProfile(err error) error {
	var e *uperf.Error
	if !errors.As(err, &e) {
		return err
	}
	what, instead, _ := strings.Cut(e.Text, "; ")
	return &param.FileError{Param: "profile", Line: e.Line, Column: e.Column, What: what, Instead: instead}
}

// at returns a mistake at an option of a flowop, or at the flowop if it lacks that option.
func at(f *uperf.Flowop, option, what, instead string) error {
	p := f.Place(option)
	return &param.FileError{Param: "profile", Line: p.Line, Column: p.Column, What: what, Instead: instead}
}

// inVars returns a mistake at the parameter vars.
func inVars(err error) error { return &param.ValueError{Param: "vars", Err: err} }

// hasVars lists the profile's variables, for an error.
func hasVars(names []string) string {
	if len(names) == 0 {
		return "it has no variables, so remove vars"
	}
	return "it has " + strings.Join(names, ", ")
}

// parseVars reads "name=value name=value".
func parseVars(text string) (map[string]string, error) {
	out := map[string]string{}
	for word := range strings.FieldsSeq(text) {
		name, value, ok := strings.Cut(word, "=")
		name = strings.ToLower(strings.TrimPrefix(name, "$"))
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("vars: %q is not name=value; write vars: \"size=4k nthr=8\"", word)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("vars: %s is given twice (names are lower-cased); remove one", name)
		}
		out[name] = value
	}
	return out, nil
}

// plan finds the strands and the measured rounds, and refuses what cannot run.
func (p *program) plan() error {
	ports := map[string]bool{}
	for gi := range p.Groups {
		g := &p.Groups[gi]
		if len(p.strands)+g.Strands > maxStrands {
			return fmt.Errorf("the profile has more than %d strands; lower nthreads or nprocs", maxStrands)
		}
		for range g.Strands {
			p.strands = append(p.strands, gi)
		}
		if g.Processes {
			p.notes = append(p.notes, fmt.Sprintf("group %d: nprocs: the strands are threads of one process here", gi+1))
		}
		p.rounds = max(p.rounds, len(g.Transactions))
		if err := checkFlowops(g, ports); err != nil {
			return err
		}
	}
	p.measured = make([]bool, p.rounds)
	var work []float64
	bounded := false
	var longest time.Duration
	for n := range p.rounds {
		w, d := p.round(n)
		work = append(work, w)
		p.measured[n] = d > 0
		bounded = bounded || d > 0
		longest += d
	}
	if longest > maxTime {
		return fmt.Errorf("the profile's durations are %v in all; at most %v are possible: use a $variable for duration", longest, maxTime)
	}
	if !bounded {
		p.measured[slices.Index(work, slices.Max(work))] = true
	}
	p.describe()
	return nil
}

// round is what a round takes: flowops in all, or time.
func (p *program) round(n int) (flowops float64, longest time.Duration) {
	for gi := range p.Groups {
		g := &p.Groups[gi]
		if n >= len(g.Transactions) {
			continue
		}
		t := &g.Transactions[n]
		longest = max(longest, t.Duration)
		for i := range t.Flowops {
			flowops += float64(g.Strands) * float64(t.Iterations) * float64(t.Flowops[i].Count)
		}
	}
	return flowops, longest
}

// describe finds what the measured rounds do.
func (p *program) describe() {
	p.notes = append(p.notes, p.Ignored...)
	for gi := range p.Groups {
		for n := range p.Groups[gi].Transactions {
			t := &p.Groups[gi].Transactions[n]
			if !p.measured[n] {
				continue
			}
			p.paced = p.paced || t.Rate > 0
			for _, f := range t.Flowops {
				switch f.Op {
				case uperf.Write, uperf.Send:
					p.sends = true
				case uperf.Read, uperf.Recv:
					p.receives = true
				case uperf.Think, uperf.Nop:
					continue
				case uperf.Connect, uperf.Accept, uperf.Disconnect:
				}
				p.ops = ordered.Add(p.ops, f.Op)
			}
		}
	}
}

// expect returns about how long the profile runs, and how long at least its measured rounds.
// 50 us a flowop lies between native and emulated.
func (p *program) expect() time.Duration {
	var all time.Duration
	for n := range p.rounds {
		var longest float64
		for gi := range p.Groups {
			g := &p.Groups[gi]
			if n >= len(g.Transactions) {
				continue
			}
			t := &g.Transactions[n]
			once := 0.0
			for _, f := range t.Flowops {
				once += float64(f.Count) * max(f.Duration, 50*time.Microsecond).Seconds()
			}
			longest = max(longest, t.Duration.Seconds(), float64(t.Iterations)*once)
		}
		all += seconds(min(longest, maxTime.Seconds()))
	}
	return min(all, maxTime)
}

// oneWay reports whether the measured rounds move bytes in only one direction.
func (p *program) oneWay() bool { return p.sends != p.receives }

// unheard reports whether the measured rounds only send, and partly by UDP: then the client
// counts what it sent, and only the server knows what arrived.
func (p *program) unheard() bool { return p.sends && !p.receives && p.datagrams() }

// datagrams reports whether any connection is UDP.
func (p *program) datagrams() bool {
	for gi := range p.Groups {
		for _, t := range p.Groups[gi].Transactions {
			if slices.ContainsFunc(t.Flowops, func(f uperf.Flowop) bool { return f.Protocol == uperf.UDP }) {
				return true
			}
		}
	}
	return false
}

// rateInAll returns the highest rate of all strands together, in iterations a second.
func (p *program) rateInAll() float64 {
	most := 0.0
	for n := range p.rounds {
		sum := 0.0
		for gi := range p.Groups {
			if g := &p.Groups[gi]; n < len(g.Transactions) {
				sum += g.Transactions[n].Rate * float64(g.Strands)
			}
		}
		most = max(most, sum)
	}
	return most
}

// patience returns how long beyond the timeout a strand may be idle without an error.
func (p *program) patience() time.Duration {
	var most time.Duration
	for gi := range p.Groups {
		for _, t := range p.Groups[gi].Transactions {
			var think time.Duration
			for _, f := range t.Flowops {
				think = max(think, f.Duration, f.Timeout)
			}
			if t.Rate > 0 {
				think += seconds(1 / t.Rate)
			}
			most = max(most, think)
		}
	}
	return most
}

// checkFlowops checks a group's flowops in their order. It refuses a missing connection, a size
// that does not fit a datagram, and a port on which several strands would listen.
func checkFlowops(g *uperf.Group, ports map[string]bool) error {
	open := map[int]uperf.Protocol{}
	for ti := range g.Transactions {
		for fi := range g.Transactions[ti].Flowops {
			f := &g.Transactions[ti].Flowops[fi]
			switch f.Op {
			case uperf.Connect, uperf.Accept:
				open[f.Conn] = f.Protocol
				if f.Port == 0 {
					continue
				}
				key := fmt.Sprint(f.Op, f.Protocol, f.Port)
				if g.Strands > 1 || ports[key] {
					return at(f, "port", fmt.Sprintf("several strands would listen on port %d", f.Port), "remove port, so that each has one of its own")
				}
				ports[key] = true
			case uperf.Read, uperf.Write, uperf.Send, uperf.Recv:
				proto, ok := open[f.Conn]
				if !ok {
					return at(f, "conn", fmt.Sprintf("%s has no connection %s", f.Op, connName(f.Conn)), "connect or accept one before, in the same group")
				}
				if proto == uperf.UDP && f.Size.Max > maxDatagram {
					return at(f, "size", fmt.Sprintf("%d bytes do not fit into a UDP datagram", f.Size.Max), fmt.Sprintf("write at most %d", maxDatagram))
				}
			case uperf.Disconnect:
				if _, ok := open[f.Conn]; !ok {
					return at(f, "conn", "disconnect has no connection "+connName(f.Conn), "connect or accept one before, in the same group")
				}
			case uperf.Think, uperf.Nop:
			}
		}
	}
	return nil
}

func connName(id int) string {
	if id == 0 {
		return "without a name"
	}
	return fmt.Sprintf("conn=%d", id)
}
