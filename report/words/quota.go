package words

import (
	"tare/analyse"
	"tare/analyse/cpucost"
	"tare/record"
)

// QuotasTitle heads what the ends used of their CPU quotas.
func QuotasTitle(r *analyse.Result) string {
	from := "threads by role"
	if r.Quotas[0].Source == cpucost.FromCgroup {
		from = "control groups"
	}
	return "CPU against the quota, in cores (" + from + ")"
}

// QuotasAbout explains the table.
const QuotasAbout = "Means over the good trials, in the measured time. CPU: of all that the sandbox runs for the end on the host, without tare's agent, and its part of the quota. " +
	"Throttled: of the quota's periods, those in which it was used up. Held back: the time that this took, summed over processors."

// QuotaEnd names an end of a stratum; one called main has no name of its own.
func QuotaEnd(q *cpucost.Quota, stratum string) string {
	if q.End == "" || q.End == "main" {
		return stratum
	}
	return stratum + " " + q.End
}

// TreatmentOf names a treatment by its key; cell is what is shown if there is none.
func TreatmentOf(r *analyse.Result, key string, cell record.Cell) string {
	for i := range r.Treatments {
		if r.Treatments[i].Key == key {
			return Treatment(r, r.Treatments[i].Cell)
		}
	}
	return cell.String()
}
