package study

import "go.yaml.in/yaml/v3"

// Unlimited returns the text of a study without its budget. Two studies whose texts differ in nothing else have the same trials, as far as
// their budgets let them go.
func Unlimited(src []byte) []byte {
	var doc yaml.Node
	if yaml.Unmarshal(src, &doc) != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return src
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "budget" {
			root.Content = append(root.Content[:i:i], root.Content[i+2:]...)
			break
		}
	}
	out, err := yaml.Marshal(&doc)
	if err != nil {
		return src
	}
	return out
}
