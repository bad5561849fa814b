package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/agent"
)

// Init is the path of this program in the initramfs, and so its first argument
// when the kernel starts it.
const Init = "/init"

// IsInit says whether this process is a virtual machine's first one.
func IsInit(args []string) bool {
	return len(args) > 0 && args[0] == Init && os.Getpid() == 1
}

// Main is the life of the machine. It does not return: the end of the first
// process would be a panic of the kernel, so it powers off instead. What it says
// goes to the console, whose end the host shows when a machine dies.
func Main() {
	m := &machine{began: uptime()}
	if err := m.live(); err != nil {
		fmt.Fprintln(os.Stderr, "tare: guest:", err)
	}
	powerOff()
}

// machine is what Main knows of the one that it runs in.
type machine struct {
	began   float64 // seconds from the kernel's start
	sys     *os.Root
	modules *loader
	ready   onceWriter

	mu   sync.Mutex
	done bool // set up

	limits *os.File // the commands' control group; nil for none
}

func (m *machine) live() error {
	// Nothing of the kernel's own environment: its command line's words are no
	// variables for a workload.
	os.Clearenv()
	for name, value := range environment() {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if err := mountAll("/", early()); err != nil {
		return err
	}
	var err error
	if m.sys, err = os.OpenRoot("/sys"); err != nil {
		return err
	}
	if m.modules, err = openLoader("/modules"); err != nil {
		return err
	}
	if err := m.modules.run(m.sys.FS(), false); err != nil {
		// This machine may have no use for it; the port will tell.
		fmt.Fprintln(os.Stderr, "tare: guest:", err)
	}
	port, once, err := openPort(m.sys, portWithin)
	if err != nil {
		return err
	}
	m.ready.w = port
	for {
		err := agent.Serve(context.Background(), port, &m.ready, agent.Operations{OpSetUp: m.setUp, OpPlug: m.plug}, agent.OwnKernel, agent.OwnProcess, agent.In(m.limited))
		if err != nil || once || m.isSetUp() {
			return err
		}
		// Nobody has told yet what this machine is to be: it was saved and wakes
		// with another host on the line, which wants a hello of its own. The write
		// of that hello waits until the line is up.
	}
}

// environment is what spawn.Environment gives to processes in other sandboxes.
func environment() map[string]string {
	return map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
}

func (m *machine) limited() *os.File {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.limits
}

func (m *machine) isSetUp() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done
}

// onceWriter notes when the first write was over: the agent's hello.
type onceWriter struct {
	w    *os.File
	once sync.Once
	at   float64
}

func (o *onceWriter) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	o.once.Do(func() { o.at = uptime() })
	return n, err
}

// SyscallConn is that of the file: the agent asks whether it can write to it.
func (o *onceWriter) SyscallConn() (syscall.RawConn, error) { return o.w.SyscallConn() }

// uptime is the time since the kernel's start in seconds.
func uptime() float64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return float64(ts.Sec) + float64(ts.Nsec)/1e9
}

// syncWithin bounds how long what was written is waited for: the host's end of a
// file system may be gone.
const syncWithin = time.Second

// powerOff ends the machine.
func powerOff() {
	written := make(chan struct{})
	go func() {
		unix.Sync()
		close(written)
	}()
	select {
	case <-written:
	case <-time.After(syncWithin):
	}
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Fprintln(os.Stderr, "tare: guest: cannot power off:", err)
	}
	select {} // the machine ends under it
}

var errOnce = errors.New("this machine is set up already")
