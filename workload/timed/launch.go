package timed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/tinyelf"
)

// launcher is the small program that is the parent of each program that is timed. It is a file
// without a name.
type launcher struct{ *os.File }

// newLauncher makes it. Without one, programs are started directly, and their memory is unknown:
// a process has at least the peak memory of the one that it was forked from, and this one holds
// more than most programs.
func newLauncher() (launcher, error) {
	code, err := tinyelf.Run()
	if err != nil {
		return launcher{}, err
	}
	low, err := unix.MemfdCreate("tare-run", unix.MFD_CLOEXEC)
	if err != nil {
		return launcher{}, err
	}
	defer unix.Close(low) //nolint:errcheck // the other one stays
	// Where it is executed, 3 is the report's.
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return launcher{}, err
	}
	f := os.NewFile(uintptr(fd), "tare-run")
	if _, err := f.Write(code); err != nil {
		_ = f.Close()
		return launcher{}, err
	}
	return launcher{f}, nil
}

// wrap has a command run by the launcher, which writes its report to that file.
func (l launcher) wrap(cmd *exec.Cmd, report *os.File) {
	cmd.Args = append([]string{"tare-run", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = fmt.Sprintf("/proc/self/fd/%d", l.Fd())
	cmd.ExtraFiles = []*os.File{report} // as file descriptor 3
}

// ended is how a program ended.
type ended struct {
	elapsed time.Duration
	status  syscall.WaitStatus
	usage   syscall.Rusage
}

// readEnded reads the launcher's report. An error says why the program was not started; ok is
// false if the launcher was killed before it could report.
func readEnded(b []byte) (e ended, ok bool, err error) {
	switch len(b) {
	case tinyelf.RunError, tinyelf.RunError + tinyelf.RunReport: // it goes on to report the end of its copy
		return e, false, syscall.Errno(-int64(binary.NativeEndian.Uint64(b))) //nolint:gosec // an errno
	case tinyelf.RunReport:
	default:
		return e, false, nil
	}
	var clock [4]int64
	if err := binary.Read(bytes.NewReader(b[:tinyelf.RunStatus]), binary.NativeEndian, &clock); err != nil {
		return e, false, err
	}
	e.elapsed = time.Duration(clock[2]-clock[0])*time.Second + time.Duration(clock[3]-clock[1])
	e.status = syscall.WaitStatus(binary.NativeEndian.Uint32(b[tinyelf.RunStatus:]))
	return e, true, binary.Read(bytes.NewReader(b[tinyelf.RunUsage:]), binary.NativeEndian, &e.usage)
}

// endOrphans ends the processes that a run has left in other groups or sessions, so that they do
// not load the next run. They are children of this process, and so become theirs when they end.
// A kernel that does not list children (proc_tid_children(5)) leaves them to the agent, which ends
// them with the last run.
func endOrphans() {
	for range 1000 {
		lists, err := filepath.Glob("/proc/self/task/*/children")
		if err != nil {
			return
		}
		found := false
		for _, list := range lists {
			b, err := os.ReadFile(list) //nolint:gosec // of proc(5)
			if err != nil {
				continue
			}
			for field := range strings.FieldsSeq(string(b)) {
				if pid, err := strconv.Atoi(field); err == nil {
					found = true
					_ = unix.Kill(pid, unix.SIGKILL)
					_, _ = unix.Wait4(pid, nil, 0, nil)
				}
			}
		}
		if !found {
			return
		}
	}
}
