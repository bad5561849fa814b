package imports

import (
	"crypto/sha256"
	"fmt"
)

// First detects input that is read twice: an execution that counts as two trials would make
// intervals too narrow.
type First struct {
	names map[[sha256.Size]byte]string
}

// Same refuses content that was read before, under any name.
func (f *First) Same(name string, content []byte) error {
	sum := sha256.Sum256(content)
	if was, ok := f.names[sum]; ok {
		return fmt.Errorf("%s has the same bytes as %s, which was given before; one execution is one trial, so give each once", name, was)
	}
	if f.names == nil {
		f.names = map[[sha256.Size]byte]string{}
	}
	f.names[sum] = name
	return nil
}
