package agent

import "sync"

// Flow control. The agent sends no more of a command's output than the client has room for,
// and the client says when it has passed some of it on. So a listener that does not read
// stops only its own command, as a full pipe does, and nothing else on the stream.
const (
	// outputRoom is the room for a command, standard output and error together, in
	// bytes; both ends know it.
	outputRoom = 1 << 20
	// maxOutput bounds a frame of output, in bytes.
	maxOutput = 64 << 10
	// roomBack is how much room the client collects before it gives it back.
	roomBack = outputRoom / 4
	// frameCost is what a frame uses in addition to its bytes: the cost of keeping it.
	frameCost = 64
)

// cost is how much room a frame of n bytes uses.
func cost(n int) int { return n + frameCost }

// window is how much room the client has, as the agent counts it.
type window struct {
	mu     sync.Mutex
	more   sync.Cond
	left   int
	closed bool
}

func (w *window) init(left int) {
	w.more.L = &w.mu
	w.left = left
}

// take waits until there is room for n. It returns false if the window was shut.
func (w *window) take(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.left < n && !w.closed {
		w.more.Wait()
	}
	if w.left < n {
		return false
	}
	w.left -= n
	return true
}

// give adds room that the client has freed.
func (w *window) give(n int) {
	w.mu.Lock()
	w.left = min(w.left+n, outputRoom)
	w.mu.Unlock()
	w.more.Broadcast()
}

// shut ends the waiting for room.
func (w *window) shut() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.more.Broadcast()
}
