package imports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tare/internal/yamlcheck"
	"tare/record"
	"tare/study"
)

// Shallow refuses JSON that is nested too deeply, before it is decoded.
func Shallow(text []byte, most int) error {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return fmt.Errorf("the JSON is nested deeper than %d levels", most)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// Clean turns a tool's text into one short line, for a level or a message.
func Clean(text string) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 200 {
		text = strings.TrimSpace(strings.ToValidUTF8(text[:200], ""))
	}
	return text
}

// Describe completes a set from its samples: the responses of each workload from its samples,
// their direction from the unit, and the factors in order of names. If a trial of a workload
// lacks a level that another one has, its level is "none", unless no trial of that sandbox has
// the factor.
func Describe(s *Set) {
	known := map[string]bool{}
	has := map[string]map[string]bool{}
	for i := range s.Trials {
		t := &s.Trials[i]
		w := t.Levels[study.FactorWorkload]
		if has[w] == nil {
			has[w] = map[string]bool{}
		}
		for f := range t.Levels {
			has[w][f] = true
			if f != study.FactorWorkload && f != study.FactorSandbox && !slices.Contains(s.Factors, f) {
				s.Factors = append(s.Factors, f)
			}
		}
		for _, p := range t.Samples {
			if p.Labels != "" || known[w+"\x00"+p.Name] {
				continue
			}
			known[w+"\x00"+p.Name] = true
			better := Better(p.Unit)
			if strings.HasSuffix(p.Name, "_max") { // one event, whose ratio is not meaningful
				better = record.Neither
			}
			s.Responses[w] = append(s.Responses[w], record.Response{Name: p.Name, Unit: p.Unit, Better: better, Operation: operation(p)})
		}
	}
	slices.Sort(s.Factors)
	own := s.own()
	for i := range s.Trials {
		l := s.Trials[i].Levels
		for f := range has[l[study.FactorWorkload]] {
			if of := own[f]; l[f] == "" && (of == nil || slices.Contains(of, l[study.FactorSandbox])) {
				l[f] = "none"
			}
		}
	}
}

// operation returns what a figure counts or times; "" if its name does not show it. For fio it
// is always "", because a trial may have several kinds of operation.
func operation(p record.Sample) string {
	switch {
	case p.Name == "throughput" && p.Unit == record.BytesPerSecond:
		return "byte"
	case p.Name == "transactions" && p.Unit == record.PerSecond, p.Name == "latency" && p.Unit == record.Second:
		return "request"
	}
	return ""
}

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
