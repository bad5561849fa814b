package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tare/workload/output"
)

// Bounds of the faults: the host must survive them even without limits.
const (
	maxFill   = 64 << 20
	maxMemory = 2 << 30
	maxHang   = 10 * time.Minute
	// maxFlood is beyond what any workload parses.
	maxFlood = output.Limit + output.Limit/2
)

// Exit codes of Main.
const (
	codeFailed = 1
	codeUsage  = 2
	codeAsked  = 3 // by do=exit
)

// Main is `tare internal fault`: the program inside the sandbox. It returns the exit code, if
// it returns.
func Main(args []string, stdout, stderr io.Writer) int {
	return misbehaver{stdout: stdout, stderr: stderr, data: "/data", hang: maxHang, memory: maxMemory, port: port, asking: asking}.main(args)
}

// misbehaver has the bounds, which tests make smaller.
type misbehaver struct {
	stdout, stderr io.Writer
	data           string // where fill writes
	hang           time.Duration
	memory         int // bytes
	port           int
	asking         time.Duration // that a client goes on
}

func (m misbehaver) say(format string, args ...any) {
	_, _ = fmt.Fprintf(m.stderr, "fault: "+format+"\n", args...)
}

func (m misbehaver) main(args []string) int {
	start := time.Now()
	fs := flag.NewFlagSet("fault", flag.ContinueOnError)
	fs.SetOutput(m.stderr)
	do := fs.String("do", doExit, "one of "+strings.Join(words(), ", "))
	after := fs.Duration("after", 0, "how long to behave before")
	addr := fs.String("ask", "", "be the client of the server at this ADDRESS:PORT")
	if err := fs.Parse(args); err != nil {
		return codeUsage
	}
	if !slices.Contains(words(), *do) || *after < 0 || *after > maxAfter || fs.NArg() > 0 {
		m.say("--do must be one of %s, --after 0s to %s, and nothing else is taken", strings.Join(words(), ", "), maxAfter)
		return codeUsage
	}
	switch {
	case *addr != "":
		return m.ask(*addr)
	case slices.Contains(servers(), *do):
		return m.serve(*do, *after)
	}
	time.Sleep(*after)
	switch *do {
	case doExit:
		m.say("exiting with code %d, as asked", codeAsked)
		return codeAsked
	case doSignal:
		m.say("ending by SIGKILL, as asked")
		return m.kill()
	case doHang:
		signal.Ignore(syscall.SIGTERM) // so that only SIGKILL ends it before its time
		m.say("hanging, as asked; SIGTERM is ignored")
		return m.sleep()
	case doGarbage:
		return m.garbage()
	case doFill:
		return m.fill()
	case doOOM:
		return m.oom()
	case doFlood:
		return m.flood()
	case doCall:
		return m.call()
	case doSilent:
		return 0
	}
	if err := json.NewEncoder(m.stdout).Encode(report{Elapsed: max(time.Since(start).Nanoseconds(), 1)}); err != nil {
		m.say("%v", err)
		return codeFailed
	}
	return 0
}

func (m misbehaver) kill() int {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		m.say("SIGKILL to itself: %v", err)
	}
	// The first process of a process namespace is spared its own SIGKILL.
	return codeFailed
}

func (m misbehaver) sleep() int {
	time.Sleep(m.hang)
	m.say("hung for %s, and nobody ended it", m.hang)
	return codeFailed
}

// garbage prints bytes that are invalid for a terminal, a JSON parser and a UTF-8 decoder, and
// exits with 0.
func (m misbehaver) garbage() int {
	b := make([]byte, 0, 8<<10)
	x := uint32(1)
	for len(b) < 4<<10 {
		x ^= x << 13 // xorshift32: the same bytes every time
		x ^= x >> 17
		x ^= x << 5
		b = append(b, byte(x), byte(x>>8)) //nolint:gosec // the low bytes are what is wanted
	}
	b = append(b, "\x1b[2J\x00{\"elapsed_ns\": 1e999, \"elapsed_ns\": \"\xff\n"...)
	if _, err := m.stdout.Write(b); err != nil {
		m.say("%v", err)
		return codeFailed
	}
	return 0
}

// fill writes to the data directory until it is full, and removes the file again.
func (m misbehaver) fill() int {
	path := filepath.Join(m.data, "tare-fault")
	f, err := os.Create(path) //nolint:gosec // the sandbox's own data directory
	if err != nil {
		m.say("%v", err)
		return codeFailed
	}
	defer func() { _, _ = f.Close(), os.Remove(path) }()
	chunk := bytes.Repeat([]byte("tare"), 1<<18)
	written := 0
	for written < maxFill {
		n, err := f.Write(chunk)
		written += n
		if err != nil {
			m.say("after %d bytes: %v", written, err) // "no space left on device"
			return codeFailed
		}
	}
	if err := f.Sync(); err != nil { // with delayed allocation the error comes late
		m.say("after %d bytes: %v", written, err)
		return codeFailed
	}
	m.say("wrote %d MiB and the disk was not full", written>>20)
	return codeFailed
}

// oom allocates and touches memory until it is killed for it.
func (m misbehaver) oom() int {
	const chunk = 8 << 20
	var held [][]byte
	for size := 0; size < m.memory; size += chunk {
		b, err := syscall.Mmap(-1, 0, chunk, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		if err != nil {
			if errors.Is(err, syscall.ENOMEM) {
				m.say("cannot allocate memory after %d MiB", size>>20)
			} else {
				m.say("mmap: %v", err)
			}
			return codeFailed
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		held = append(held, b)
	}
	m.say("took %d MiB and was not killed: no memory-limit is below that", m.memory>>20)
	for _, b := range held {
		_ = syscall.Munmap(b)
	}
	return codeFailed
}

// flood prints more than any workload reads, and exits with 0.
func (m misbehaver) flood() int {
	chunk := bytes.Repeat([]byte("all work and no play makes a dull trial\n"), 1<<12)
	for n := 0; n < maxFlood; n += len(chunk) {
		if _, err := m.stdout.Write(chunk); err != nil {
			m.say("%v", err)
			return codeFailed
		}
	}
	return 0
}
