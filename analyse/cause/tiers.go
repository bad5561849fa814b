package cause

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/ordered"
	"tare/record"
)

// Load is the Role of a finding whose bound is the generator of the load.
const Load = "load"

// Names of Readings that a report looks for.
const (
	HostInUse     = "host's processors in use"
	BusiestThread = "busiest thread of the workload, share of a core"
)

// Tiers are what the load of a stratum passes through outside of the study: an ingress controller, and the servers behind it.
type Tiers struct {
	Read    []string // ends whose pods were read in some trial: controller, controller-2, backend
	Missing string   // why the first part of it was not read; "" if it was
}

// What the rules on tiers go by.
const (
	// together is how near to the fullest thread another one is as full.
	together = 0.95
	// crowded is the part of a node's processors in use from which a thread that does not run all the time waits for one of them.
	crowded = 0.9
	// elsewhereMost is the part of a request's time from which it is spent where no thread that was read is busy, and unhurried how long
	// that must be: a way between two nodes of a cluster takes less.
	elsewhereMost = 0.5
	unhurried     = 1e-3 // s
)

// bound is one thing that may hold up a load.
type bound struct {
	end      string
	cause    Name
	strength float64 // the part of the time for which the fullest thread runs, or would run
	says     string
}

// tierOf is the part that an end belongs to: all ends of the study itself are the load.
func (t *Tiers) tierOf(end string) string {
	if !slices.Contains(t.Read, end) {
		return Load
	}
	part, _ := record.CopyOf(end)
	return part
}

// throughTiers decides a cell whose load passes through others' pods. What bounds the load is asked, not what the cell costs: where the
// thread that is fullest holds the load up, all others wait for it.
func (b *builder) throughTiers(i, j int) Finding {
	s := &b.strata[i]
	c := &s.Cells[j]
	out := c.Finding
	out.Through = true
	out.Workload, out.Stratum, out.Shared, out.Response = s.Workload, s.Stratum, s.Shared, s.Response
	cr := &b.read[i][j]
	out.Trials = cr.trials
	ends := slices.Concat(s.Tiers.Read, s.Endpoints)
	trials := make(map[string][]sheet, len(ends))
	for _, end := range ends {
		trials[end], _ = b.each(s, c, cr.blocks, end)
	}
	of := func(trial int) map[string]*facts { // -1: the middle of all
		all := map[string]*facts{}
		for _, end := range ends {
			f := &facts{base: blank(), baseline: true, load: c.load(), baseLoad: math.NaN(), cluster: s.Cluster}
			if f.own = middle(trials[end]); trial >= 0 {
				f.own = trials[end][trial]
			}
			all[end] = f
		}
		return all
	}
	mid := of(-1)
	top, also := s.Tiers.bound(b.rules, mid, ends)
	agree := 0
	for n := range cr.blocks {
		if one, more := s.Tiers.bound(b.rules, of(n), ends); one.cause == top.cause && s.Tiers.tierOf(one.end) == s.Tiers.tierOf(top.end) && (more == nil) == (also == nil) {
			agree++
		}
	}
	out.Cause, out.Endpoint, out.Text = top.cause, top.end, top.says
	if top.cause != None && top.cause != Unknown {
		out.Role = s.Tiers.tierOf(top.end)
	}
	sure := 0.95
	switch {
	case also != nil:
		out.Cause, out.Role, out.Among = Untold, "", ordered.Add([]Name{top.cause}, also.cause)
		out.Text = fmt.Sprintf("It is unclear which of two parts limits the load: both are equally full. %s %s", top.says, also.says)
		sure = 0.45
	case top.cause == Unknown:
		out.Missing, sure = s.Tiers.missing(mid, ends, s), 0
		out.Text = "What limits the load is not known. Missing: " + out.Missing + "."
	case top.cause == None, top.cause == Behind:
		sure = 0.8 // nobody reads the network between the pods
	}
	out.Confidence = (0.2 + 0.8*float64(agree)/max(1, float64(cr.trials))) * sure
	switch cr.trials {
	case 1:
		out.Confidence *= 0.7
	case 2:
		out.Confidence *= 0.95
	}
	for _, end := range ends {
		out.Readings = append(out.Readings, b.tierReadings(s.Tiers, &out, end, mid[end], trials[end])...)
	}
	slices.SortStableFunc(out.Readings, func(a, z Reading) int { return rankOf(a.Says) - rankOf(z.Says) })
	return out
}

