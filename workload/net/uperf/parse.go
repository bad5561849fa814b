package uperf

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Parse reads a profile. Lookup gives the value of a $variable, by its
// lower-cased name. Every error of the profile is an *Error with its place; the
// first one is returned.
func Parse(in io.Reader, lookup func(name string) (string, bool)) (Profile, error) {
	b, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err != nil {
		return Profile{}, fmt.Errorf("reading the profile: %w", err)
	}
	if len(b) > maxText {
		return Profile{}, place{1, 1}.bad(fmt.Sprintf("the profile is over %d bytes", maxText))
	}
	p := &parser{scan: &scanner{text: string(b), at: place{1, 1}}, lookup: lookup}
	out, err := p.profile()
	out.Ignored = p.ignored
	return out, err
}

type parser struct {
	scan    *scanner
	lookup  func(string) (string, bool)
	ignored []string
}

// inside reads all elements of a name inside of another one: at least one, and at most so many.
func inside[T any](p *parser, in *tag, name string, most int, read func(*tag) (T, error)) ([]T, error) {
	var out []T
	for !in.empty {
		t, err := p.scan.next()
		switch {
		case err != nil:
			return nil, err
		case t == nil:
			return nil, in.at.bad(fmt.Sprintf("<%s> is not ended by </%s>", in.name, in.name))
		case t.close && t.name != in.name:
			return nil, t.at.bad(fmt.Sprintf("</%s> ends nothing here; <%s> is open", t.name, in.name))
		case t.close && len(out) > 0:
			return out, nil
		case t.close:
			in.empty = true
			continue
		case t.name != name:
			return nil, t.at.bad(fmt.Sprintf("<%s> has no place in <%s>; write <%s>", t.name, in.name, name))
		case len(out) == most:
			return nil, t.at.bad(fmt.Sprintf("a %s has at most %d %ss here", in.name, most, name))
		}
		x, err := read(t)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return nil, in.at.bad(fmt.Sprintf("the %s has no %s", in.name, name))
}

func (p *parser) profile() (Profile, error) {
	var out Profile
	t, err := p.scan.next()
	switch {
	case err != nil:
		return out, err
	case t == nil || t.name != "profile" || t.close || t.empty:
		return out, place{1, 1}.bad("a profile begins with <profile name=...>")
	}
	for _, a := range t.attrs {
		if a.name != "name" {
			return out, unknown(t, a, "name")
		}
		out.Name = a.value
	}
	if out.Groups, err = inside(p, t, "group", maxGroups, p.group); err != nil {
		return out, err
	}
	if more, err := p.scan.next(); err != nil || more != nil {
		if err == nil {
			err = more.at.bad("the profile has ended; nothing may follow </profile>")
		}
		return out, err
	}
	return out, nil
}

func unknown(t *tag, a attr, known ...string) error {
	return a.at.bad(fmt.Sprintf("<%s> has no attribute %q; it has %s", t.name, a.name, strings.Join(known, ", ")))
}

func (p *parser) group(t *tag) (Group, error) {
	g := Group{Strands: 1}
	for _, a := range t.attrs {
		switch a.name {
		case "name":
			g.Name = a.value
		case "nthreads", "nprocs":
			// With both attributes uperf makes processes, as many as the last one says.
			n, err := p.integer(a, MaxStrands)
			if err != nil {
				return g, err
			}
			g.Strands, g.Processes = n, g.Processes || a.name == "nprocs"
		default:
			return g, unknown(t, a, "nthreads", "nprocs", "name")
		}
	}
	var err error
	g.Transactions, err = inside(p, t, "transaction", maxTransactions, p.transaction)
	return g, err
}

func (p *parser) transaction(t *tag) (Transaction, error) {
	x := Transaction{Iterations: 1}
	var rate *attr
	for i, a := range t.attrs {
		var err error
		switch a.name {
		case "iterations":
			x.Iterations, err = p.integer(a, math.MaxInt32)
		case "duration":
			x.Duration, err = p.time(a)
		case "rate":
			rate = &t.attrs[i]
			var n int
			n, err = p.integer(a, 1e9)
			x.Rate = float64(n)
		default:
			err = unknown(t, a, "iterations", "duration", "rate")
		}
		if err != nil {
			return x, err
		}
	}
	if x.Duration > 0 {
		x.Iterations = 0
	}
	if rate != nil && x.Duration == 0 {
		return x, rate.at.bad("a rate needs a duration beside it; write duration=30s")
	}
	var err error
	x.Flowops, err = inside(p, t, "flowop", maxFlowops, p.flowop)
	return x, err
}

// value replaces a $variable, which is always a whole value.
func (p *parser) value(a attr) (string, error) {
	name, ok := strings.CutPrefix(a.value, "$")
	if !ok {
		return a.value, nil
	}
	v, ok := p.lookup(name)
	switch {
	case strings.HasPrefix(name, "{"):
		return "", a.valueAt.bad("a variable is written $name, without braces")
	case !ok:
		return "", a.valueAt.bad(fmt.Sprintf("the variable $%s has no value (names are lower-cased)", name))
	}
	return strings.ToLower(v), nil
}

func (p *parser) integer(a attr, most int) (int, error) {
	v, err := p.value(a)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > most {
		return 0, a.valueAt.bad(fmt.Sprintf("%s=%q is not a whole number from 1 to %d", a.name, v, most))
	}
	return n, nil
}

// time reads 30, 30s, 50ms or 50m (both milliseconds), 10u, 10us, 5n, 5ns.
func (p *parser) time(a attr) (time.Duration, error) {
	v, err := p.value(a)
	if err != nil {
		return 0, err
	}
	digits := strings.TrimRight(v, "abcdefghijklmnopqrstuvwxyz")
	unit, ok := map[string]time.Duration{
		"": time.Second, "s": time.Second, "m": time.Millisecond, "ms": time.Millisecond,
		"u": time.Microsecond, "us": time.Microsecond, "n": time.Nanosecond, "ns": time.Nanosecond,
	}[v[len(digits):]]
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(n > 0) || n*float64(unit) > float64(366*24*time.Hour) || n*float64(unit) < 1 {
		return 0, a.valueAt.bad(fmt.Sprintf("%s=%q is not a time; write 30s, 500ms (or 500m), 10us or 5ns", a.name, v))
	}
	return time.Duration(n * float64(unit)), nil
}

// bytes reads 64, 64b, 4k, 1.5m, 1g: units of 1024.
func (p *parser) bytes(a attr, text string) (int, error) {
	digits := strings.TrimRight(text, "bkmg")
	factor, ok := map[string]float64{"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[text[len(digits):]]
	n, err := strconv.ParseFloat(digits, 64)
	b := math.Floor(n * factor)
	if !ok || err != nil || !(b >= 1) || b > 1<<31 {
		return 0, a.valueAt.bad(fmt.Sprintf("%s=%q is not a size from 1 byte to 2g; write 64, 4k or 1.5m", a.name, text))
	}
	return int(b), nil
}
