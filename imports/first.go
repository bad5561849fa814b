package imports

import (
	"crypto/sha256"
	"fmt"
)

// First tells what is read twice: an execution is one trial, and counted twice it would
// make intervals too narrow.
type First struct {
	names map[[sha256.Size]byte]string
}

// Same refuses content that was there already, under the same name or another.
func (f *First) Same(name string, content []byte) error {
	sum := sha256.Sum256(content)
	if was, ok := f.names[sum]; ok {
		return fmt.Errorf("%s: it is the same, byte for byte, as %s, which was given before, and one execution is one trial; give each once", name, was)
	}
	if f.names == nil {
		f.names = map[[sha256.Size]byte]string{}
	}
	f.names[sum] = name
	return nil
}
