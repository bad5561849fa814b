package agent

import "sync"

// Flow control. The agent sends no more of a command's output than the client has room
// for, and the client says when it has given some of it to who wanted it. So a listener
// that does not listen holds back its own command, as a full pipe does, and nothing
// else on the stream.
const (
	// outputRoom is the room of a command, standard output and error together, in
	// bytes; both ends know it.
	outputRoom = 1 << 20
	// maxOutput bounds a frame of output, in bytes.
	maxOutput = 64 << 10
	// roomBack is how much the client gathers before it tells.
	roomBack = outputRoom / 4
	// frameCost is what a frame takes beside its bytes: what it costs to keep one.
	frameCost = 64
)

// cost is what a frame of n bytes takes of the room.
func cost(n int) int { return n + frameCost }

// window is the agent's account of the client's room.
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

// take waits until there is so much room. false: there will be none.
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

// give adds what the client has room for again.
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
