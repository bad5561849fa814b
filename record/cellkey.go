package record

// CellKey says which cell of a study a figure belongs to.
type CellKey struct {
	Workload  string `json:"workload"`           // its label in the study
	Stratum   string `json:"stratum"`            // study.Stratum.Key
	Shared    Cell   `json:"shared"`             // the levels of the stratum
	Treatment string `json:"treatment"`          // analyse.Treatment.Key
	Cell      Cell   `json:"cell"`               // the whole cell
	Baseline  bool   `json:"baseline,omitempty"` // it is the stratum's baseline
}
