package imports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxMapping bounds a mapping file, in bytes.
const MaxMapping = 64 << 10

// DecodeMapping reads the text of a mapping file into the struct at m, whose keys are
// told in words where the text has others. An empty text changes nothing. Errors name
// the file, and the line where it is no YAML.
func DecodeMapping(file string, text []byte, m any, keys string) error {
	if len(text) > MaxMapping {
		return fmt.Errorf("%s: the mapping has %d bytes; write at most %d", file, len(text), MaxMapping)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(m); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %s; write %s", file, strings.TrimPrefix(err.Error(), "yaml: "), keys)
	}
	return nil
}
