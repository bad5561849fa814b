package loadfile

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// tickName is a function that counts the passes of loops. It writes nothing.
const tickName = "tareTick"

// maxWord bounds what one function returns, in bytes or elements.
const maxWord = 16 << 10

var (
	errWork  = fmt.Errorf("its loops have more than %d passes", maxTicks)
	errWord  = fmt.Errorf("a function returns more than %d bytes or elements", maxWord)
	errWidth = errors.New("a width in a format is * or larger than 999; write a number up to 999")
)

// weight is the size of a value, up to a little more than most.
func weight(v any, most int) int {
	x := reflect.ValueOf(v)
	n := 1
	switch x.Kind() {
	case reflect.String:
		n += x.Len()
	case reflect.Slice:
		for i := 0; i < x.Len() && n <= most; i++ {
			n += weight(x.Index(i).Interface(), most-n)
		}
	case reflect.Map:
		for i := x.MapRange(); i.Next() && n <= most; {
			n += weight(i.Key().Interface(), most-n) + weight(i.Value().Interface(), most-n)
		}
	}
	return n
}

// light refuses values that hold each other again and again, and so would be printed without end.
func light[T any](v T) (T, error) {
	if weight(v, 4*maxWord) > 4*maxWord {
		return v, errWord
	}
	return v, nil
}

func fit(s string) (string, error) {
	if len(s) > maxWord {
		return "", errWord
	}
	return s, nil
}

// functions are those of text/template, bounded, and the part of sprig's that loads need.
func (s *state) functions() template.FuncMap {
	m := template.FuncMap{
		tickName: func() (string, error) {
			if s.ticks++; s.ticks > maxTicks {
				return "", errWork
			}
			return "", nil
		},
		"randInt": func(from, to int) (int, error) {
			if to <= from {
				return 0, fmt.Errorf("randInt: there is no number from %d to below %d", from, to)
			}
			return from + s.draw.IntN(to-from), nil
		},
		"randAlphaNum": func(n int) (string, error) {
			if n < 0 || n > 4096 {
				return "", errWord
			}
			return draw("[A-Za-z0-9]{"+strconv.Itoa(n%maxDrawn)+"}", s.draw.Uint64())
		},
		"print":   func(a ...any) (string, error) { return fit(fmt.Sprint(a...)) },
		"println": func(a ...any) (string, error) { return fit(fmt.Sprintln(a...)) },
		"printf":  printf,
		"until":   until,
		"env":     func(name string) string { return s.env[name] },
	}
	for _, more := range []template.FuncMap{numbers(), texts(), collections()} {
		for name, f := range more {
			m[name] = f
		}
	}
	for _, name := range []string{"html", "js", "urlquery"} {
		m[name] = func(...any) (string, error) { return "", errors.New("tare does not have this function") }
	}
	return m
}

var widthRE = regexp.MustCompile(`\d{4,}|\*`)

func printf(format string, a ...any) (string, error) {
	if widthRE.MatchString(format) {
		return "", errWidth
	}
	return fit(fmt.Sprintf(format, a...))
}

func until(n any) ([]int, error) {
	count := toInt(n)
	if count < 0 || count > maxWord {
		return nil, errWord
	}
	out := make([]int, count)
	for i := range out {
		out[i] = i
	}
	return out, nil
}

// toInt is a number of any type, or a text that is one; else 0, as with sprig.
func toInt(v any) int64 {
	x := reflect.ValueOf(v)
	switch {
	case !x.IsValid():
		return 0
	case x.CanInt():
		return x.Int()
	case x.CanUint():
		return int64(min(x.Uint(), 1<<62))
	case x.CanFloat():
		return int64(x.Float())
	case x.Kind() == reflect.String:
		n, _ := strconv.ParseInt(strings.TrimSpace(x.String()), 0, 64)
		return n
	case x.Kind() == reflect.Bool && x.Bool():
		return 1
	}
	return 0
}

// numbers are functions of whole numbers.
func numbers() template.FuncMap {
	fold := func(f func(a, b int64) int64) func(first any, more ...any) int64 {
		return func(first any, more ...any) int64 {
			n := toInt(first)
			for _, x := range more {
				n = f(n, toInt(x))
			}
			return n
		}
	}
	divided := func(f func(a, b int64) int64) func(a, b any) (int64, error) {
		return func(a, b any) (int64, error) {
			if toInt(b) == 0 {
				return 0, errors.New("a division by 0")
			}
			return f(toInt(a), toInt(b)), nil
		}
	}
	return template.FuncMap{
		"add": fold(func(a, b int64) int64 { return a + b }), "mul": fold(func(a, b int64) int64 { return a * b }),
		"max": fold(func(a, b int64) int64 { return max(a, b) }), "min": fold(func(a, b int64) int64 { return min(a, b) }),
		"sub":  func(a, b any) int64 { return toInt(a) - toInt(b) },
		"add1": func(a any) int64 { return toInt(a) + 1 },
		"div":  divided(func(a, b int64) int64 { return a / b }), "mod": divided(func(a, b int64) int64 { return a % b }),
		"int": func(a any) int { return int(toInt(a)) }, "int64": toInt, "atoi": func(a string) int { return int(toInt(a)) },
		"Binomial": func(n, k int) (int64, error) {
			if n < 0 || k < 0 || k > n || n > 10_000 {
				return 0, errors.New("the numbers are out of range")
			}
			if b := new(big.Int).Binomial(int64(n), int64(k)); b.IsInt64() {
				return b.Int64(), nil
			}
			return 0, errWord
		},
	}
}

