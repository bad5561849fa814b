package collecttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"tare/collect"
	"tare/collect/remote"
)

// elsewhere is the value of children in a process that reads a collector.
const elsewhere = "elsewhere"

// Elsewhere returns the collector as another process reads it: this test binary, whose
// TestMain passes the collector to Main.
func Elsewhere(c collect.Collector, every time.Duration) collect.Collector {
	return remote.New(c, every, Dial)
}

// Dial starts that process. It returns a *Child.
func Dial(context.Context) (io.ReadWriteCloser, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), children+"="+elsewhere)
	return Start(cmd)
}

func serve(collectors []collect.Collector) int {
	if err := remote.Serve(context.Background(), os.Stdin, os.Stdout, collectors, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Child is a process and the stream to it.
type Child struct {
	*exec.Cmd
	io.WriteCloser // its standard input
	io.Reader      // its standard output
	said           bytes.Buffer
}

// Start starts a command whose standard input and output are a stream.
func Start(cmd *exec.Cmd) (*Child, error) {
	c := &Child{Cmd: cmd}
	var err error
	if c.WriteCloser, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.Reader, err = cmd.StdoutPipe(); err != nil {
		return nil, errors.Join(err, c.WriteCloser.Close())
	}
	cmd.Stderr = &c.said
	return c, cmd.Start()
}

// Close ends the process, by force after ten seconds.
func (c *Child) Close() error {
	_ = c.WriteCloser.Close()
	hung := time.AfterFunc(10*time.Second, func() { _ = c.Process.Kill() })
	defer hung.Stop()
	if err := c.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, &c.said)
	}
	return nil
}
