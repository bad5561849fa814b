package taskiter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// Record is one thread. The program writes it in the machine's byte order.
type Record struct {
	Same      bool   // it has not run since the scan before: only Tid and Pid are filled
	Tid, Pid  int    // of the initial PID namespace; Pid is the process (thread group)
	Run, Wait uint64 // ns: se.sum_exec_runtime and sched_info.run_delay, the first two words of schedstat
	Start     uint64 // ns, when the thread began: it distinguishes threads with the same number
	Begun     uint64 // ns, the same of its process
	Comm      [commLen]byte
}

// Offsets of the fields in the program's output.
const (
	atTid      = 0
	atTgid     = 4
	atRun      = 8
	atWait     = 16
	atStart    = 24
	atBegun    = 32
	atComm     = 40
	recordSize = atComm + commLen
	shortSize  = atRun
	short      = 1 << 31 // in the thread's number: the record ends after Pid
)

// Name returns the text of Record.Comm up to the zero byte, as valid UTF-8: a thread may give
// itself any name.
func Name(comm *[commLen]byte) string {
	b := comm[:]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return strings.ToValidUTF8(string(b), "?")
}

// pidLimit is PID_MAX_LIMIT of include/linux/threads.h for 64 bits.
const pidLimit = 1 << 22

// parse appends the records in b to dst. The kernel writes whole records with positive
// numbers. For anything else the error has the offset.
func parse(dst []Record, b []byte) ([]Record, error) {
	for i := 0; i < len(b); {
		x := b[i:]
		if len(x) < shortSize {
			return dst, fmt.Errorf("BPF task iterator: the record at byte %d has %d bytes", i, len(x))
		}
		tid, pid := binary.NativeEndian.Uint32(x[atTid:]), binary.NativeEndian.Uint32(x[atTgid:])
		same := tid&short != 0
		tid &^= short
		if tid-1 >= pidLimit || pid-1 >= pidLimit {
			return dst, fmt.Errorf("BPF task iterator: thread %d of process %d at byte %d", tid, pid, i)
		}
		if same {
			dst = append(dst, Record{Same: true, Tid: int(tid), Pid: int(pid)})
			i += shortSize
			continue
		}
		if len(x) < recordSize {
			return dst, fmt.Errorf("BPF task iterator: the record at byte %d has %d bytes", i, len(x))
		}
		dst = append(dst, Record{
			Tid: int(tid), Pid: int(pid),
			Run:   binary.NativeEndian.Uint64(x[atRun:]),
			Wait:  binary.NativeEndian.Uint64(x[atWait:]),
			Start: binary.NativeEndian.Uint64(x[atStart:]),
			Begun: binary.NativeEndian.Uint64(x[atBegun:]),
			Comm:  [commLen]byte(x[atComm:]),
		})
		i += recordSize
	}
	return dst, nil
}
