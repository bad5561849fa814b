// Package yamlcheck bounds untrusted YAML before it is decoded.
//
// The decoder of go.yaml.in/yaml/v3 compares every key of a mapping with every other key,
// and makes an error for each equal pair. 60,000 keys take 20 s, and 20,000 equal keys
// take more memory than a machine has. Parsing text into nodes takes time that grows only
// with its size, and so does this check.
package yamlcheck

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// maxKeys bounds the keys of one mapping: comparing this many takes 0.1 s.
const maxKeys = 5000

// Check returns an error for text that is not YAML, and for a mapping that has a key twice
// or has more than 5000 keys. The text may have several documents.
func Check(text []byte) error {
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc yaml.Node
		switch err := d.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err //nolint:wrapcheck // the caller knows the file
		}
		if err := node(&doc); err != nil {
			return err
		}
	}
}

// node checks a node and those below it. It does not follow an alias: the target is below
// another node.
func node(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		if keys := len(n.Content) / 2; keys > maxKeys {
			return fmt.Errorf("line %d: a mapping has %d keys; write at most %d", n.Line, keys, maxKeys)
		}
		seen := make(map[string]int, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode {
				continue
			}
			if line, ok := seen[k.Value]; ok {
				return fmt.Errorf("line %d: the key %.60q is in line %d already; remove one", k.Line, k.Value, line)
			}
			seen[k.Value] = k.Line
		}
	}
	for _, c := range n.Content {
		if err := node(c); err != nil {
			return err
		}
	}
	return nil
}

// Scalar returns the text at a path of keys in the first document. It returns false if
// there is none, or if a key of the path appears twice. It decodes nothing.
func Scalar(text []byte, path ...string) (string, bool) {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) != 1 {
		return "", false
	}
	n := doc.Content[0]
	for _, key := range path {
		if n = value(n, key); n == nil {
			return "", false
		}
	}
	return n.Value, n.Kind == yaml.ScalarNode
}

func value(n *yaml.Node, key string) *yaml.Node {
	var found *yaml.Node
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; k.Kind == yaml.ScalarNode && k.Value == key {
			if found != nil {
				return nil
			}
			found = n.Content[i+1]
		}
	}
	return found
}
