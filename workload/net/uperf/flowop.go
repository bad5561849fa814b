package uperf

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// flowop reads <flowop type=... options="..."/>.
func (p *parser) flowop(t *tag) (Flowop, error) {
	f := Flowop{Count: 1, Line: t.at.line, Column: t.at.column, Options: map[string]Place{}}
	if !t.empty {
		return f, t.at.bad("a flowop ends with />")
	}
	var options *attr
	for i, a := range t.attrs {
		switch a.name {
		case "type":
			v, err := p.value(a)
			if err != nil {
				return f, err
			}
			if f.Op, err = opOf(a, v); err != nil {
				return f, err
			}
		case "options":
			options = &t.attrs[i]
		default:
			return f, unknown(t, a, "type", "options")
		}
	}
	if f.Op == "" {
		return f, t.at.bad("the flowop has no type; write type=write")
	}
	if options != nil {
		if err := p.options(&f, *options); err != nil {
			return f, err
		}
	}
	if f.Op != Think && (f.Duration > 0 || f.Busy) {
		p.ignored = append(p.ignored, t.at.bad(fmt.Sprintf("duration and busy have no effect on %s, as with uperf", f.Op)).Error())
		f.Duration, f.Busy = 0, false
	}
	return f, f.check(t)
}

// opOf returns the flowop of a name. Its error knows uperf's flowops that this package does not
// support.
func opOf(a attr, name string) (Op, error) {
	ops := []Op{Connect, Accept, Read, Write, Send, Recv, Disconnect, Think, Nop}
	if i := slices.Index(ops, Op(name)); i >= 0 {
		return ops[i], nil
	}
	known := make([]string, len(ops))
	for i, o := range ops {
		known[i] = string(o)
	}
	why := "there is no flowop %q"
	switch name {
	case "sendfile", "sendfilev":
		why = "the flowop %q is not supported; write sends the same bytes"
	case "sendto", "redv", "wait", "async":
		why = "%q is in uperf's manual or samples, but uperf itself does not know it"
	}
	return "", a.valueAt.bad(fmt.Sprintf(why, name) + "; known are " + strings.Join(known, ", "))
}

// options reads the words of the attribute: name or name=value, separated by spaces. rand(a, b)
// may contain spaces.
func (p *parser) options(f *Flowop, a attr) error {
	rest, at := a.value, a.valueAt
	for n := 0; ; n++ {
		trimmed := strings.TrimLeft(rest, " \t\r\n")
		at = after(at, rest[:len(rest)-len(trimmed)])
		if rest = trimmed; rest == "" {
			return nil
		}
		end := wordWithParens(rest)
		text := rest[:end]
		name, value, has := strings.Cut(text, "=")
		o := attr{name: name, value: value, at: at, valueAt: after(at, text[:len(text)-len(value)])}
		switch {
		case n == maxOptions:
			return at.bad(fmt.Sprintf("a flowop has at most %d options", maxOptions))
		case len(text) >= maxOption:
			return at.bad(fmt.Sprintf("an option has fewer than %d characters", maxOption))
		}
		if err := p.option(f, o, has); err != nil {
			return err
		}
		rest, at = rest[end:], after(at, text)
	}
}

// after returns the place after a text.
func after(at place, text string) place {
	s := scanner{text: text, at: at}
	s.skip(len(text))
	return s.at
}

// wordWithParens returns the length of a word, including spaces in parentheses.
func wordWithParens(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ' ', '\t', '\r', '\n':
			if depth <= 0 {
				return i
			}
		}
	}
	return len(s)
}

