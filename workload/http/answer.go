package httpload

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Bounds of an answer, in bytes. The body itself is counted and not kept.
const (
	maxHead  = 64 << 10 // of a head, and of all trailers
	maxLine  = 4 << 10  // of the line that begins a chunk
	maxBody  = 1 << 50
	maxEarly = 5 // answers 1xx before the final one
)

// part is what of an answer comes next.
type part int

const (
	atHead part = iota
	atBody
	atRest // the body, to the end of the connection
	atSize // the line that begins a chunk
	atChunk
	atChunkEnd
	atTrailer
)

// answer reads one answer to a GET as RFC 9112 frames it, from pieces of any size. It is strict: what two readers could understand
// differently is an error. net/http has no reader that takes pieces, and its own takes longer than all else that the load generator
// does for a request.
type answer struct {
	status int
	close  bool  // the connection ends with this answer
	length int64 // bytes of the body so far

	next  part
	left  int64  // bytes of the body, or of the chunk
	kept  []byte // a head or line of which only this has come
	early int    // answers 1xx
	more  int    // bytes of trailers
}

// begun reports whether anything of the answer has come.
func (a *answer) begun() bool { return a.next != atHead || len(a.kept) > 0 || a.early > 0 }

// reset prepares for the next answer.
func (a *answer) reset() { *a = answer{kept: a.kept[:0]} }

// feed takes the next bytes. It returns how many of them belong to the answer, and whether that is now whole.
func (a *answer) feed(p []byte) (used int, whole bool, err error) {
	for {
		n := 0
		switch a.next {
		case atHead:
			n, whole, err = a.head(p[used:])
		case atBody, atChunk:
			n = int(min(a.left, int64(len(p)-used)))
			a.length, a.left = a.length+int64(n), a.left-int64(n)
			if whole = a.left == 0 && a.next == atBody; a.left == 0 && a.next == atChunk {
				a.next = atChunkEnd
			} else if !whole {
				return used + n, false, nil
			}
		case atRest:
			a.length += int64(len(p) - used)
			return len(p), false, nil
		default:
			n, whole, err = a.line(p[used:])
		}
		if used += n; whole || err != nil || used == len(p) {
			return used, whole, err
		}
	}
}

// end tells that the connection ended. It reports whether the answer is whole by that.
func (a *answer) end() bool { return a.next == atRest }

// until takes bytes up to a mark. It returns those before the mark, nil if it has not come, and how many of p it took.
func (a *answer) until(p []byte, mark string, most int) (text []byte, n int, err error) {
	from := p
	if len(a.kept) > 0 {
		had := len(a.kept)
		a.kept = append(a.kept, p[:min(len(p), most)]...)
		from = a.kept
		defer func() { n -= had }()
	}
	i := bytes.Index(from, []byte(mark))
	switch {
	case i > most, i < 0 && len(from) > most:
		return nil, len(from), fmt.Errorf("its header or a line is longer than %d B", most)
	case i >= 0:
		a.kept = a.kept[:0]
		return from[:i], i + len(mark), nil
	}
	if len(a.kept) == 0 {
		a.kept = append(a.kept, p...)
	}
	return nil, len(from), nil
}

const (
	lineEnd = "\r\n"
	headEnd = "\r\n\r\n"
	version = "HTTP/1."
)

// head takes the head.
func (a *answer) head(p []byte) (n int, whole bool, err error) {
	text, n, err := a.until(p, headEnd, maxHead)
	if begin := text; err == nil {
		if begin == nil {
			begin = a.kept
		}
		if !bytes.HasPrefix(begin, []byte(version[:min(len(begin), len(version))])) {
			return n, false, fmt.Errorf("it begins with %.20q, not with HTTP/1.1", begin)
		}
	}
	if text == nil || err != nil {
		return n, false, err
	}
	status, rest, _ := bytes.Cut(text, []byte(lineEnd))
	if err := a.statusLine(status); err != nil {
		return n, false, err
	}
	a.left = -1
	chunked, keep := false, status[len(version)] == '1'
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte(lineEnd))
		name, value, err := field(line)
		if err != nil {
			return n, false, err
		}
		switch {
		case is(name, "content-length"):
			length, err := number(value, 10)
			if err != nil || a.left >= 0 && a.left != length {
				return n, false, fmt.Errorf("its Content-Length %.40q is not a number, or not the only one", value)
			}
			a.left = length
		case is(name, "transfer-encoding"):
			if !is(value, "chunked") || chunked {
				return n, false, fmt.Errorf("its Transfer-Encoding is %.40q; only chunked is known", value)
			}
			chunked = true
		case is(name, "connection"):
			for option := range bytes.SplitSeq(value, []byte(",")) {
				option = bytes.Trim(option, " \t")
				a.close = a.close || is(option, "close")
				keep = keep || is(option, "keep-alive")
			}
		}
	}
	a.close = a.close || !keep
	whole, err = a.frame(chunked)
	return n, whole, err
}

