package param

import (
	"encoding/json"
	"fmt"
)

// FileError is a mistake in the text of a parameter of type File, and its place. The caller
// puts the file's name before it.
type FileError struct {
	Param        string
	File         string // of those that the parameter's file names, as it names it; "" the parameter's own
	Line, Column int    // from 1
	What         string // is wrong
	Instead      string // what to write; "" if What is enough
}

// Error is "parameter, line L, column C: what is wrong; what to write".
func (e *FileError) Error() string {
	of := e.Param
	if e.File != "" {
		of += ", " + e.File
	}
	s := fmt.Sprintf("%s, line %d, column %d: %s", of, e.Line, e.Column, e.What)
	if e.Instead != "" {
		s += "; " + e.Instead
	}
	return s
}

// Named is a file that another one names.
type Named struct {
	Name   string   // as written there
	Places []string // where it may be, the first that exists counts; relative to the file that names it
}

// Bundle is a file together with those that it names: the value of a parameter whose Names is set.
type Bundle struct {
	Text  string            `json:"text"`
	Files map[string]string `json:"files,omitempty"` // by Named.Name; without those that do not exist
}

// Value is the parameter's value.
func (b Bundle) Value() string {
	text, _ := json.Marshal(b) // texts have no form that JSON lacks
	return string(text)
}

// ReadBundle is the reverse of Bundle.Value.
func ReadBundle(value string) (Bundle, error) {
	var b Bundle
	if err := json.Unmarshal([]byte(value), &b); err != nil {
		return b, fmt.Errorf("a file with those that it names: %w", err)
	}
	return b, nil
}
