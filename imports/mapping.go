package imports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/internal/yamlcheck"
)

// MaxMapping bounds a mapping file, in bytes.
const MaxMapping = 64 << 10

// maxWrong bounds the mistakes that an error names.
const maxWrong = 5

// DecodeMapping reads the text of a mapping file into the struct at m. keys lists its keys, for
// errors. An empty text changes nothing. Errors name the file, and the line if it is not YAML.
func DecodeMapping(file string, text []byte, m any, keys string) error {
	if len(text) > MaxMapping {
		return fmt.Errorf("%s: the mapping has %d bytes; write at most %d", file, len(text), MaxMapping)
	}
	err := yamlcheck.Check(text)
	if err == nil {
		dec := yaml.NewDecoder(bytes.NewReader(text))
		dec.KnownFields(true)
		err = dec.Decode(m)
	}
	var wrong *yaml.TypeError
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &wrong) && len(wrong.Errors) > maxWrong:
		err = fmt.Errorf("%s; and %d more mistakes", strings.Join(wrong.Errors[:maxWrong], "; "), len(wrong.Errors)-maxWrong)
	}
	return fmt.Errorf("%s: %s; write %s", file, strings.TrimPrefix(err.Error(), "yaml: "), keys)
}
