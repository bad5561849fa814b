package agent

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"tare/sandbox"
)

// remote connects a client to an agent in its own process, through pipes, as the kinds of
// sandboxes do. The test binary plays the agent, see TestMain.
func remote(t testing.TB, env ...string) (*Client, *exec.Cmd) {
	t.Helper()
	in, out, cmd := remoteProcess(t, env...)
	c, err := Connect(context.Background(), out, in)
	if err != nil {
		t.Fatal(err)
	}
	return c, cmd
}

func remoteProcess(t testing.TB, env ...string) (in io.WriteCloser, out io.ReadCloser, cmd *exec.Cmd) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(self, "internal", "agent")
	cmd.Env = append(os.Environ(), env...)
	if in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return in, out, cmd
}

// BenchmarkPing is one call and its answer.
func BenchmarkPing(b *testing.B) {
	c, _ := remote(b)
	for b.Loop() {
		var got timeBody
		if err := c.Call(context.Background(), opTime, nil, &got); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRun is the shortest possible command.
func BenchmarkRun(b *testing.B) {
	c, _ := remote(b)
	for b.Loop() {
		if _, err := c.Run(context.Background(), sandbox.Command{Args: []string{"true"}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOutput is the output of a command, in blocks of 64 KiB and of 80 bytes.
func BenchmarkOutput(b *testing.B) {
	const size = 256 << 20
	line := bytes.Repeat([]byte("x"), 79)
	file := b.TempDir() + "/lines"
	if err := os.WriteFile(file, bytes.Repeat(append(line, '\n'), 4096), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, cmd := range map[string]struct {
		args []string
		size int64
	}{
		"large": {[]string{"head", "-c", strconv.Itoa(size), "/dev/zero"}, size},
		"lines": {[]string{"sed", "-u", "", file}, 80 * 4096},
	} {
		b.Run(name, func(b *testing.B) {
			c, _ := remote(b)
			b.SetBytes(cmd.size)
			for b.Loop() {
				var n counter
				if _, err := c.Run(context.Background(), sandbox.Command{Args: cmd.args, Stdout: &n}); err != nil || int64(n) != cmd.size {
					b.Fatal(err, n)
				}
			}
		})
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
