package redis

import (
	"fmt"
	"slices"
	"strings"

	"tare/param"
)

// test is one test of redis-benchmark.
type test struct {
	name    string // as in redis-benchmark, in lower case; the response's name
	command string // the server's name for it (INFO commandstats)
	fill    fill   // what the database must contain before
	about   string
}

// fill is the data that a test's requests need. redis-benchmark fills only for LRANGE: a GET alone
// would return nil, an LPOP alone would pop from an empty list.
type fill string

const (
	nothing  fill = ""
	everyKey fill = "keys" // each of the keys that a request can name has a value
	longList fill = "list" // mylist, more than LRANGE reads
	popList  fill = "pops" // mylist, an element for each request
	popSet   fill = "set"  // myset, likewise
	popZSet  fill = "zset" // myzset, likewise
)

// tests returns the tests of redis-benchmark 7.0, GET and SET first, the most common commands.
func tests() []test {
	return []test{
		{"get", "get", everyKey, "GET of a random key that has a value"},
		{"set", "set", nothing, "SET of a random key"},
		{"ping_inline", "ping", nothing, "PING as a line of text"},
		{"ping_mbulk", "ping", nothing, "PING in redis's protocol"},
		{"incr", "incr", nothing, "INCR of a random counter"},
		{"lpush", "lpush", nothing, "LPUSH onto one list"},
		{"rpush", "rpush", nothing, "RPUSH onto one list"},
		{"lpop", "lpop", popList, "LPOP from one list, which does not run empty"},
		{"rpop", "rpop", popList, "RPOP from one list, which does not run empty"},
		{"sadd", "sadd", nothing, "SADD of a random member to one set"},
		{"hset", "hset", nothing, "HSET of a random field of one hash"},
		{"spop", "spop", popSet, "SPOP from one set, which does not run empty"},
		{"zadd", "zadd", nothing, "ZADD of a random member to one sorted set"},
		{"zpopmin", "zpopmin", popZSet, "ZPOPMIN from one sorted set, which does not run empty"},
		{"lrange_100", "lrange", longList, "LRANGE of the first 100 elements"},
		{"lrange_300", "lrange", longList, "LRANGE of the first 300 elements"},
		{"lrange_500", "lrange", longList, "LRANGE of the first 500 elements"},
		{"lrange_600", "lrange", longList, "LRANGE of the first 600 elements"},
		{"mset", "mset", nothing, "MSET of ten random keys"},
	}
}

// later returns tests that only later versions have. They run only if named.
func later() []test {
	return []test{{"xadd", "xadd", nothing, "XADD to one stream (redis-benchmark 7.2 or later)"}}
}

func names(ts []test) []string {
	out := make([]string, len(ts))
	for i, t := range ts {
		out[i] = t.name
	}
	return out
}

func find(name string) (test, bool) {
	for _, t := range append(tests(), later()...) {
		if t.name == name {
			return t, true
		}
	}
	return test{}, false
}

// chosen reads the parameter tests: all, or names separated by commas or blanks, in upper or lower
// case, in the order in which they run.
func chosen(text string) ([]test, error) {
	var out []test
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ',' || r == ' ' }) {
		if word == "all" {
			out = append(out, tests()...)
			continue
		}
		t, ok := find(word)
		if !ok {
			return nil, fmt.Errorf("tests = %s: redis-benchmark has no test %q; %s", text, word, param.Suggest(word, append(names(append(tests(), later()...)), "all")))
		}
		out = append(out, t)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("tests = %q names no test; write all, or some of %s", text, strings.Join(names(tests()), ", "))
	}
	for i, t := range out {
		if slices.Contains(names(out[:i]), t.name) {
			return nil, fmt.Errorf("tests = %s: %s is given twice; remove one", text, t.name)
		}
	}
	return out, nil
}
