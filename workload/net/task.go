package netload

import "tare/workload/net/uperf"

// step is a flowop as one end executes it.
type step struct {
	*uperf.Flowop
	op     uperf.Op
	count  int64
	size   int64 // of each of count, bytes
	last   int64 // of the last of count; differs from size if the peer's count does not divide evenly
	spread bool  // the peer's reads or writes of rsize go over the bounds of iterations
}

// task is a transaction as one end executes it.
type task struct {
	*uperf.Transaction
	steps      []step
	iterations int64 // 0: until the master ends it
	budget     int64 // bytes of a spread step in all; 0: until the master ends it
	opens      bool  // it has connect, accept or disconnect: iterations are never cut
	loose      bool  // the number of the peer's operations is not known in advance
}

// tasks returns what a strand of a group does: the profile's flowops at the master, their
// counterparts at the peer.
func tasks(g *uperf.Group, master bool) []*task {
	var out []*task
	protocols := map[int]uperf.Protocol{}
	for ti := range g.Transactions {
		x := &g.Transactions[ti]
		t := &task{Transaction: x, iterations: int64(x.Iterations)}
		data := 0
		for fi := range x.Flowops {
			f := &x.Flowops[fi]
			s := step{Flowop: f, op: f.Op, count: int64(f.Count), size: int64(f.Size.Max), last: int64(f.Size.Max)}
			if !master {
				s.op = f.Op.Peer()
			}
			switch f.Op {
			case uperf.Connect, uperf.Accept:
				protocols[f.Conn] = f.Protocol
				t.opens = true
			case uperf.Disconnect:
				t.opens = true
			case uperf.Read, uperf.Write, uperf.Send, uperf.Recv:
				data++
				t.loose = t.loose || f.Size.Random()
			case uperf.Think, uperf.Nop:
			}
			t.steps = append(t.steps, s)
		}
		if !master {
			for i := range t.steps {
				t.regroup(&t.steps[i], data == 1, protocols)
			}
		}
		out = append(out, t)
	}
	return out
}

// regroup gives the peer's step its rsize. The bytes of an iteration stay the
// same, so that neither end waits for what the other does not send; a sole read or
// write of a transaction may go over the bounds of iterations.
func (t *task) regroup(s *step, sole bool, protocols map[int]uperf.Protocol) {
	rsize := int64(s.PeerSize)
	if rsize <= s.size || protocols[s.Conn] == uperf.UDP {
		return
	}
	switch all := s.size * s.count; {
	case sole && !t.opens:
		if t.iterations > 0 {
			t.budget = int64(min(float64(all)*float64(t.iterations), 1<<60)) // years, at any speed
			t.iterations = (t.budget + rsize - 1) / rsize
		}
		s.count, s.size, s.last, s.spread = 1, rsize, rsize, true
		t.loose = true
	case s.count > 1:
		s.count = (all + rsize - 1) / rsize
		s.size, s.last = min(rsize, all), all-(s.count-1)*min(rsize, all)
	}
}
