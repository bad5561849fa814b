// Package uperf reads profiles of the network tool uperf (uperf.org), so that its users can use
// their loads: groups of strands, transactions, flowops.
//
// The data path: 1. scan splits the text into tags, as uperf's own parser does (it does not
// parse XML); 2. Parse builds a Profile from them and replaces $variables; 3. check refuses what
// uperf would refuse and what this package does not support, with line and column; 4. workload
// net executes the Profile.
//
// The semantics are uperf 1.0.8's, found in its source and not always in its
// manual: names are lower-cased, K is 1024, "m" after a time means milliseconds,
// a think runs on both ends, a write goes on until its whole size is written. Every remotehost
// means the server, because a trial has one.
// docs/workloads/uperf.md has the whole list.
package uperf

import (
	"fmt"
	"time"
)

// Profile is a checked profile.
type Profile struct {
	Name    string
	Groups  []Group
	Ignored []string // line:column: what uperf reads and ignores, as does this package
}

// Group is a number of strands, which all run the same transactions.
type Group struct {
	Name         string
	Strands      int  // threads or processes
	Processes    bool // the profile asks for processes; here every strand is a thread
	Transactions []Transaction
}

// Transaction is a list of flowops that is repeated. Transaction n of every group
// starts when transaction n-1 of all groups has ended.
type Transaction struct {
	Iterations int           // repetitions; 0 when Duration bounds it
	Duration   time.Duration // 0 when Iterations bounds it
	Rate       float64       // repetitions a second and strand; 0: as fast as it goes. Only with Duration
	Flowops    []Flowop
}

// Op is what a flowop does on the side that the profile describes, the master.
type Op string

// The flowops. The peer runs the counterpart: Peer.
const (
	Connect    Op = "connect"
	Accept     Op = "accept"
	Read       Op = "read"
	Write      Op = "write"
	Send       Op = "send"
	Recv       Op = "recv"
	Disconnect Op = "disconnect"
	Think      Op = "think"
	Nop        Op = "nop"
)

// Peer returns the other side's counterpart. A disconnect, a think and a nop are the same on both
// sides.
func (o Op) Peer() Op {
	switch o {
	case Connect:
		return Accept
	case Accept:
		return Connect
	case Read:
		return Write
	case Write:
		return Read
	case Send:
		return Recv
	case Recv:
		return Send
	case Disconnect, Think, Nop:
	}
	return o
}

// Protocol of a connection.
type Protocol string

// The protocols.
const (
	TCP Protocol = "tcp"
	UDP Protocol = "udp"
)

// Flowop is one step of a transaction.
type Flowop struct {
	Op         Op
	Conn       int           // the connection's name, from 1; 0: the strand's anonymous one
	Count      int           // repetitions, at least 1
	Size       Size          // of Read, Write, Send, Recv
	PeerSize   int           // rsize, bytes: the peer's size if larger; 0: the same
	Duration   time.Duration // of Think
	Busy       bool          // Think burns CPU instead of sleeping
	Protocol   Protocol      // of Connect and Accept
	RemoteHost string        // of Connect and Accept, as written where its $variable has no value; always means the server
	Port       int           // of Connect and Accept; 0: any
	CanFail    bool          // an error is counted, and does not fail the transaction
	NonBlock   bool          // UDP
	NoDelay    bool          // TCP_NODELAY
	Window     int           // bytes of the socket's buffers; 0: the system's
	Timeout    time.Duration // of waiting for the peer; 0: none
	Line       int
	Column     int
	Options    map[string]Place // place of each option's value; without flags
}

// Place is a position in the text, from 1.
type Place struct{ Line, Column int }

// Place returns the place of an option's value, or of the flowop if it lacks the option.
func (f *Flowop) Place(option string) Place {
	if p, ok := f.Options[option]; ok {
		return p
	}
	return Place{f.Line, f.Column}
}

// Size is a number of bytes, or a random one in a range.
type Size struct {
	Min, Max int // equal unless random; the reader uses Max
}

// Random reports whether each operation draws its own size.
func (s Size) Random() bool { return s.Min != s.Max }

// Error is a mistake in a profile, with its place.
type Error struct {
	Line, Column int
	Text         string
}

// Error returns line:column: text. The caller puts the file's name before it.
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Text) }
