package section

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/analyse"
	"tare/record"
	"tare/report/words"
	"tare/study"
)

// maxFailed bounds the failed trials that the page shows one by one.
const maxFailed = 300

// Asked says what a study asks; file is the name of its file.
func Asked(r *analyse.Result, st *study.Study, file string) *Section {
	s := &Section{ID: "asked", Title: "What was asked", Notes: []string{"baseline", "response", "stop"}}
	s.Text(fmt.Sprintf("What does %s cost compared with %s?", st.Compare, st.Baseline))
	t := NewTable(1, "factor", "levels")
	t.Words = true
	for _, f := range st.Factors {
		levels := make([]string, len(f.Levels))
		for i, l := range f.Levels {
			levels[i] = r.LevelName(record.Level{Factor: f.Name, Value: l})
			if f.Name == st.Compare && l == st.Baseline {
				levels[i] += " (baseline)"
			}
		}
		t.Row(f.Name, strings.Join(levels, ", "))
	}
	s.Table(t)
	s.Item("stops", strings.TrimSpace(words.Stop(st.Stop)+" "+words.Budget(st.Budget)))
	s.Item("seed", strconv.FormatUint(st.Seed, 10))
	s.Item("confidence", perCent(r.Confidence)+" %, of all looks together")
	s.Item("margin", perCent(r.Margin)+" %")
	if len(st.Overrides) > 0 {
		s.Item("--set", strings.Join(st.Overrides, "  "))
	}
	if len(st.Source) > 0 {
		s.Fold("the study file", file, string(st.Source))
	}
	return s
}

// Hosts describes the machines that measured, each once; started says when each session
// began.
func Hosts(all []record.Host, started []string) *Section {
	s := &Section{ID: "host", Title: "Host"}
	var hosts []*record.Host
	measured := make(map[string][]string)
	for i := range all {
		h := &all[i]
		key := fmt.Sprint(*h)
		if measured[key] == nil {
			hosts = append(hosts, h)
		}
		when := started[i]
		if t, err := time.Parse(time.RFC3339, when); err == nil {
			when = t.UTC().Format("2006-01-02 15:04 UTC")
		}
		measured[key] = append(measured[key], when)
	}
	for _, h := range hosts {
		s.Head(strings.TrimSpace("host " + h.Hostname))
		cores := Item{Lead: "cores", Text: strconv.Itoa(h.Cores)}
		switch {
		case h.Cores == 0 && h.Threads == 0: // of imported results
			cores.Text = ""
		case h.Cores == 0: // a cluster's API server knows no more
			cores = Item{Lead: "CPUs", Text: strconv.Itoa(h.Threads)}
		case h.Threads > 0 && h.Threads != h.Cores:
			cores.Text += ", " + words.Count(h.Threads, "thread")
		}
		if h.Sockets > 1 {
			cores.Text += ", " + words.Count(h.Sockets, "socket")
		}
		memory := ""
		if h.MemoryBytes > 0 {
			memory = words.Value(float64(h.MemoryBytes), record.Byte)
		}
		for _, x := range []Item{
			{Lead: "processor", Text: strings.Trim(h.CPUModel+", "+h.Arch, ", ")}, cores, {Lead: "memory", Text: memory}, {Lead: "system", Text: h.OS}, {Lead: "kernel", Text: h.Kernel},
			{Lead: "cgroups", Text: h.Cgroups}, {Lead: "virtualization", Text: h.Virtualization}, {Lead: "KVM", Text: h.KVM}, {Lead: "governor", Text: h.Governor}, {Lead: "clock", Text: h.Clocksource}, {Lead: "data on", Text: h.Data},
			{Lead: "measured", Text: strings.Join(measured[fmt.Sprint(*h)], ", ")},
		} {
			if x.Text != "" {
				s.Item(x.Lead, x.Text)
			}
		}
		for _, more := range []struct {
			title string
			of    map[string]string
		}{{"Versions of tools", h.Tools}, {"Mitigations", h.Mitigations}} {
			if len(more.of) > 0 {
				t := NewTable(1, "name", "what")
				t.Words, t.Wide = true, more.title
				for _, k := range slices.Sorted(maps.Keys(more.of)) {
					t.Row(k, more.of[k])
				}
				s.Table(t)
			}
		}
	}
	return s
}

// FailedTrials lists them one by one, with the end of their output.
func FailedTrials(r *analyse.Result) *Section {
	s := &Section{ID: "failures", Title: "Failures and skips"}
	if len(r.Failures) == 0 {
		return s
	}
	s.Head(words.Count(len(r.Failures), "failed trial"))
	for i := range r.Failures[:min(len(r.Failures), maxFailed)] {
		f := &r.Failures[i]
		lead := fmt.Sprintf("trial %d (block %d", f.Seq, f.Block)
		if f.Attempt > 1 {
			lead += fmt.Sprintf(", attempt %d", f.Attempt)
		}
		where := f.Failure.Kind
		if f.Failure.Phase != "" {
			where += " in " + f.Failure.Phase
		}
		if f.Failure.Role != "" {
			where += ", " + f.Failure.Role
		}
		s.Fold(lead+")", words.Levels(r, f.Cell, " ")+": "+where+": "+f.Failure.Reason, f.Failure.Tail)
	}
	if more := len(r.Failures) - maxFailed; more > 0 {
		s.Text(fmt.Sprintf("And %d more; tare report --json has all.", more))
	}
	return s
}