func rankOf(s Says) int { return slices.Index([]Says{Supports, Silent, Excludes}, s) }

// missing says what was not read of what would tell.
func (t *Tiers) missing(of map[string]*facts, ends []string, s *Stratum) string {
	for _, end := range ends {
		if !t.isRead(of[end]) {
			if t.Missing != "" {
				break
			}
			return "readings of the " + t.tierOf(end) + "'s processors by the collectors proc and cgroup"
		}
	}
	if s.Past || t.Missing == "" {
		return "readings of the pods that the load passes through"
	}
	return "readings of the controller's pods, which were not observed: " + t.Missing
}

func (*Tiers) isRead(f *facts) bool { return f != nil && f.own.busy() }

// bound names what bounds the load, and another end that is as full, if there is one.
func (t *Tiers) bound(all []rule, of map[string]*facts, ends []string) (top bound, also *bound) {
	var full []bound
	for _, end := range ends {
		if f := of[end]; t.isRead(f) {
			if x := t.full(all, end, f); x.cause != None {
				full = append(full, x)
			}
		}
	}
	slices.SortStableFunc(full, func(a, z bound) int { return cmp.Compare(z.strength, a.strength) })
	if len(full) > 0 {
		top = full[0]
		for _, x := range full[1:] {
			// The pods of a part share its load, and ends that wait for the same processors are held up by these.
			same := t.tierOf(x.end) == t.tierOf(top.end) || x.cause == top.cause && (x.cause == Host || x.cause == Steal)
			if x.strength >= together*top.strength && !same {
				return top, &x
			}
		}
		return top, nil
	}
	return t.idle(of, ends), nil
}

// full says what fills an end, if anything does.
func (t *Tiers) full(all []rule, end string, f *facts) bound {
	s := &f.own
	weights, limits := map[Name]float64{}, map[Name]float64{}
	for i := range all {
		weights[all[i].kind], limits[all[i].kind] = all[i].weight(f), all[i].limit
	}
	there := func(k Name) bool { return weights[k] >= limits[k] } // false of NaN
	out := bound{end: end, cause: None}
	busy, waits := s.or(fWorkBusy, 0), s.or(fWorkWait, 0)
	if x := s.or(fHelperBusy, 0); x > busy { // of gVisor: its sentry's
		busy, waits = x, s.or(fHelperWait, 0)
	}
	whose := t.whose(end)
	switch occupied := min(1, busy+waits); {
	case there(Quota):
		out.cause, out.strength = Quota, max(occupied, weights[Quota])
		out.says = fmt.Sprintf("The CPU limit of %s: %.3g of %.3g cores are used, and %s of its periods are throttled.", whose, s.or(fCgroup, 0), s[fQuota], percent(s.or(fThrottled, 0)))
	case there(Steal) && (occupied >= limits[GuestOne] || there(Host)):
		out.cause, out.strength = Steal, max(occupied, weights[Steal])
		out.says = fmt.Sprintf("A hypervisor below the node of %s: it takes %s of the processor time that the node wants.", whose, percent(weights[Steal]))
	case there(Host), occupied >= limits[GuestOne] && busy < limits[GuestOne] && s.or(fHostBusy, 0) >= crowded:
		out.cause, out.strength = Host, max(occupied, weights[Host])
		out.says = fmt.Sprintf("The processors of the node of %s: %s are in use, and its threads wait for a processor for %s of the time.", whose, percent(s.or(fHostBusy, 0)), percent(f.waits()))
	case occupied >= limits[GuestOne]:
		out.cause, out.strength = GuestOne, occupied
		out.says = fmt.Sprintf("A thread of %s is full: it runs for %s of the time, and all its threads use %.3g cores.", whose, percent(busy), s.or(fCgroup, s.or(fWork, 0)))
	case there(SoftIRQ):
		out.cause, out.strength = SoftIRQ, weights[SoftIRQ]
		out.says = fmt.Sprintf("One processor of the node of %s: interrupts take %s of its time.", whose, percent(weights[SoftIRQ]))
	}
	return out
}

