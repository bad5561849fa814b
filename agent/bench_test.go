package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

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

// barrier is how many agents start at once in BenchmarkBarrier.
const barrier = 500

// BenchmarkBarrier starts a command on each of many agents at one moment. The agents are simulated: each answers over
// its own TCP connection, knows no clock but its own, which is wrong by some seconds, and at the moment only reads it. That
// is what the barrier costs; on a cluster each agent has a processor to start a program on.
func BenchmarkBarrier(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	clients := make([]*Client, barrier)
	for i := range clients {
		go simulate(b, l.Addr().String(), int64(i)*int64(time.Second))
		conn, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
		if clients[i], err = Connect(b.Context(), conn, conn); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	var skews []float64
	for b.Loop() {
		gate := sandbox.NewGate(barrier)
		starts := make([]int64, barrier)
		var all sync.WaitGroup
		for i, c := range clients {
			all.Go(func() {
				e, err := c.Run(b.Context(), sandbox.Command{Args: []string{"x"}, Gate: gate})
				if err != nil {
					b.Error(err)
				}
				starts[i] = e.User.Nanoseconds() // of this host's clock: see simulate
			})
		}
		all.Wait()
		skews = append(skews, float64(slices.Max(starts)-slices.Min(starts)))
	}
	slices.Sort(skews)
	b.ReportMetric(skews[len(skews)/2]/1e6, "ms-apart")
	b.ReportMetric(skews[len(skews)-1]/1e6, "ms-apart-at-most")
}

// simulate is an agent whose clock is wrong. It tells the true time of a start as the user's CPU time.
func simulate(b *testing.B, address string, wrong int64) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	w := &frameWriter{w: conn}
	_ = w.json(frameHello, 0, helloBody{Version: version, Pid: 1})
	for r := bufio.NewReader(conn); ; {
		f, err := readFrame(r)
		if err != nil {
			return // the benchmark is over
		}
		switch f.typ {
		case frameCall:
			body, _ := json.Marshal(timeBody{Now: monotonic() + wrong})
			_ = w.json(frameReturn, f.id, returnBody{Body: body})
		case frameStart:
			_ = w.json(frameReady, f.id, struct{}{})
		case frameGo:
			var at goBody
			_ = json.Unmarshal(f.payload, &at)
			go func() {
				time.Sleep(time.Duration(at.At - wrong - monotonic()))
				now := monotonic()
				time.Sleep(20 * time.Millisecond) // to report takes this machine's processors from those that start
				_ = w.json(frameExit, f.id, exitBody{Start: now + wrong, User: now})
			}()
		}
	}
}
