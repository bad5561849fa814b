package main

import (
	"strconv"

	"tare/analyse/stat"
	"tare/ordered"
	"tare/plan"
	"tare/record"
	"tare/report/words"
	"tare/run"
	"tare/site"
	"tare/study"
)

// sayFinished says that nothing is left to do of the study.
func (a *app) sayFinished(dir string, st *study.Study) {
	more := ""
	if st.Budget.Time > 0 {
		more = "; a larger budget continues it if the time was too short"
	}
	a.say("the study in %s is finished%s; add --fresh to run it again in a new folder", dir, more)
}

// announce says what is about to happen, or that nothing is left to do.
func (a *app) announce(st *study.Study, at site.About, s site.Session, p *plan.Plan, dir string, done int) {
	if _, more := p.Next(); !more {
		a.sayFinished(dir, st)
		return
	}
	skips, atOnce := s.Preview().Skips, s.Preview().AtOnce
	r := p.Remaining(s.Expected).Across(atOnce)
	if each := s.Preview().Pace; each > 0 {
		a.announceRehearsal(each, r)
	}
	a.say("study %s, %s, %s done, %s to do in %s%s; results in %s", st.Name, words.Count(cells(st), "cell"), words.Count(done, "trial"),
		span(strconv.Itoa(r.AtLeast), strconv.Itoa(r.AtMost)), span(words.Duration(r.LeastTime), words.Duration(r.MostTime)), words.Past(r), dir)
	if one := shared(s.Nodes()); atOnce > 1 {
		a.say("%d trials at once, on different nodes", atOnce)
	} else if one != nil {
		a.say("nodes %s share a machine, so trials run one after another; --at-once changes that", words.List(one))
	}
	if n := cells(st) - possible(st, skips); n > 0 {
		are, them := "are", "them"
		if n == 1 {
			are, them = "is", "it"
		}
		a.say("%s %s skipped, because %s %s:", words.Count(n, "cell"), are, at.Cannot, them)
		a.printSkips(skips)
	}
	if st.Sentinel != nil && !p.Watches() {
		a.say("no sentinel watches the machine: %s", withoutSentinel(st, at, skips))
	}
	short := ""
	if done == 0 { // a study that has begun keeps its budget
		short = tooShort(st, s)
	}
	for _, w := range append([]string{short, st.Stop.Wide(), st.Bare(stat.MinN)}, st.Notes...) {
		if w != "" {
			a.say("%s", w)
		}
	}
	for _, s := range skips {
		if study.IsCounting(s.Cell) {
			a.say("%s", s.Reason)
		}
	}
}

// tooShort says that the budget of a study is too short for verdicts; "" if it is enough.
func tooShort(st *study.Study, s site.Session) string {
	return words.Short(plan.Short(st, s.Preview().Skips, run.Nodes(s), s.Expected), st.Budget)
}

// sayShort tells the user what tooShort says, if it says something.
func (a *app) sayShort(st *study.Study, s site.Session) {
	if short := tooShort(st, s); short != "" {
		a.say("%s", short)
	}
}

// shared are the nodes if several are one machine.
func shared(nodes []record.Node) (names []string) {
	for i := range nodes {
		if nodes[i].On() != nodes[0].On() {
			return nil
		}
		names = append(names, nodes[i].Name)
	}
	if len(names) < 2 {
		return nil
	}
	return names
}

// withoutSentinel says why a study that should have a sentinel goes on without.
func withoutSentinel(st *study.Study, at site.About, skips []record.Skip) string {
	for _, s := range skips {
		if s.Cell.Key() == st.Sentinel.Cell.Key() {
			return at.Cannot + " it: " + s.Reason
		}
	}
	return "the study was started without it, or it failed repeatedly"
}

// span is a range, or its one value.
func span(least, most string) string {
	if least == most {
		return least
	}
	return least + " to " + most
}

func (a *app) printSkips(skips []record.Skip) {
	var reasons []string
	cells := map[string]int{}
	for _, s := range skips {
		if study.IsCounting(s.Cell) {
			continue
		}
		reasons = ordered.Add(reasons, s.Reason)
		cells[s.Reason]++
	}
	for _, reason := range reasons {
		if len(reasons) == 1 {
			a.say("%s", reason) // the line before says how many
			continue
		}
		a.say("%s (%s)", reason, words.Count(cells[reason], "cell"))
	}
}
