// Package section builds each section of the report once, from an analysis. The text
// report, the HTML page, the page without scripts and the plots render what it builds;
// none of them knows what a section is about.
//
// The data path: 1. a builder, one a section, reads an analyse.Result; 2. it returns a
// Section: blocks of a few types (Block) with figures already written as people read
// them; 3. Report lists the sections in their order; 4. a renderer knows how to show
// each type of block, and nothing else.
//
// docs/add-a-section.md says how to add one.
package section

import (
	"tare/analyse/advice"
	"tare/report/words"
)

// Section is one part of the report.
type Section struct {
	ID     string   `json:"id"`               // a stable word, such as causes
	Title  string   `json:"title,omitempty"`  // "" for a part that needs no heading
	About  string   `json:"about,omitempty"`  // what the figures are, in a few words
	In     string   `json:"in,omitempty"`     // the part of the HTML page that shows it; "": it has a part of its own
	Folded bool     `json:"folded,omitempty"` // that part shows it when it is opened
	Notes  []string `json:"notes,omitempty"`  // of document.Notes, that the page shows beside its heading; none: the one of the ID
	Blocks []Block  `json:"blocks"`
}

// Block is one piece of a section. Exactly one field is set.
type Block struct {
	Head  string `json:"head,omitempty"` // a heading within the section
	Text  string `json:"text,omitempty"` // a paragraph
	Note  string `json:"note,omitempty"` // what explains the block above
	List  []Item `json:"list,omitempty"`
	Signs []Sign `json:"signs,omitempty"` // what the signs of the table above mean
	Table *Table `json:"table,omitempty"`
	Entry *Entry `json:"entry,omitempty"`
}

// Item is one entry of a list.
type Item struct {
	Lead string `json:"lead,omitempty"` // what it is about; "" for nothing
	Text string `json:"text"`
	More string `json:"more,omitempty"` // as it was written, such as output; the page shows it when it is asked for
}

func (i Item) String() string {
	if i.Lead == "" {
		return i.Text
	}
	return i.Lead + ": " + i.Text
}

// Table is rows of cells.
type Table struct {
	Keys    int      `json:"keys"` // how many of the first columns name a row
	Columns []Column `json:"columns"`
	Rows    [][]Cell `json:"rows"`
	Grouped bool     `json:"grouped,omitempty"` // rows with the same first cell stand together: it is written once
	Words   bool     `json:"words,omitempty"`   // the cells are words; else they are figures
	All     string   `json:"all,omitempty"`     // says where all rows are; then a terminal shows the first only
	Sparing bool     `json:"-"`                 // a terminal without room leaves out second parts, then the second column
	Wide    string   `json:"wide,omitempty"`    // what it is called on the page, which alone has room for it; "": it is not such a table
}

// Column is one column of a table.
type Column struct {
	Head string `json:"head"`
	Wide bool   `json:"wide,omitempty"` // shown where there is room for details: on the page
}

// Cell is one cell: a first part, and a second that stands beside or below it.
type Cell struct {
	First  string     `json:"a,omitempty"`
	Second string     `json:"b,omitempty"`
	Tone   words.Tone `json:"tone,omitempty"`
	Mean   bool       `json:"mean,omitempty"`  // of a row's first cell: the row is the mean of those above
	Wide   bool       `json:"-"`               // of a row's first cell: the page alone has room for the row
	Cause  *Cause     `json:"cause,omitempty"` // of a map of causes
}

// Sign explains a sign.
type Sign struct {
	Mark string     `json:"mark"`
	Text string     `json:"text"`
	Tone words.Tone `json:"tone,omitempty"`
}

// Entry is a setting to make, with the facts about it and its patches.
type Entry struct {
	Rule    string         `json:"rule,omitempty"`
	Head    string         `json:"head"`
	Brief   bool           `json:"brief,omitempty"` // the head says all of it
	Tone    words.Tone     `json:"tone,omitempty"`
	Facts   []Item         `json:"facts,omitempty"`
	Patches []advice.Patch `json:"patches,omitempty"`
}

// NewTable begins a table; its first columns, keys of them, name a row.
func NewTable(keys int, columns ...string) *Table {
	t := &Table{Keys: keys}
	t.Add(columns...)
	return t
}

// Add adds columns.
func (t *Table) Add(columns ...string) {
	for _, c := range columns {
		t.Columns = append(t.Columns, Column{Head: c})
	}
}

// Row adds a row that begins with these cells, the rest empty, and returns it to be
// changed.
func (t *Table) Row(cells ...string) []Cell {
	row := make([]Cell, len(t.Columns))
	for i, c := range cells {
		row[i].First = c
	}
	t.Rows = append(t.Rows, row)
	return row
}

// Head begins a part of the section.
func (s *Section) Head(h string) { s.Blocks = append(s.Blocks, Block{Head: h}) }

// Table adds a table.
func (s *Section) Table(t *Table) { s.Blocks = append(s.Blocks, Block{Table: t}) }

// Text adds a paragraph, unless it is "".
func (s *Section) Text(t string) {
	if t != "" {
		s.Blocks = append(s.Blocks, Block{Text: t})
	}
}

// Note adds what explains the block above, unless it is "".
func (s *Section) Note(t string) {
	if t != "" {
		s.Blocks = append(s.Blocks, Block{Note: t})
	}
}

// Item adds to the list that the section ends with, or begins one.
func (s *Section) Item(lead, text string) {
	if n := len(s.Blocks); n == 0 || s.Blocks[n-1].List == nil {
		s.Blocks = append(s.Blocks, Block{})
	}
	last := &s.Blocks[len(s.Blocks)-1]
	last.List = append(last.List, Item{Lead: lead, Text: text})
}

// Fold adds an item that opens to more.
func (s *Section) Fold(lead, text, more string) {
	s.Item(lead, text)
	list := s.Blocks[len(s.Blocks)-1].List
	list[len(list)-1].More = more
}
