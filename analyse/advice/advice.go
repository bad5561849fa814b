// Package advice turns causes into settings: what to change, by how much it should
// help, and the patch that does it. Its rules are data, each with its source; none
// recommends what the sizing rules forbid together.
//
// docs/advice.md lists the rules and says how to add one.
package advice

import "tare/record"

// Item is one setting to change, for the cells that one rule speaks of.
type Item struct {
	Rule      string        `json:"rule"`      // its name
	Source    string        `json:"source"`    // where the rule is from: a document, a measurement
	Treatment string        `json:"treatment"` // that it is for
	Cells     []record.Cell `json:"cells"`     // those whose cause it cures
	Cause     string        `json:"cause"`     // cause.Kind
	Text      string        `json:"text"`      // what to set, to what, and why, in a sentence or two
	Gain      *Gain         `json:"gain,omitempty"`
	Unproven  string        `json:"unproven,omitempty"` // why there is no Gain: which cells would have to be measured
	Price     string        `json:"price,omitempty"`    // what the cure costs, in words: CPU, memory
	Warning   string        `json:"warning,omitempty"`  // what must not be done beside it
	Patches   []Patch       `json:"patches,omitempty"`
	Weight    float64       `json:"weight"` // the costliest first: the summed logarithm of what its cells lose
}

// Gain is what the setting is worth where the study measured it: the ratio of the
// response with it to that without it, over the blocks that have both.
type Gain struct {
	Response string      `json:"response"`
	From     record.Cell `json:"from"`
	To       record.Cell `json:"to"`
	Ratio    float64     `json:"ratio"`
	Lo       float64     `json:"lo"`
	Hi       float64     `json:"hi"`
	Pairs    int         `json:"pairs"`
	Cells    int         `json:"cells"` // pairs of cells that it is the geometric mean of
}

// Patch is the setting as it is written.
type Patch struct {
	For  string `json:"for"`  // pod, kubevirt, runtime, study, shell
	File string `json:"file"` // what it goes into, in words: pod manifest
	Text string `json:"text"`
}