// texts are functions of texts.
func texts() template.FuncMap {
	one := func(f func(string) string) func(any) (string, error) {
		return func(v any) (string, error) { return fit(f(word(v))) }
	}
	indent := func(n int, s string) (string, error) {
		if n < 0 || n > 200 || n*strings.Count(s, "\n") > maxWord {
			return "", errWord
		}
		pad := strings.Repeat(" ", n)
		return fit(pad + strings.ReplaceAll(s, "\n", "\n"+pad))
	}
	return template.FuncMap{
		"toString": one(func(s string) string { return s }), "upper": one(strings.ToUpper), "lower": one(strings.ToLower), "trim": one(strings.TrimSpace),
		"quote": one(strconv.Quote), "squote": one(func(s string) string { return "'" + s + "'" }),
		"b64enc": one(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
		"b64dec": func(s string) (string, error) {
			b, err := base64.StdEncoding.DecodeString(s)
			return string(b), err //nolint:wrapcheck // the place is added
		},
		"indent":  indent,
		"nindent": func(n int, s string) (string, error) { s, err := indent(n, s); return "\n" + s, err },
		"repeat": func(n int, s string) (string, error) {
			if n < 0 || n*max(1, len(s)) > maxWord || n > maxWord {
				return "", errWord
			}
			return strings.Repeat(s, n), nil
		},
		"replace": func(old, with, s string) (string, error) {
			if len(s)*max(1, len(with)) > 64*maxWord {
				return "", errWord
			}
			return fit(strings.ReplaceAll(s, old, with))
		},
		"trunc":      func(n int, s string) string { return s[:min(max(0, n), len(s))] },
		"contains":   func(part, s string) bool { return strings.Contains(s, part) },
		"hasPrefix":  func(part, s string) bool { return strings.HasPrefix(s, part) },
		"hasSuffix":  func(part, s string) bool { return strings.HasSuffix(s, part) },
		"trimPrefix": func(part, s string) string { return strings.TrimPrefix(s, part) },
		"trimSuffix": func(part, s string) string { return strings.TrimSuffix(s, part) },
		"splitList":  func(by, s string) []string { return strings.Split(s, by) },
		"join": func(by string, list any) (string, error) {
			var all []string
			n := 0
			for _, x := range elementsOf(list) {
				all = append(all, word(x))
				if n += len(by) + len(all[len(all)-1]); n > maxWord {
					return "", errWord
				}
			}
			return strings.Join(all, by), nil
		},
		"toJson": func(v any) (string, error) {
			b, err := json.Marshal(v)
			if err != nil {
				return "", err //nolint:wrapcheck // the place is added
			}
			return fit(string(b))
		},
	}
}

func word(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return fmt.Sprint(v)
}

// elementsOf are those of a list of any type.
func elementsOf(list any) (out []any) {
	x := reflect.ValueOf(list)
	if x.Kind() != reflect.Slice {
		return nil
	}
	for i := range min(x.Len(), maxWord) {
		out = append(out, x.Index(i).Interface())
	}
	return out
}

// collections are functions of lists and mappings.
func collections() template.FuncMap {
	empty := func(v any) bool { t, ok := template.IsTrue(v); return !t || !ok }
	return template.FuncMap{
		"list": func(a ...any) ([]any, error) { return light(a) },
		"append": func(list any, v any) ([]any, error) {
			all := elementsOf(list)
			if len(all) >= maxWord/16 {
				return nil, errWord
			}
			return light(append(all, v))
		},
		"first": func(list any) (any, error) { return nth(elementsOf(list), 0) },
		"last":  func(list any) (any, error) { all := elementsOf(list); return nth(all, len(all)-1) },
		"has": func(v any, list any) bool {
			return slices.ContainsFunc(elementsOf(list), func(x any) bool { return reflect.DeepEqual(x, v) })
		},
		"dict": func(a ...any) (map[string]any, error) {
			if len(a)%2 != 0 {
				return nil, errors.New("dict: a key has no value")
			}
			m := map[string]any{}
			for i := 0; i < len(a); i += 2 {
				m[word(a[i])] = a[i+1]
			}
			return light(m)
		},
		"get":    func(m map[string]any, key string) any { return m[key] },
		"hasKey": func(m map[string]any, key string) bool { _, ok := m[key]; return ok },
		"empty":  empty,
		"default": func(usual any, v ...any) any {
			if len(v) == 0 || empty(v[0]) {
				return usual
			}
			return v[0]
		},
		"coalesce": func(v ...any) any {
			for _, x := range v {
				if !empty(x) {
					return x
				}
			}
			return nil
		},
		"ternary": func(yes, no any, v bool) any {
			if v {
				return yes
			}
			return no
		},
	}
}

func nth(list []any, i int) (any, error) {
	if i < 0 || i >= len(list) {
		return nil, errors.New("the list is empty")
	}
	return list[i], nil
}