// frame decides how the body ends (RFC 9112, 6.3).
func (a *answer) frame(chunked bool) (whole bool, err error) {
	const switching, noContent, notModified, final = 101, 204, 304, 200
	switch {
	case a.status == switching:
		return false, errors.New("it has status 101 and changes the protocol, which was not asked for")
	case a.status < final:
		if a.early++; a.early > maxEarly {
			return false, fmt.Errorf("it has over %d answers with status 1xx before it", maxEarly)
		}
		a.close = false
		return false, nil
	case chunked && a.left >= 0:
		return false, errors.New("it has a Content-Length and a Transfer-Encoding")
	case a.status == noContent, a.status == notModified, a.left == 0:
		return true, nil
	case chunked:
		a.next = atSize
	case a.left > 0:
		a.next = atBody
	default:
		a.next, a.close = atRest, true
	}
	return false, nil
}

// statusLine takes such as "HTTP/1.1 200 OK".
func (a *answer) statusLine(line []byte) error {
	const digits = 3
	at := len(version) + len("1 ")
	if len(line) < at+digits || line[at-1] != ' ' || line[at-2] != '1' && line[at-2] != '0' || len(line) > at+digits && line[at+digits] != ' ' || !clean(line) {
		return fmt.Errorf("it begins with %.40q, not with HTTP/1.1 and a status", line)
	}
	status, err := number(line[at:at+digits], 10)
	if err != nil || status < 100 {
		return fmt.Errorf("its status is %q, not a number from 100 to 999", line[at:at+digits])
	}
	a.status = int(status)
	return nil
}

// field divides a line of a head.
func field(line []byte) (name, value []byte, err error) {
	name, value, ok := bytes.Cut(line, []byte(":"))
	ok = ok && len(name) > 0 && clean(value)
	for _, c := range name {
		ok = ok && token[c]
	}
	if !ok {
		return nil, nil, fmt.Errorf("its header has the line %.60q, which is not a field", line)
	}
	return name, bytes.Trim(value, " \t"), nil
}

// token marks the characters of names (RFC 9110, 5.6.2).
var token = func() (t [256]bool) { //nolint:gochecknoglobals // a table
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[c] = true
	}
	return t
}()

// clean reports whether a value or line has no control character but the tab (RFC 9110, 5.5).
func clean(p []byte) bool {
	const del = 0x7f
	for _, c := range p {
		if c < ' ' && c != '\t' || c == del {
			return false
		}
	}
	return true
}

// is compares with a name in small letters.
func is(p []byte, name string) bool {
	return len(p) == len(name) && bytes.EqualFold(p, []byte(name))
}

// number reads a length of digits alone, without an allocation.
func number(p []byte, base int64) (n int64, err error) {
	if len(p) == 0 {
		return 0, strconv.ErrSyntax
	}
	for _, c := range p {
		digit := base
		switch small := c | 0x20; {
		case c >= '0' && c <= '9':
			digit = int64(c - '0')
		case small >= 'a' && small <= 'f':
			digit = int64(small-'a') + 10
		}
		if digit >= base {
			return 0, strconv.ErrSyntax
		}
		if n = n*base + digit; n > maxBody {
			return 0, strconv.ErrRange
		}
	}
	return n, nil
}

// line takes a line of a body in chunks (RFC 9112, 7.1).
func (a *answer) line(p []byte) (n int, whole bool, err error) {
	text, n, err := a.until(p, lineEnd, maxLine)
	if text == nil || err != nil {
		return n, false, err
	}
	switch a.next {
	case atSize:
		digits, _, _ := bytes.Cut(text, []byte(";"))
		if a.left, err = number(bytes.TrimRight(digits, " \t"), 16); err != nil || !clean(text) || a.length+a.left > maxBody {
			return n, false, fmt.Errorf("a chunk begins with %.40q, not with its length", text)
		}
		a.next = atChunk
		if a.left == 0 {
			a.next = atTrailer
		}
	case atChunkEnd:
		if len(text) > 0 {
			return n, false, fmt.Errorf("a chunk has %.40q after its bytes, not the end of a line", text)
		}
		a.next = atSize
	default: // trailer
		if len(text) == 0 {
			return n, true, nil
		}
		if _, _, err := field(text); err != nil {
			return n, false, err
		}
		if a.more += len(text); a.more > maxHead {
			return n, false, fmt.Errorf("its trailers are longer than %d B", maxHead)
		}
	}
	return n, false, nil
}
