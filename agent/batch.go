package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// batch is the agent's side of opSample. It takes readings by its own timer and sends
// several in one answer: a question and an answer for each reading would wake the
// processors of the sandbox and of the host twice as often.
//
// The timer is a timerfd, for which the runtime's poller waits: a Go timer would wake the
// runtime's monitor too (see raw.go).
type batch struct {
	mu      sync.Mutex
	figures *sampler
	answer  func(id uint32, r any, err error)

	id    uint32 // of the call that is being answered
	left  int    // readings that the call still wants; 0: no call is being answered
	taken []sampleBody
	size  int // processors in taken

	timer  *os.File // nil until it is needed
	closed bool
}

// Bounds of a question.
const (
	maxBatch   = 64
	leastEvery = time.Millisecond
	mostEvery  = 10 * time.Second
)

// sampleAsk asks for readings. The agent takes the first at once.
type sampleAsk struct {
	Count int   `json:"count"`
	Every int64 `json:"every_ns"` // between two readings; unused if Count is 1
}

// samplesBody is the answer: all readings that were asked for, in order of time, or fewer
// if a command ended meanwhile, because the client then needs what has been read so far.
type samplesBody struct {
	Readings []sampleBody `json:"readings"`
}

// ask starts to answer a call.
func (b *batch) ask(id uint32, body json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left > 0 { // a client that asks again does not wait for the rest
		b.send()
	}
	var a sampleAsk
	err := json.Unmarshal(body, &a)
	if err == nil && (a.Count < 1 || a.Count > maxBatch || a.Count > 1 && (a.Every < int64(leastEvery) || a.Every > int64(mostEvery))) {
		err = fmt.Errorf("the agent cannot take %d readings every %s: ask for 1 to %d readings, %s to %s apart", a.Count, time.Duration(a.Every), maxBatch, leastEvery, mostEvery)
	}
	if err == nil && b.closed {
		err = os.ErrClosed
	}
	if err != nil {
		b.answer(id, nil, err)
		return
	}
	b.id, b.left = id, a.Count
	b.take()
	if b.left == 0 {
		return
	}
	if err := b.every(time.Duration(a.Every)); err != nil {
		b.left = 0
		b.answer(id, nil, err)
	}
}

// take takes a reading, and sends the answer after the last one.
func (b *batch) take() {
	n := len(b.taken)
	if n < cap(b.taken) { // reuse the element's memory
		b.taken = b.taken[:n+1]
	} else {
		b.taken = append(b.taken, sampleBody{})
	}
	if err := b.figures.read(&b.taken[n]); err != nil {
		b.taken, b.left = b.taken[:0], 0
		b.answer(b.id, nil, err)
		return
	}
	b.size += len(b.taken[n].CPUs)
	// On a machine with many processors, an answer has fewer readings: it must fit in a frame.
	if b.left--; b.left == 0 || b.size >= maxCPUs {
		b.send()
	}
}

// send answers with what has been taken.
func (b *batch) send() {
	b.answer(b.id, samplesBody{b.taken}, nil)
	b.taken, b.left, b.size = b.taken[:0], 0, 0
}

// flush answers a call early. The agent calls it before it reports the end of a command,
// so that the client has the readings of that time.
func (b *batch) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left > 0 {
		b.left = 1
		b.take()
	}
}

// every starts the timer.
func (b *batch) every(d time.Duration) error {
	if b.timer == nil {
		fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
		if err != nil {
			return fmt.Errorf("timerfd_create: %w", err)
		}
		b.timer = os.NewFile(uintptr(fd), "timer")
		conn, err := b.timer.SyscallConn()
		if err != nil {
			return err
		}
		go func() {
			_ = conn.Read(func(fd uintptr) (done bool) { // until it is closed
				if expired(fd) > 0 {
					b.tick()
				}
				return false
			})
		}()
	}
	conn, err := b.timer.SyscallConn()
	if err != nil {
		return err
	}
	t := unix.NsecToTimespec(int64(d))
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Interval: t, Value: t}, nil)
	})
	return errors.Join(err, failed)
}

// tick runs when the timer expires. It may run once more after the timer was stopped.
func (b *batch) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left > 0 && !b.closed {
		b.take()
	}
	if b.left == 0 && !b.closed {
		b.rest()
	}
}

// rest stops the timer.
func (b *batch) rest() {
	conn, err := b.timer.SyscallConn()
	if err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{}, nil) })
	}
}

func (b *batch) close() error {
	b.mu.Lock()
	b.closed, b.left = true, 0
	err := b.figures.close()
	timer := b.timer
	b.mu.Unlock()
	if timer != nil { // its goroutine may be waiting for the lock, and Close waits for that
		err = errors.Join(err, timer.Close())
	}
	return err
}
