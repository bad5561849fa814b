// Package advice turns causes into settings: what to change, by how much it should
// help, and the patch that does it. Its rules are data, each with its source; none
// recommends what the sizing rules forbid together.
//
// The data path: 1. the rules are read from the embedded rules.yaml; 2. each finding of
// a cost is asked which rules it fulfils: cause, role, family of sandbox, conditions
// (subject.go); 3. the findings of one rule, treatment, response and present setting are
// a group, and the rule's targets are computed for them together (target.go); 4. where the
// study measured cells that differ in nothing but these settings, the ratio between the
// two is the gain, and what was measured goes before what a rule says (gain.go); 5. the
// groups of one rule and sandbox are one item (item.go), and its templates are filled
// (fill.go); 6. what the cells show of the sizing rule itself goes before all (both.go).
//
// docs/advice.md lists the rules and says how to add one.
package advice

import "tare/record"

// Item is one setting to change, for the cells that one rule speaks of.
type Item struct {
	Rule      string `json:"rule"`      // its name
	Source    string `json:"source"`    // where the rule is from: a document, a measurement
	Treatment string `json:"treatment"` // that it is for: the costliest of Treatments
	// Treatments are all that it is for, in the study's order.
	Treatments []string      `json:"treatments,omitempty"`
	Cells      []record.Cell `json:"cells"`              // those whose cause it cures
	Cause      string        `json:"cause"`              // cause.Kind
	Change     string        `json:"change,omitempty"`   // what to set, to what, in a clause; "" where Contradicted
	Text       string        `json:"text"`               // Change, and why, in a sentence or two
	Gain       *Gain         `json:"gain,omitempty"`     // the best of Gains
	Gains      []Gain        `json:"gains,omitempty"`    // one of each response, the best first
	Targets    []Target      `json:"targets,omitempty"`  // what to set where: Sets and Patches are the first's, the others are there with the costliest first
	Unproven   string        `json:"unproven,omitempty"` // why there is no Gain: which cells would have to be measured
	Price      string        `json:"price,omitempty"`    // what the cure costs, in words: CPU, memory
	Warning    string        `json:"warning,omitempty"`  // what must not be done beside it
	Patches    []Patch       `json:"patches,omitempty"`
	Weight     float64       `json:"weight"` // the costliest first: the summed logarithm of what its cells lose

	Sets         record.Cell `json:"sets,omitempty"`         // factors of the study that it changes, and to what
	NotWith      []string    `json:"not_with,omitempty"`     // rules whose settings must not stand beside this one's
	Contradicted bool        `json:"contradicted,omitempty"` // measured, and no gain: Text says so, and there are no Patches
	Brief        bool        `json:"brief,omitempty"`        // a line is enough: little is lost, or there is nothing to set
}

// Target is where a rule leads cells that have the same levels today of what it sets.
type Target struct {
	From       record.Cell   `json:"from"` // levels today
	To         record.Cell   `json:"to"`   // levels to set, in the order of From
	Treatments []string      `json:"treatments"`
	Responses  []string      `json:"responses"`
	Cells      []record.Cell `json:"cells,omitempty"`
	Weight     float64       `json:"weight"`            // as of an Item
	Patches    []Patch       `json:"patches,omitempty"` // none to measure with: these are the Item's
}

// Gain is what the setting is worth where the study measured it: the ratio of the
// response with it to that without it, over the blocks that have both.
type Gain struct {
	Response string        `json:"response"`
	Better   record.Better `json:"better,omitempty"` // side of the response
	With     string        `json:"with,omitempty"`   // the setting, in words; "": the item's
	Than     string        `json:"than,omitempty"`   // what the ratio is to, in words: "with" or "under" something; "": the same without the setting
	From     record.Cell   `json:"from"`
	To       record.Cell   `json:"to"`
	Ratio    float64       `json:"ratio"`
	Lo       float64       `json:"lo"`
	Hi       float64       `json:"hi"`
	Pairs    int           `json:"pairs"`
	Cells    int           `json:"cells"` // pairs of cells that it is the geometric mean of
}

// Patch is the setting as it is written.
type Patch struct {
	For  string `json:"for"`  // pod, kubevirt, runtime, study, shell
	File string `json:"file"` // what it goes into, in words: pod manifest
	Text string `json:"text"`
}
