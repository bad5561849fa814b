package weigh

import (
	"strings"

	"tare/analyse"
	"tare/ordered"
	"tare/record"
	"tare/report/words"
)

// Notes are what the costs are worth less for, a line each: other work on the host, and a processor
// that is emulated in software.
func Notes(r *analyse.Result, hosts []record.Host) []string {
	var out []string
	for i := range hosts {
		for _, w := range hosts[i].Warnings {
			if w.Code != "load" {
				continue
			}
			text, _, _ := strings.Cut(w.Text, ";")
			out = ordered.Add(out, cut("busy host: "+strings.Replace(text, "before anything was started", "at the start", 1)))
		}
	}
	for i := range r.Overheads {
		if o := &r.Overheads[i]; o.Idles() {
			out = append(out, cut("idle, "+o.Sandbox+" uses "+words.Value(*o.Idle, record.Fraction)+" of a core, which slows the others"))
		}
	}
	var emulated []string
	for i := range r.Accelerators {
		if a := &r.Accelerators[i]; a.Emulated() {
			emulated = append(emulated, a.Sandbox)
		}
	}
	if len(emulated) > 0 {
		out = append(out, cut("without KVM: the processor of "+words.List(emulated)+" is emulated, which is most of the cost"))
	}
	return out
}
