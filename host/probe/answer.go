package probe

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"tare/workload"
)

// An answer, and the header of one, are bounded in bytes: a server that never stops
// is told so. A body ends at the wanted size already.
const (
	maxAnswer = 16 << 20
	maxHead   = 64 << 10
)

// question is what the server is sent; nil for nothing.
func question(addr netip.Addr, p workload.Probe) []byte {
	if p.Path == "" {
		return []byte(p.Send)
	}
	return []byte("GET " + p.Path + " HTTP/1.1\r\nHost: " + netip.AddrPortFrom(addr, uint16(p.Port)).String() + //nolint:gosec // checked by Wait
		"\r\nUser-Agent: tare\r\nAccept: */*\r\nConnection: close\r\n\r\n")
}

// answer is what has come of one, in pieces.
type answer struct {
	buf  []byte
	head int // bytes of the HTTP header, its empty line included; 0: not whole yet
	code int
	size int64 // of the body by its header; -1 unknown
	many bool  // the body comes in chunks
	next int   // where the first chunk begins that has not come whole
	body int64 // bytes of the chunks before
}

// add takes a piece, an empty one for the end, and tells whether the answer is
// now whole and good. An error is what is wrong with it.
func (a *answer) add(p workload.Probe, piece []byte) (good bool, err error) {
	a.buf = append(a.buf, piece...)
	if len(a.buf) > maxAnswer {
		return false, fmt.Errorf("its answer is longer than %d MiB", maxAnswer>>20)
	}
	if p.Path != "" {
		return a.http(p, len(piece) == 0)
	}
	if len(p.Want) == 0 && len(a.buf) > 0 {
		return true, nil
	}
	n := min(len(a.buf), len(p.Want))
	switch {
	case string(a.buf[:n]) != p.Want[:n]:
		return false, fmt.Errorf("it answered %s, not %q", a.soFar(), p.Want)
	case n == len(p.Want):
		return true, nil
	case len(piece) == 0:
		return false, fmt.Errorf("it closed the connection after %s", a.soFar())
	}
	return false, nil
}

// http judges an answer of HTTP/1.1 (RFC 9112): status 200, and a body of the
// wanted size. Without a wanted size the header is enough.
func (a *answer) http(p workload.Probe, ended bool) (bool, error) {
	if a.head == 0 {
		i := bytes.Index(a.buf, []byte("\r\n\r\n"))
		if i < 0 {
			switch {
			case ended:
				return false, fmt.Errorf("it closed the connection after %s", a.soFar())
			case len(a.buf) > maxHead:
				return false, fmt.Errorf("it answered %s, and its HTTP header does not end within %d KiB", a.soFar(), maxHead>>10)
			}
			return false, nil
		}
		a.head, a.next = i+4, i+4
		if err := a.header(); err != nil {
			return false, err
		}
	}
	body := int64(len(a.buf) - a.head)
	switch {
	case a.code != http.StatusOK:
		return false, fmt.Errorf("GET %s returned %d %s, not 200", p.Path, a.code, http.StatusText(a.code))
	case p.Size == 0:
		return true, nil
	case a.many:
		var done bool
		var err error
		if body, done, err = a.chunks(p.Size); err != nil || !done && !ended {
			return false, err
		}
		if !done && body == p.Size {
			return false, fmt.Errorf("GET %s returned a chunked body that was cut before its last chunk", p.Path)
		}
	case a.size >= 0 && a.size != p.Size:
		body = a.size // wrong already
	case body < p.Size && !ended, body == p.Size && a.size < 0 && !ended:
		return false, nil
	}
	if body != p.Size {
		return false, fmt.Errorf("GET %s returned a body of %d bytes, not %d", p.Path, body, p.Size)
	}
	return true, nil
}

func (a *answer) header() error {
	r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(a.buf)), nil)
	if err != nil {
		return fmt.Errorf("it answered %s, which is not HTTP: %w", a.soFar(), err)
	}
	_ = r.Body.Close()
	a.code, a.size, a.many = r.StatusCode, r.ContentLength, len(r.TransferEncoding) > 0
	return nil
}

// chunks counts the bytes of a body in chunks (RFC 9112, section 7.1), most at
// most, and tells whether the last chunk and the trailer are there. It goes on where
// the call before stopped.
func (a *answer) chunks(most int64) (n int64, done bool, err error) {
	for {
		rest := a.buf[a.next:]
		end := bytes.Index(rest[:min(len(rest), maxHead)], []byte("\r\n"))
		if end < 0 {
			if len(rest) >= maxHead {
				return a.body, false, fmt.Errorf("the body of its answer is wrong: a chunk has no size")
			}
			return a.body, false, nil
		}
		digits, _, _ := strings.Cut(string(rest[:end]), ";")
		size, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 31)
		switch {
		case err != nil:
			return a.body, false, fmt.Errorf("the body of its answer is wrong: the size of a chunk is %q", digits[:min(len(digits), 40)])
		case size == 0:
			return a.body, bytes.Contains(rest[end:], []byte("\r\n\r\n")), nil
		case a.body+int64(size) > most:
			return a.body, false, fmt.Errorf("the body of its answer is longer than %d bytes", most)
		}
		from, to := end+2, end+2+int(size)
		if len(rest) < to+2 {
			return a.body + int64(min(len(rest), to)-from), false, nil
		}
		if string(rest[to:to+2]) != "\r\n" {
			return a.body, false, fmt.Errorf("the body of its answer is wrong: a chunk is longer than its size")
		}
		a.next, a.body = a.next+to+2, a.body+int64(size)
	}
}

// soFar quotes the beginning of what has come.
func (a *answer) soFar() string {
	if len(a.buf) == 0 {
		return "nothing"
	}
	line, _, _ := strings.Cut(strings.ToValidUTF8(string(a.buf[:min(len(a.buf), 80)]), "?"), "\r\n")
	return strconv.Quote(line)
}
