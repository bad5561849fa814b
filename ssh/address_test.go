package ssh

import (
	"bufio"
	"bytes"
	"runtime"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]Address{
		"ssh://db1":                      {Host: "db1"},
		"ssh://root@db1:2222":            {"root", "db1", "2222"},
		"ssh://a.b-c@my_host/":           {User: "a.b-c", Host: "my_host"},
		"ssh://root@[fe80::1%25eth0]:22": {"root", "fe80::1%eth0", "22"},
		"ssh://192.0.2.1:1":              {Host: "192.0.2.1", Port: "1"},
		"db1":                            {}, "root@db1": {}, "ssh:db1": {}, "ssh://": {}, "http://db1": {}, "ssh://:22": {},
		"ssh://root:secret@db1": {}, "ssh://db1/etc": {}, "ssh://db1?x": {}, "ssh://db1#x": {}, "ssh://db1:0": {}, "ssh://db1:65536": {}, "ssh://db1:x": {},
		"ssh://-oProxyCommand=x": {}, "ssh://-l@db1": {}, "ssh://a%24(id)@db1": {}, "ssh://a%20b@db1": {}, "ssh://db%0a1": {}, "ssh://@db1": {}, "ssh://d%60id%60b": {},
	} {
		got, err := Parse(in)
		if got != want || (err == nil) != (want != Address{}) {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
}

// FuzzParse: what is accepted is no flag and nothing for a shell, and is read the same again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"ssh://root@db1:2222", "ssh://[fe80::1%25eth0]", "ssh://0::", "ssh://-x@-y:1", "ssh://a%40b@c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		a, err := Parse(in)
		if err != nil {
			return
		}
		args := a.arguments()
		for _, arg := range append(args[len(args)-1:], a.User, a.Port) {
			if strings.HasPrefix(arg, "-") || strings.ContainsAny(arg, " \t\r\n\x00$`'\"\\;&|<>()*?!#~{}[]/") {
				t.Errorf("%q: %q", in, arg)
			}
		}
		if b, err := Parse(a.URL()); err != nil || a != b {
			t.Errorf("%q: %+v is %q, which is %+v, %v", in, a, a.URL(), b, err)
		}
	})
}

// FuzzMarked: whatever a shell prints before the script, and instead of it.
func FuzzMarked(f *testing.F) {
	f.Add([]byte("welcome\ntare-x has Linux x86_64\n"))
	f.Add([]byte("tare-x\n\ntare-x "))
	f.Fuzz(func(t *testing.T, in []byte) {
		words, err := marked(bufio.NewReaderSize(bytes.NewReader(in), 16), "tare-x")
		if (err == nil) != (len(words) > 0) {
			t.Errorf("%q, %v", words, err)
		}
	})
}

func TestMarked(t *testing.T) {
	noise := strings.Repeat("x", 10_000) + "\ntare-x\n tare-y has\n"
	in := bufio.NewReader(strings.NewReader(noise + "tare-x has Linux x86_64\n{}"))
	if words, err := marked(in, "tare-x"); err != nil || strings.Join(words, " ") != "has Linux x86_64" || in.Buffered() != 2 {
		t.Errorf("%q, %v", words, err)
	}
	if _, err := marked(bufio.NewReader(strings.NewReader(strings.Repeat("x", 2*maxNoise)+"\ntare-x has\n")), "tare-x"); err == nil || !strings.Contains(err.Error(), "before tare's first line") {
		t.Error(err)
	}
}

// TestScript: each shell of a user reads the script as one word.
func TestScript(t *testing.T) {
	if strings.ContainsAny(script, "'\n\\!") {
		t.Error("the script has characters that some shell reads in its own way, even between quotes")
	}
}

// TestFits: of another machine, it says what to build.
func TestFits(t *testing.T) {
	at := Address{User: "root", Host: "db1"}
	if err := fits(at, "Linux", machine(runtime.GOARCH)); err != nil {
		t.Error(err)
	}
	other, arch := "aarch64", "arm64"
	if runtime.GOARCH == arch {
		other, arch = "x86_64", "amd64"
	}
	for system, want := range map[string]string{"Linux": "root@db1 is " + other + ", and this tare is for " + machine(runtime.GOARCH) + "; build one for it with `GOARCH=" + arch + " make build`", "Darwin": "needs Linux"} {
		if err := fits(at, system, other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
