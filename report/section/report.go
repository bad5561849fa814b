package section

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tare/analyse"
	"tare/record"
	"tare/report/words"
)

// maxTreatments bounds how many have a sentence above the table.
const maxTreatments = 6

// maxLoads bounds how many loads have one.
const maxLoads = 8

// maxHosts bounds the machines that are described.
const maxHosts = 100

// Report lists the sections of the printed report in their order; those without blocks
// have nothing to say. dir is the results folder as the user named it, or "".
func Report(r *analyse.Result, hosts []record.Host, dir string) []*Section {
	out := []*Section{Head(r, hosts)}
	if len(r.Compared) > 0 {
		out = append(out, Answer(r))
	}
	asked, results := OwnTables(r), Results(r)
	if most, intervals := blocksOfRatios(r); most > 0 && !intervals && len(asked) > 0 { // a long list that tells little
		if most == 1 {
			results.Blocks = slices.Insert(results.Blocks, 0, Block{Text: "Each cell has one run: ratios have no interval."})
		}
		out = append(append(out, asked...), results, Legend(r))
	} else {
		out = append(append(out, results, Legend(r)), asked...)
	}
	return append(out, Tuned(r), Steps(r), Causes(r), Advice(r, dir), CPUCosts(r), Quotas(r), Structural(r), Published(r), Fair(r), Nodes(r), Others(r), Placements(r), Stops(r), Epochs(r),
		Failures(r), Steady(r), Warnings(r, nil), Skips(r.Skips, r.Modelled), Boots(r), Overheads(r), Ending(r, dir))
}

// OwnTables are the tables that the study asks for: summary tables, then figures of merit.
func OwnTables(r *analyse.Result) []*Section { return append(Tables(r), Figures(r)...) }

// OwnTablesNamed names the tables that the study asks for, and the command that shows them. It takes their place where they do not fit.
func OwnTablesNamed(r *analyse.Result, dir string) *Section {
	s := &Section{ID: "own-tables"}
	var names []string
	for i := range r.Tables {
		names = append(names, r.Tables[i].Name)
	}
	for i := range r.Figures {
		names = append(names, r.Figures[i].Name)
	}
	if len(names) > 0 {
		s.Text("The study's tables, each with tare report " + folder(dir) + " --table NAME: " + strings.Join(names, ", "))
	}
	return s
}

// blocksOfRatios is the most blocks that a ratio to the baseline has, and whether one has an interval.
func blocksOfRatios(r *analyse.Result) (most int, intervals bool) {
	for i := range r.Compared {
		if c := &r.Compared[i]; !c.Baseline {
			most, intervals = max(most, c.Estimate.N), intervals || c.Estimate.HasInterval()
		}
	}
	return most, intervals
}

// Page lists the sections of the HTML page in their order, those without blocks too: a
// live page may fill them later.
func Page(r *analyse.Result, hosts []record.Host) []*Section {
	return append(figuresPart(r), Tuned(r), Steps(r), CPUCosts(r), Quotas(r), Structural(r), Published(r), Fair(r), Nodes(r), Others(r), Placements(r), Stops(r), Steady(r), Warnings(r, hosts), FailedTrials(r), Skips(r.Skips, r.Modelled), Overheads(r), Boots(r))
}

// Plain lists the sections of the page without scripts, whose head and answer the page
// has anyway.
func Plain(r *analyse.Result) []*Section {
	out := Report(r, nil, "")[1:]
	if len(r.Compared) > 0 {
		out = out[1:]
	}
	for i, s := range out {
		if s.ID == "advice" && len(s.Blocks) > 0 {
			out[i] = Entries(r, r.Advice)
		}
	}
	return out
}

// Head says what was measured, where, and what is doubtful about the machines, each once.
func Head(r *analyse.Result, hosts []record.Host) *Section {
	s := &Section{ID: "head"}
	s.Text(title(r))
	if r.Modelled {
		s.Text(strings.ToUpper(words.Modelled[:8]) + words.ModelledAbout[8:])
	}
	seen := make(map[string]bool)
	for i := range hosts {
		if line := host(&hosts[i]); !seen[line] && len(seen) < maxHosts {
			seen[line] = true
			s.Text(line)
		}
	}
	if len(r.Nodes) > 0 {
		s.Text(nodes(r.Nodes))
	}
	s.Blocks = append(s.Blocks, hostWarnings(hosts)...)
	return s
}

// nodes lists the nodes, and how many trials each ran. It does not count blocks, because each block belongs to one workload variant.
func nodes(list []analyse.Node) string {
	var out []string
	for _, n := range list {
		out = append(out, fmt.Sprintf("%s (%s)", cmp.Or(n.Name, "one without a name"), words.Count(n.Trials, "trial")))
	}
	return "nodes " + strings.Join(out, ", ")
}

// host describes a machine.
func host(h *record.Host) string {
	if h.CPUModel == "" && h.Cores == 0 && h.MemoryBytes == 0 { // imported results do not say
		return strings.TrimSpace("host "+h.Hostname) + ": unknown"
	}
	out := "host " + h.Hostname + ": " + h.CPUModel
	memory := ""
	if h.MemoryBytes > 0 { // a model has none
		memory = words.Value(float64(h.MemoryBytes), record.Byte)
	}
	processors := words.Count(h.Cores, "core")
	if h.Cores == 0 { // a cluster's API server knows no more
		processors = words.Count(h.Threads, "CPU")
	}
	if h.CPUModel == "" {
		out = strings.TrimSuffix(out, " ")
	}
	for _, part := range []struct{ name, value string }{
		{"", processors}, {"", memory}, {"", h.OS}, {"Linux", h.Kernel}, {"cgroups", h.Cgroups},
		{"virtualization", h.Virtualization}, {"KVM", h.KVM}, {"data on", h.Data},
	} {
		if part.value != "" {
			if !strings.HasSuffix(out, ":") {
				out += ","
			}
			out += " " + strings.TrimSpace(part.name+" "+part.value)
		}
	}
	return out
}

func hostWarnings(hosts []record.Host) []Block {
	var s Section
	seen := make(map[record.Warning]bool)
	for _, h := range hosts {
		for _, w := range h.Warnings {
			if !seen[w] {
				seen[w] = true
				s.Item(w.Code, w.Text)
			}
		}
	}
	return s.Blocks
}

// Answer says in words what the table says: the headline, and what costs most in each
// treatment. How far the study is stands at the end of the report.
func Answer(r *analyse.Result) *Section {
	s := &Section{ID: "answer"}
	said, loads := 0, 0
	for _, x := range words.Answer(r, words.Options{}) {
		switch {
		case x.Load:
			if loads++; loads <= maxLoads {
				s.Item("", x.Text)
			}
		case x.About == "" && x.Tone == words.Note && said > 0:
		case x.About == "":
			s.Text(x.Text)
		default:
			if said++; said <= maxTreatments {
				s.Item("", x.Text)
			}
		}
	}
	if more := max(0, said-maxTreatments) + max(0, loads-maxLoads); more > 0 {
		s.Item("", fmt.Sprintf("and %d more; --full has all", more))
	}
	return s
}

// Ending says whether the study is finished and what can be done next.
func Ending(r *analyse.Result, dir string) *Section {
	s, next := &Section{ID: "ending"}, words.State(r)+". "
	if !r.Finished {
		next += goOn(r, dir) + ". "
	}
	s.Text(next + "All figures: tare report " + folder(dir) + " --json")
	return s
}
