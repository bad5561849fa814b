package model

// kind of event.
type kind uint8

const (
	evReady    kind = iota // an entity's wake-up is over: a
	evFinish               // an entity's slice is over: a
	evSend                 // the peer has a reply or leave to send: b, a message
	evArrive               // messages are at the sandbox's outer side: a batch
	evInject               // messages are at a core's soft interrupt: a batch, b the core
	evPeriod               // the quota's period begins
	evSample               // the counters are read
	evProgress             // the response's progress is read
	evMinor                // the VMM's other threads ran
	evMeasure              // warm-up is over
)

type event struct {
	at   int64  // ns
	key  uint64 // its age, and in the low byte its kind
	a, b int32
}

func (e *event) kind() kind { return kind(e.key & 0xff) }

func (e *event) before(y *event) bool {
	return e.at < y.at || e.at == y.at && e.key < y.key
}

// events is a heap by time, then by age, so that a seed gives one order. Each node
// has four children: it is half as deep as with two, and they lie side by side.
type events struct {
	heap []event
	seq  uint64
}

func (q *events) push(at int64, k kind, a, b int32) {
	q.seq++
	e := event{at, q.seq<<8 | uint64(k), a, b}
	h := append(q.heap, e)
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) >> 2
		if !e.before(&h[p]) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = e
	q.heap = h
}

func (q *events) pop() event {
	h := q.heap
	top := h[0]
	n := len(h) - 1
	e := h[n]
	h = h[:n]
	q.heap = h
	if n == 0 {
		return top
	}
	i := 0
	for {
		c := i<<2 + 1
		if c >= n {
			break
		}
		best, end := &h[c], min(c+4, n)
		for k := c + 1; k < end; k++ {
			if h[k].before(best) {
				c, best = k, &h[k]
			}
		}
		if !best.before(&e) {
			break
		}
		h[i] = *best
		i = c
	}
	h[i] = e
	return top
}
