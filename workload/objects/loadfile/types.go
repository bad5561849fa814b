package loadfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mostVisited bounds the objects of a file that are checked: a file can make a million of them from a few templates.
const mostVisited = 2000

// Visit calls f with requests until f returns an error. It takes enough requests of each batch to have one of every template.
func (p *Plan) Visit(f func(*Request) error) error {
	left := mostVisited
	for i := range p.Batches {
		b := &p.Batches[i]
		for k := range min(b.Count, maxKinds, left) {
			left--
			r, err := b.At(k)
			if err == nil {
				err = f(r)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Fits returns an error with a place if a field of the object, or of the change of one, has another type than that field in Kubernetes' API.
// api has the API's types by kind. A field that the API does not have is not an error: the API server only warns of it.
func (r *Request) Fits(api map[string]reflect.Type) error {
	t := api[r.Kind.Name]
	if t == nil || r.List != nil { // a list of changes has no type
		return nil
	}
	return fits(r.file, r.Kind.Name, r.node, t)
}

// Refuse returns an error at the deepest key of a path that the object has. A number stands for an element of a list. A label of a
// nodeSelector may come from the project of the object.
func (r *Request) Refuse(path []string, instead, what string, args ...any) error {
	if r.selects != nil && strings.HasPrefix(r.selects.Value, path[len(path)-1]+"=") {
		return at("", r.selects, instead, what, args...)
	}
	return at(r.file, keyOf(r.node, path...), instead, what, args...)
}

// fits checks the value of a key.
func fits(file, key string, n *yaml.Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	_, own := reflect.New(t).Interface().(json.Unmarshaler)
	of := func(int) (string, reflect.Type) { return key, t.Elem() } // the key and the type of an element
	switch {
	case n.Tag == "!!null":
		return nil
	case own || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8: // bytes are written as text
		return leaf(file, key, n, t)
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		of = func(i int) (string, reflect.Type) { return n.Content[i-1].Value, field(t, n.Content[i-1].Value) }
	case t.Kind() == reflect.Map && n.Kind == yaml.MappingNode:
		of = func(i int) (string, reflect.Type) { return n.Content[i-1].Value, t.Elem() }
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
	default:
		return leaf(file, key, n, t)
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			continue
		}
		if key, t := of(i); t != nil {
			if err := fits(file, key, c, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// field is the type of a field of this name; nil if there is none.
func field(t reflect.Type, name string) reflect.Type {
	for i := range t.NumField() {
		f := t.Field(i)
		switch tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case tag == name:
			return f.Type
		case tag == "" && f.Anonymous:
			if inner := field(f.Type, name); inner != nil {
				return inner
			}
		}
	}
	return nil
}

// leaf checks a value by decoding it.
func leaf(file, key string, n *yaml.Node, t reflect.Type) error {
	v, err := value(file, n)
	if err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil || json.Unmarshal(b, reflect.New(t).Interface()) == nil {
		return err //nolint:wrapcheck // value has marshalled it before
	}
	is := fmt.Sprintf("the value %.40q", n.Value)
	switch {
	case n.Kind == yaml.MappingNode:
		is = "a mapping"
	case n.Kind == yaml.SequenceNode:
		is = "a list"
	case n.Tag == "!!str":
		is = fmt.Sprintf("the text %.40q", n.Value)
	}
	want, instead := form(t)
	return at(file, n, instead, "%s: %s is not %s", key, is, want)
}

// form says what a type of the API is, and how to write it.
func form(t reflect.Type) (what, instead string) {
	switch t.Kind() {
	case reflect.String:
		return "a text", "write it in quotes"
	case reflect.Bool:
		return "a boolean", "write true or false, without quotes"
	case reflect.Int32, reflect.Int64:
		return "a whole number", "write one without quotes; in a template of OpenShift, write ${{NAME}}"
	case reflect.Map:
		return "a mapping", "write KEY: VALUE"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "in base64", "encode it, or write stringData in place of data"
		}
		return "a list", "write - and an element on each line"
	}
	switch t.Name() {
	case "Quantity":
		return "a quantity", "write one such as 100m or 64Mi"
	case "IntOrString":
		return "a number or a name", "write one of them"
	case "Time", "MicroTime":
		return "a time", "write one such as 2026-01-31T12:00:00Z"
	}
	return "a mapping", "write KEY: VALUE"
}