// idle is the verdict where nothing that was read is full.
func (t *Tiers) idle(of map[string]*facts, ends []string) bound {
	parts := map[string]bool{}
	used := 0.0 // threads that run or want to, of all ends
	var client *facts
	for _, end := range ends {
		f := of[end]
		if !t.isRead(f) {
			continue
		}
		parts[t.tierOf(end)] = true
		used += f.own.or(fCgroup, f.own.or(fWork, 0)) + f.own.or(fWait, 0)
		if t.tierOf(end) == Load {
			client = f
		}
	}
	if client == nil || len(parts) < 2 || t.Missing != "" {
		return bound{cause: Unknown}
	}
	queued := 0.0
	for _, end := range ends {
		if f := of[end]; t.isRead(f) {
			queued = max(queued, f.own.or(fQueued, 0))
		}
	}
	time, rate, n := client.time(), client.own[fRate], client.inFlight()
	if queued >= 1 && queued >= 0.1*n {
		for _, end := range ends {
			if f := of[end]; t.isRead(f) && f.own.or(fQueued, 0) == queued {
				return bound{end: end, cause: Connections, strength: queued / n, says: fmt.Sprintf(
					"The number of connections that %s accepts: %.3g wait at its port, and no thread is full. HAProxy's limit is maxconn.", t.whose(end), queued)}
			}
		}
	}
	left := time - used/rate
	if left >= unhurried && left >= elsewhereMost*time { // false of NaN
		what := "the servers behind the controller"
		if !parts[record.EndBackend] {
			what += ", which were not read,"
		}
		return bound{end: record.EndBackend, cause: Behind, strength: left / time, says: fmt.Sprintf(
			"Waiting for %s: a request takes %s, and for %s of that time no thread that was read is busy. A slow network between the pods looks the same.", what, duration(time), percent(left/time))}
	}
	says := "Nothing that was read is full: the load itself is the limit."
	if client.own.has(fRate, fTime) {
		says = fmt.Sprintf("Nothing that was read is full: the load itself is the limit, with %.3g requests under way.", n)
	}
	return bound{cause: None, says: says}
}

// whose names an end in a sentence.
func (t *Tiers) whose(end string) string {
	switch part := t.tierOf(end); part {
	case Load:
		return "the load generator"
	case record.EndBackend:
		return "a server behind the controller (" + end + ")"
	case end:
		return "the " + part
	default:
		return fmt.Sprintf("the %s (pod %s)", part, strings.TrimPrefix(end, part+"-"))
	}
}

func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// tierReadings are the figures of one end.
func (b *builder) tierReadings(t *Tiers, out *Finding, end string, f *facts, each []sheet) []Reading {
	if !t.isRead(f) {
		return nil
	}
	var list []Reading
	for i := range b.rules {
		r := &b.rules[i]
		if !slices.Contains([]Name{Quota, Host, Steal, SoftIRQ, Helper, GuestOne, Connections}, r.kind) {
			continue
		}
		says := Excludes
		switch w := r.weight(f); {
		case math.IsNaN(w):
			says = Silent
		case out.Endpoint == end && (out.Cause == r.kind || slices.Contains(out.Among, r.kind)):
			says = Supports
		case w >= near*r.limit:
			says = Silent
		}
		for _, g := range r.shows {
			x, ok := b.reading(f, &g, each)
			if !ok {
				continue
			}
			if x.About, x.Says, x.Endpoint = r.kind, says, end; end != out.Endpoint {
				x.Series = nil // a report plots the series of the finding's end alone
			}
			list = append(list, x)
		}
	}
	return list
}
