package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	page = 4096
	// answerSize is the length of the server's answer, in bytes; every one has it.
	answerSize = 21
	// looked is how many pages an answer checks: few, because the check is part of the measured time.
	looked = 64
)

// Main is `/tare internal checkpoint PORT BYTES`: a web server that holds so much memory. An
// answer has the number of answers so far, and the status 500 if the memory has changed.
func Main(args []string, stdout, stderr io.Writer) int {
	err := serve(args, stdout)
	_, _ = fmt.Fprintln(stderr, "tare internal checkpoint:", err)
	return 1
}

func serve(args []string, stdout io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: PORT BYTES")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of bytes", args[1])
	}
	h := newHolder(n)
	l, err := net.Listen("tcp", ":"+args[0])
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(stdout, "listening on", l.Addr())
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	return s.Serve(l)
}

// holder holds memory with known content.
type holder struct {
	memory []byte
	served atomic.Int64
}

// newHolder fills n bytes with data that cannot be compressed. Each page begins with its
// number.
func newHolder(n int64) *holder {
	h := &holder{memory: make([]byte, n)}
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(h.memory) // never fails
	for i := int64(0); i+page <= n; i += page {
		binary.LittleEndian.PutUint64(h.memory[i:], uint64(i))
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *holder) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	pages := int64(len(h.memory) / page)
	for i := range min(pages, looked) {
		at := i * pages / looked * page
		if pages < looked {
			at = i * page
		}
		if got := binary.LittleEndian.Uint64(h.memory[at:]); got != uint64(at) {
			http.Error(w, fmt.Sprintf("the memory at %d has changed", at), http.StatusInternalServerError)
			return
		}
	}
	_, _ = fmt.Fprintf(w, "%0*d\n", answerSize-1, h.served.Add(1))
}
