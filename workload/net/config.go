package netload

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Bounds that both ends check.
const (
	maxMessage     = 1 << 20
	maxDatagram    = 65507 // of UDP over IPv4: 65535 minus 20 and 8 bytes of headers
	maxConnections = 256
	maxNeighbours  = 8192
	maxRate        = 1e6
	maxTime        = time.Hour // warm-up and duration together
	udpRetry       = 200 * time.Millisecond
	maxSpin        = 10 * time.Millisecond
)

// config is the client's request, the first line of the control connection.
type config struct {
	Version     int     `json:"version"`
	Mode        string  `json:"mode"`     // stream, rr
	Protocol    string  `json:"protocol"` // tcp, udp
	Direction   string  `json:"direction"`
	Size        int     `json:"size_bytes"`
	Reply       int     `json:"reply_bytes"` // 0: as Size
	Connections int     `json:"connections"`
	Neighbours  int     `json:"neighbours,omitempty"` // addresses of the server that requests go to; 0: its one
	Rate        float64 `json:"rate_per_s"`           // 0: closed loop
	Count       int64   `json:"count"`                // operations in all; 0: by Duration
	Spin        float64 `json:"spin_s,omitempty"`     // open loop: the last part of each wait, which polls the clock
	NoDelay     bool    `json:"nodelay"`
	Warmup      float64 `json:"warmup_s"`
	Duration    float64 `json:"duration_s"`
	Timeout     float64 `json:"timeout_s"` // without any progress
	Ports       []int   `json:"udp_ports,omitempty"`

	Profile   string       `json:"profile,omitempty"` // the text, in mode profile; the name in a report
	Vars      string       `json:"vars,omitempty"`
	addresses netip.Prefix // of the neighbours, at the client

	Listen []listening `json:"listen,omitempty"` // the client's strands' ports
}

// protocolVersion changes when the two endpoints would misunderstand each other.
const protocolVersion = 2

func (c *config) replySize() int {
	if c.Reply == 0 {
		return c.Size
	}
	return c.Reply
}

func (c *config) timeout() time.Duration { return seconds(c.Timeout) }
func (c *config) download() bool         { return c.Direction == "download" }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// limit returns the longest time of a session: four minutes more than configured, or an hour
// by count, because its time is unknown.
func (c *config) limit() time.Duration {
	if c.Count > 0 || c.Mode == modeProfile {
		return maxTime
	}
	return seconds(c.Warmup) + seconds(c.Duration) + 4*time.Minute
}

// check refuses a config that cannot be run. The server calls it on input from the network,
// which may be anything.
func (c *config) check() error {
	between := func(what string, v, lo, hi float64) error {
		if v >= lo && v <= hi { // also false for NaN
			return nil
		}
		return fmt.Errorf("%s %v is out of range; use %v to %v", what, v, lo, hi)
	}
	largest := float64(maxMessage)
	if c.Protocol == "udp" {
		largest = maxDatagram
	}
	if c.Mode == modeProfile {
		errs := []error{between("spin", c.Spin, 0, maxSpin.Seconds()), between("timeout", c.Timeout, 0.1, maxTime.Seconds())}
		if c.Version != protocolVersion {
			errs = append(errs, fmt.Errorf("protocol version %d here, %d there: run the same tare at both ends", protocolVersion, c.Version))
		}
		return errors.Join(errs...)
	}
	errs := []error{
		between("size", float64(c.Size), 1, largest),
		between("reply", float64(c.Reply), 0, largest),
		between("connections", float64(c.Connections), 1, maxConnections),
		between("neighbours", float64(c.Neighbours), 0, maxNeighbours),
		between("rate", c.Rate, 0, maxRate),
		between("spin", c.Spin, 0, maxSpin.Seconds()),
		between("count", float64(c.Count), 0, 1e12),
		between("warmup", c.Warmup, 0, maxTime.Seconds()),
		between("duration", c.Duration, 0, maxTime.Seconds()),
		between("timeout", c.Timeout, 0.1, maxTime.Seconds()),
	}
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Version != protocolVersion {
		fail("protocol version %d here, %d there: run the same tare at both ends", protocolVersion, c.Version)
	}
	if c.Mode != "stream" && c.Mode != "rr" {
		fail("mode %q: use stream or rr", c.Mode)
	}
	if c.Protocol != "tcp" && c.Protocol != "udp" {
		fail("protocol %q: use tcp or udp", c.Protocol)
	}
	if c.Direction != "upload" && c.Direction != "download" {
		fail("direction %q: use upload or download", c.Direction)
	}
	if c.Mode == "stream" {
		if c.Protocol == "udp" {
			fail("mode stream is TCP only; use protocol tcp, or mode rr for UDP")
		}
		if c.Rate > 0 {
			fail("rate is for mode rr; a stream goes as fast as it can: leave rate at 0")
		}
		if c.Reply > 0 {
			fail("reply is for mode rr; a stream has no replies: leave reply at 0")
		}
	} else if c.download() {
		fail("direction download is for mode stream; request and response go both ways")
	}
	if c.Neighbours > 0 && c.Protocol != "udp" {
		fail("neighbours are of UDP alone, whose requests need no connection; use protocol udp, or leave neighbours at 0")
	}
	if c.Count == 0 && c.Duration <= 0 {
		fail("duration and count are both 0; one of them must say when to end")
	}
	if c.Count > 0 && c.Count < int64(c.Connections) {
		fail("count %d is less than connections %d", c.Count, c.Connections)
	}
	return errors.Join(errs...)
}
