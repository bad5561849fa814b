package uperf

import (
	"strings"
)

// Bounds of uperf's own reader, and one for the whole text.
const (
	maxText         = 1 << 20
	maxToken        = 1024
	maxGroups       = 1024
	maxTransactions = 100 // of a group
	maxFlowops      = 1000
	maxOptions      = 100 // of a flowop
	maxOption       = 100 // characters
)

// MaxStrands bounds the strands of all groups: each is a thread at both ends. uperf
// itself has no bound.
const MaxStrands = 1024

// place is where something stands in the text, from 1.
type place struct{ line, column int }

func (p place) bad(text string) error { return &Error{p.line, p.column, text} }

// attr is name=value.
type attr struct {
	name, value string
	at, valueAt place
}

// tag is <name attr...>, <name attr.../> or </name>.
type tag struct {
	name  string
	attrs []attr
	close bool // </name>
	empty bool // <name/>
	at    place
}

// scanner walks over the text, counting lines.
type scanner struct {
	text string
	pos  int
	at   place
}

func (s *scanner) rest() string { return s.text[s.pos:] }

// skip moves n bytes on.
func (s *scanner) skip(n int) string {
	part := s.text[s.pos : s.pos+n]
	s.pos += n
	if lines := strings.Count(part, "\n"); lines > 0 {
		s.at.line += lines
		s.at.column = len(part) - strings.LastIndexByte(part, '\n')
	} else {
		s.at.column += n
	}
	return part
}

func (s *scanner) spaces() {
	s.skip(len(s.rest()) - len(strings.TrimLeft(s.rest(), " \t\r\n")))
}

// next returns the next tag; nil at the end of the text.
func (s *scanner) next() (*tag, error) {
	for {
		s.spaces()
		switch r := s.rest(); {
		case r == "":
			return nil, nil
		case strings.HasPrefix(r, "<?"):
			if err := s.past("?>", "the processing instruction is not ended by ?>"); err != nil {
				return nil, err
			}
		case strings.HasPrefix(r, "<!--"):
			if err := s.past("-->", "the comment is not ended by -->"); err != nil {
				return nil, err
			}
		case r[0] == '<':
			return s.tag()
		default:
			return nil, s.at.bad("text between tags has no meaning; remove it, or begin a tag with <")
		}
	}
}

func (s *scanner) past(end, missing string) error {
	i := strings.Index(s.rest(), end)
	if i < 0 {
		return s.at.bad(missing)
	}
	s.skip(i + len(end))
	return nil
}

func (s *scanner) tag() (*tag, error) {
	t := &tag{at: s.at}
	s.skip(1)
	if strings.HasPrefix(s.rest(), "/") {
		t.close = true
		s.skip(1)
	}
	s.spaces()
	t.name = strings.ToLower(s.skip(word(s.rest())))
	if t.name == "" {
		return nil, t.at.bad("a tag needs a name: profile, group, transaction or flowop")
	}
	for {
		s.spaces()
		r := s.rest()
		switch {
		case r == "":
			return nil, t.at.bad("the tag <" + t.name + " is not ended by >")
		case strings.HasPrefix(r, "/>"):
			t.empty = true
			s.skip(2)
			return t, nil
		case r[0] == '>':
			s.skip(1)
			return t, nil
		}
		a, err := s.attr()
		if err != nil {
			return nil, err
		}
		t.attrs = append(t.attrs, a)
		if len(t.attrs) > maxOptions {
			return nil, a.at.bad("more attributes than any tag has")
		}
	}
}

// attr reads name=value or name="value". Single quotes and entities are not part
// of the language.
func (s *scanner) attr() (attr, error) {
	a := attr{at: s.at}
	a.name = strings.ToLower(s.skip(word(s.rest())))
	s.spaces()
	if a.name == "" || !strings.HasPrefix(s.rest(), "=") {
		return a, a.at.bad("an attribute is written name=value, or name=\"value\"")
	}
	s.skip(1)
	s.spaces()
	a.valueAt = s.at
	r := s.rest()
	switch {
	case strings.HasPrefix(r, `"`):
		end := strings.IndexByte(r[1:], '"')
		if end < 0 {
			return a, a.valueAt.bad("the value is not ended by a double quote")
		}
		s.skip(1)
		a.valueAt = s.at
		a.value = s.skip(end)
		s.skip(1)
	case strings.HasPrefix(r, "'"):
		return a, a.valueAt.bad("a value stands in double quotes, not in single ones")
	default:
		n := word(r)
		if n == 0 {
			return a, a.valueAt.bad("the attribute " + a.name + " has no value")
		}
		a.value = s.skip(n)
	}
	if len(a.name) >= maxToken || len(a.value) >= maxToken*8 {
		return a, a.at.bad("the attribute is too long")
	}
	a.value = strings.ToLower(a.value)
	return a, nil
}

// word is the length of a name or an unquoted value.
func word(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ', c == '=', c == '>', c == '<', c == '"', c == '\'':
			return i
		case c == '/' && strings.HasPrefix(s[i:], "/>"):
			return i
		case i == maxToken:
			return i
		}
	}
	return len(s)
}
