package imports

import (
	"errors"

	"go.yaml.in/yaml/v3"

	"tare/study"
)

// Tables are the tables of a report on imported results. A mapping file has them in the form of a
// study file's section tables.
type Tables struct {
	File string
	Node *yaml.Node // nil: none
}

// blame gives mistakes in the tables of a study's text their places in the mapping file. Other
// mistakes are not the user's, and stay as they are.
func (t Tables) blame(err error, text []byte) error {
	var all study.Errors
	var doc yaml.Node
	if t.Node == nil || !errors.As(err, &all) || yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return err
	}
	root := doc.Content[0].Content
	for i := 0; i+1 < len(root); i += 2 {
		if root[i].Value == "tables" {
			for _, e := range all {
				t.move(e, root[i+1], t.Node)
			}
			return all
		}
	}
	return err
}

// move gives a mistake the place of the node of the mapping that was copied to its place.
func (t Tables) move(e *study.Error, copied, from *yaml.Node) {
	if len(copied.Content) != len(from.Content) || e.File == t.File {
		return
	}
	for i := range copied.Content {
		t.move(e, copied.Content[i], from.Content[i])
	}
	within := e.Column - copied.Column // it may be at a word of a scalar
	if e.File != t.File && e.Line == copied.Line && within >= 0 && (within == 0 || copied.Kind == yaml.ScalarNode && within <= len(copied.Value)) {
		e.File, e.Line, e.Column = t.File, from.Line, from.Column+within
	}
}
