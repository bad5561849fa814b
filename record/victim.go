package record

import "strings"

// A trial may run a victim beside its load: a workload of its own, whose roles and responses have
// these prefixes.
const (
	VictimPrefix     = "victim_" // of a response, or any other figure that the victim's programs tell
	VictimRolePrefix = "victim-"
	// VictimOverlap is a sample without labels: the part of the victim's measured time in which the
	// load was measured, from 0 to 1.
	VictimOverlap = "victim_overlap"
	// VictimApart is the code of the warning that this part is small.
	VictimApart = "victim-apart"
)

// IsVictim reports whether a trial's role is one of the victim's.
func IsVictim(role string) bool { return strings.HasPrefix(role, VictimRolePrefix) }

// Victim describes the responses of a victim, from those of its workload. They count no operations:
// what a trial used, it mostly used for the load.
func Victim(all []Response) []Response {
	return among(all, VictimPrefix, "; of the victim")
}

// among describes responses of a part of a trial.
func among(all []Response, prefix, whose string) []Response {
	out := make([]Response, len(all))
	for i, r := range all {
		out[i] = Response{Name: prefix + r.Name, Unit: r.Unit, Better: r.Better, Network: r.Network, Help: r.Help + whose}
	}
	return out
}
