package param

import "fmt"

// FileError is a mistake in the text of a parameter of type File, and its place. The caller
// puts the file's name before it.
type FileError struct {
	Param        string
	Line, Column int    // from 1
	What         string // is wrong
	Instead      string // what to write; "" if What is enough
}

// Error is "parameter, line L, column C: what is wrong; what to write".
func (e *FileError) Error() string {
	s := fmt.Sprintf("%s, line %d, column %d: %s", e.Param, e.Line, e.Column, e.What)
	if e.Instead != "" {
		s += "; " + e.Instead
	}
	return s
}
