package control

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http/httputil"
	"net/textproto"
	"strings"
	"time"
)

// An agent in a virtual machine has its certificate, but not tare's image. It fetches that on the same
// port with what every system has, curl: GET /NAME/TOKEN.

// Bounds of a fetch.
const (
	fetchWithin = 10 * time.Minute
	maxHeaders  = 16 << 10
	chunk       = 64 << 10
)

// wanted reads the first line of a request (RFC 9112).
func wanted(line string) (name, token string, ok bool) {
	words := strings.Split(strings.TrimSuffix(line, "\r"), " ")
	if len(words) != 3 || words[0] != "GET" || words[2] != "HTTP/1.1" {
		return "", "", false
	}
	name, token, ok = strings.Cut(strings.TrimPrefix(words[1], "/"), "/")
	return name, token, ok && name != "" && token != ""
}

// give answers the request of an agent: the tree if it is expected. A tree that breaks off has no last
// chunk, so that the other side sees it.
func (h *Hub) give(t *tls.Conn, name, token string) {
	defer func() { _ = t.Close() }()
	_, err := textproto.NewReader(bufio.NewReader(io.LimitReader(t, maxHeaders))).ReadMIMEHeader()
	if err != nil || t.SetDeadline(time.Now().Add(fetchWithin)) != nil {
		return
	}
	h.mu.Lock()
	known := h.expected[name].says(token)
	h.mu.Unlock()
	if !known || h.Tree == nil {
		_, _ = io.WriteString(t, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		return
	}
	if _, err := io.WriteString(t, "HTTP/1.1 200 OK\r\nContent-Type: application/x-tar\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"); err != nil {
		return
	}
	chunks := httputil.NewChunkedWriter(t)
	w := bufio.NewWriterSize(chunks, chunk)
	if h.Tree(w) == nil && w.Flush() == nil && chunks.Close() == nil {
		_, _ = io.WriteString(t, "\r\n")
	}
}
