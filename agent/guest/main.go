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

// Init is the path of this program in the initramfs, and its argv[0] when the kernel starts
// it.
const Init = "/init"

// IsInit reports whether this process is the first of a virtual machine.
func IsInit(args []string) bool {
	return len(args) > 0 && args[0] == Init && os.Getpid() == 1
}

// Main runs the machine. It does not return: the kernel panics at the end of the first
// process, so Main powers off instead. Its messages go to the console; the host shows the
// console's last lines when a machine dies.
func Main() {
	m := &machine{began: uptime()}
	if err := m.live(); err != nil {
		fmt.Fprintln(os.Stderr, "tare: guest:", err)
	}
	powerOff()
}

// machine is the state of this virtual machine.
type machine struct {
	began   float64 // seconds from the kernel's start
	sys     *os.Root
	modules *loader
	ready   onceWriter

	mu   sync.Mutex
	done bool // OpSetUp is done

	limits *os.File // the commands' control group; nil: no limit
}

func (m *machine) live() error {
	// Clear the environment: the kernel puts words of its command line there, which a
	// workload must not see.
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
		// This machine may not need the module. Opening the port shows it.
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
		// The machine was not set up yet: it was saved, and resumes with another host on the
		// channel, which needs a hello of its own. The write of the hello waits until the
		// channel is connected.
	}
}

// environment is the same as spawn.Environment, which processes in other sandboxes get.
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

// onceWriter records the end of the first write: the agent's hello.
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

// SyscallConn returns the file's. The agent uses it to poll whether it can write.
func (o *onceWriter) SyscallConn() (syscall.RawConn, error) { return o.w.SyscallConn() }

// uptime is the time since the kernel's start in seconds.
func uptime() float64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return float64(ts.Sec) + float64(ts.Nsec)/1e9
}

// syncWithin bounds how long powerOff waits for sync(2): the host's side of a file system
// may be gone.
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
	select {} // until the machine is off
}

var errOnce = errors.New("this virtual machine is set up already")