// option reads one option into f.
func (p *parser) option(f *Flowop, o attr, hasValue bool) error {
	flags := map[string]*bool{"canfail": &f.CanFail, "non_blocking": &f.NonBlock, "tcp_nodelay": &f.NoDelay, "busy": &f.Busy, "idle": nil}
	if flag, ok := flags[o.name]; ok {
		if hasValue {
			return o.at.bad(fmt.Sprintf("%s takes no value", o.name))
		}
		if flag != nil {
			*flag = true
		} else {
			f.Busy = false
		}
		return nil
	}
	known := []string{"size", "rsize", "count", "repeat", "duration", "protocol", "remotehost", "port", "conn", "wndsz", "timeout"}
	switch {
	case slices.Contains([]string{"ssl", "engine", "cc", "stack", "encaps", "localhost", "batch_size", "dir", "nfiles"}, o.name), strings.HasPrefix(o.name, "sctp_"):
		return o.at.bad(fmt.Sprintf("the option %s of uperf is not supported; remove it", o.name))
	case o.name == "rate":
		return o.at.bad("rate is an attribute of the transaction, not an option")
	case !slices.Contains(known, o.name):
		return o.at.bad(fmt.Sprintf("there is no option %q; known are %s, canfail, non_blocking, tcp_nodelay, busy, idle", o.name, strings.Join(known, ", ")))
	case !hasValue || o.value == "":
		return o.at.bad(fmt.Sprintf("%s needs a value; write %s=...", o.name, o.name))
	}
	f.Options[o.name] = Place{o.valueAt.line, o.valueAt.column}
	if o.name == "remotehost" {
		// The host does not matter, so a $variable needs no value.
		f.RemoteHost = o.value
		if v, err := p.value(o); err == nil {
			f.RemoteHost = v
		}
		return nil
	}
	v, err := p.value(o)
	if err != nil {
		return err
	}
	switch o.name {
	case "size":
		f.Size, err = p.size(o, v)
	case "rsize":
		f.PeerSize, err = p.bytes(o, v)
	case "wndsz":
		f.Window, err = p.bytes(o, v)
	case "count", "repeat":
		f.Count, err = p.integer(o, 1<<30)
	case "conn":
		f.Conn, err = p.integer(o, 1<<16)
	case "port":
		f.Port, err = p.integer(o, 65535)
	case "duration":
		f.Duration, err = p.time(o)
	case "timeout":
		var ms int
		ms, err = p.integer(o, 1<<30)
		f.Timeout = time.Duration(ms) * time.Millisecond
	case "protocol":
		f.Protocol = Protocol(v)
		if f.Protocol != TCP && f.Protocol != UDP {
			err = o.valueAt.bad(fmt.Sprintf("the protocol %q is not supported; write tcp or udp", v))
		}
	}
	return err
}

// size reads SIZE or rand(MIN,MAX).
func (p *parser) size(o attr, v string) (Size, error) {
	inner, ok := strings.CutPrefix(v, "rand(")
	if !ok {
		n, err := p.bytes(o, v)
		return Size{n, n}, err
	}
	inner, ok = strings.CutSuffix(inner, ")")
	lo, hi, two := strings.Cut(inner, ",")
	if !ok || !two {
		return Size{}, o.valueAt.bad("a random size is written rand(MIN,MAX)")
	}
	least, err := p.bytes(o, strings.TrimSpace(lo))
	if err != nil {
		return Size{}, err
	}
	most, err := p.bytes(o, strings.TrimSpace(hi))
	if err == nil && most < least {
		err = o.valueAt.bad(fmt.Sprintf("rand(%d,%d): the least is over the most", least, most))
	}
	return Size{least, most}, err
}

// check refuses flowops that lack an option, or have options that exclude each other.
func (f Flowop) check(t *tag) error {
	opens := f.Op == Connect || f.Op == Accept
	moves := slices.Contains([]Op{Read, Write, Send, Recv}, f.Op)
	switch {
	case opens && (f.RemoteHost == "" || f.Protocol == ""):
		return t.at.bad(fmt.Sprintf("%s needs remotehost=... and protocol=...", f.Op))
	case moves && f.Size.Max == 0:
		return t.at.bad(fmt.Sprintf("%s needs size=...", f.Op))
	case f.Op == Think && f.Duration == 0:
		return t.at.bad("think needs duration=...")
	case f.PeerSize > 0 && f.Size.Random():
		return t.at.bad("rsize and a random size exclude each other")
	}
	return nil
}
