package redis

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// conn is the driver's connection to the server, to fill and query it, never used while
// redis-benchmark runs. Protocol: RESP2,
// https://redis.io/docs/latest/develop/reference/protocol-spec/.
type conn struct {
	c net.Conn
	r *bufio.Reader
	w *bufio.Writer
}

const (
	// patience bounds one request, such as freeing some millions of elements. fillTime bounds
	// filling in as many, request by request.
	patience = 2 * time.Minute
	fillTime = 5 * time.Minute
	// maxReply bounds a reply's length in bytes; INFO has a few KB.
	maxReply = 16 << 20
	// batch is how many elements one filling request has, and batchBytes how many bytes of
	// values: enough that round trips do not matter, and so few that the server's buffers do
	// not grow.
	batch      = 500
	batchBytes = 1 << 20
)

func dial(ctx context.Context, addr string) (*conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the server: %w", err)
	}
	return &conn{c: c, r: bufio.NewReader(c), w: bufio.NewWriterSize(c, 64<<10)}, nil
}

func (c *conn) close() { _ = c.c.Close() }

// do sends one request and returns the reply as text. It does not return the elements of an
// array, which no caller needs.
func (c *conn) do(words ...string) (string, error) {
	s, err := c.ask(words)
	if err != nil {
		return "", fmt.Errorf("%s: %w", words[0], err)
	}
	return s, nil
}

func (c *conn) ask(words []string) (string, error) {
	if err := c.c.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(c.w, "*%d\r\n", len(words)) // a bufio.Writer keeps its error for Flush
	for _, w := range words {
		_, _ = fmt.Fprintf(c.w, "$%d\r\n%s\r\n", len(w), w)
	}
	if err := c.w.Flush(); err != nil {
		return "", err
	}
	return reply(c.r)
}

// reply reads one reply: a line, an error, a number or a string.
func reply(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return "", fmt.Errorf("reading the server's reply: %w", err)
	}
	text := strings.TrimRight(string(line), "\r\n")
	if text == "" {
		return "", errors.New("the server's reply is empty")
	}
	switch kind, rest := text[0], text[1:]; kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", fmt.Errorf("the server refuses: %s", rest)
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < -1 || n > maxReply {
			return "", fmt.Errorf("the server's reply is %q bytes long", rest)
		}
		if n < 0 { // nil
			return "", nil
		}
		// Use a buffer that grows with the received bytes, not with the announced length.
		var b bytes.Buffer
		if _, err := io.CopyN(&b, r, int64(n)+2); err != nil {
			return "", fmt.Errorf("reading the server's reply: %w", err)
		}
		text, ended := strings.CutSuffix(b.String(), "\r\n")
		if !ended {
			return "", fmt.Errorf("the server's reply of %d bytes does not end there", n)
		}
		return text, nil
	default:
		return "", fmt.Errorf("the server's reply %.80q is not in redis's protocol", text)
	}
}

// prepare empties the database and fills in what a run of n requests needs. It returns the key
// that must still exist afterwards, "" if there is no such key.
func (c *conn) prepare(t test, o options, n int64) (left string, err error) {
	if _, err := c.do("FLUSHALL", "SYNC"); err != nil {
		return "", err
	}
	value := strings.Repeat("x", o.size)
	// Requests in flight when the last is answered, and one element that must be left.
	spare := int64(o.clients*o.pipeline) + 1
	const listElements = 1000 // more than LRANGE_600 reads
	switch t.fill {
	case everyKey:
		return "", c.fill(int64(o.keys), o.batch(), []string{"MSET"}, func(i int64) []string { return []string{fmt.Sprintf("key:%012d", i), value} })
	case longList:
		return "mylist", c.fill(listElements, o.batch(), []string{"RPUSH", "mylist"}, func(int64) []string { return []string{value} })
	case popList:
		return "mylist", c.fill(n+spare, o.batch(), []string{"RPUSH", "mylist"}, func(int64) []string { return []string{value} })
	case popSet:
		return "myset", c.fill(n+spare, batch, []string{"SADD", "myset"}, func(i int64) []string { return []string{fmt.Sprintf("element:%012d", i)} })
	case popZSet:
		return "myzset", c.fill(n+spare, batch, []string{"ZADD", "myzset"}, func(i int64) []string {
			return []string{strconv.FormatInt(i, 10), fmt.Sprintf("element:%012d", i)}
		})
	case nothing:
	}
	return "", nil
}

// batch returns how many values one request has.
func (o options) batch() int64 { return max(1, min(batch, batchBytes/int64(o.size))) }

// fill adds n elements, each in a request.
func (c *conn) fill(n, each int64, head []string, element func(int64) []string) error {
	words := make([]string, 0, len(head)+2*int(each))
	began := time.Now()
	for i := int64(0); i < n; {
		if time.Since(began) > fillTime {
			return fmt.Errorf("filling the database: after %s it has %d of %d elements; write fewer requests, a shorter duration or a smaller size", fillTime, i, n)
		}
		words = append(words[:0], head...)
		for end := min(n, i+each); i < end; i++ {
			words = append(words, element(i)...)
		}
		if _, err := c.do(words...); err != nil {
			return fmt.Errorf("filling the database: %w", err)
		}
	}
	return nil
}

// counts are the server's own counts since the last CONFIG RESETSTAT.
type counts struct {
	calls, failed, hits, misses int64
	version                     string
}

func (c *conn) counts(command string) (counts, error) {
	var out counts
	text, err := c.do("INFO", "everything")
	if err != nil {
		return out, err
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "redis_version":
			out.version = value
		case "keyspace_hits":
			out.hits, _ = strconv.ParseInt(value, 10, 64)
		case "keyspace_misses":
			out.misses, _ = strconv.ParseInt(value, 10, 64)
		case "cmdstat_" + command:
			for field := range strings.SplitSeq(value, ",") {
				k, n, _ := strings.Cut(field, "=")
				count, _ := strconv.ParseInt(n, 10, 64)
				switch k {
				case "calls":
					out.calls = count
				case "rejected_calls", "failed_calls":
					out.failed += count
				}
			}
		}
	}
	return out, nil
}
