package param

import (
	"fmt"
	"testing"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]int64{
		"8bit": 1, "100Mbit": 12_500_000, "100mbit": 12_500_000, "1Gbit": 125_000_000, "2.5gbit/s": 312_500_000, " 64 kbit ": 8000, "0bit": 0,
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for text, why := range map[string]string{
		"": "100Mbit", "100": "100Mbit", "100MB": "100Mbit", "100Mb": "100Mbit", "-1Mbit": "100Mbit", "bit": "100Mbit", "0x1pbit": "100Mbit", "nanbit": "100Mbit",
		"infbit": "too large", "1e30bit": "too large",
	} {
		_, err := ParseRate(text)
		wrong(t, fmt.Sprintf("ParseRate(%q)", text), err, why)
	}
	p := Param{Name: "link-rate", Type: Rate, Default: "none", Min: 8000, Max: 12.5e9, Words: []string{"none"}}
	for text, why := range map[string]string{"1kbit": "from 64kbit to 100Gbit", "1Tbit": "100Mbit"} {
		_, err := p.Check(text)
		wrong(t, "Check of "+text, err, why)
	}
	if got := (Values{"a": "none", "b": "8kbit"}); got.Rate("a") != 0 || got.Rate("b") != 1000 {
		t.Errorf("%d and %d bytes a second", got.Rate("a"), got.Rate("b"))
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"100Mbit", "1Gbit", "2.5gbit/s", "none", "0bit", "1e3kbit", "100MB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseRate(text)
		if err != nil {
			return
		}
		if n < 0 {
			t.Fatalf("%q is %d bytes a second", text, n)
		}
		again, err := ParseRate(FormatRate(n))
		if d := again - n; err != nil || n < 1<<50 && d != 0 {
			t.Errorf("%q is %d, written as %s, which is %d, %v", text, n, FormatRate(n), again, err)
		}
	})
}
