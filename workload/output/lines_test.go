package output

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/record"
)

type thing struct {
	N int `json:"n"`
}

func TestLines(t *testing.T) {
	check := func(x thing) error {
		if x.N < 0 {
			return errors.New("negative")
		}
		return nil
	}
	got, err := Lines(strings.NewReader("{\"n\":1}\n\n \t\n{\"n\":2}"), "a thing", check)
	if err != nil || !slices.Equal(got, []thing{{1}, {2}}) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"{\"n\":1}\n\n{\"n\":":                             "line 3 is not the JSON of a thing",
		"{\"n\":1}\n{\"n\":-2}":                            "line 2: negative",
		fmt.Sprintf("{\"n\":1}\n{\"n\": %*d}", maxLine, 2): "reading the lines",
		" \n": "empty",
	} {
		if _, err := Lines(strings.NewReader(text), "a thing", check); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// TestMedian: as many values are below the median as above it.
func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 5}, 5}, {[]float64{8, 2, 1, 4}, 3}, {[]float64{2, 2, math.Inf(1)}, 2},
	} {
		before := slices.Clone(c.values)
		if got := Median(c.values); got != c.want || !slices.Equal(before, c.values) {
			t.Errorf("Median(%v) = %g, want %g; afterwards %v", before, got, c.want, c.values)
		}
	}
}

// TestSlope: one disturbed point of many does not move the slope, and points with the same x have none.
func TestSlope(t *testing.T) {
	if got := Slope([]float64{0, 3, 6, 6, 9, 12}, []float64{10, 16, 22, 22, -500, 34}); got != 2 {
		t.Errorf("%g, want 2", got)
	}
}

func TestRepeats(t *testing.T) {
	var rd record.Reading
	Repeats(&rd, "time", record.Second, []time.Duration{1, 2, 3}, []float64{5, 1, 3})
	want := map[record.Labels]float64{"": 3, "stat=min": 1, "stat=max": 5}
	for _, s := range rd.Samples {
		if x, ok := want[s.Labels]; !ok || x != s.Value || s.Name != "time" || s.Unit != record.Second {
			t.Errorf("%+v", s)
		}
		delete(want, s.Labels)
	}
	if len(want) > 0 || len(rd.Series) != 1 || !slices.Equal(rd.Series[0].V, []float64{5, 1, 3}) {
		t.Errorf("not there: %v; series %+v", want, rd.Series)
	}
}

func TestTail(t *testing.T) {
	tail := Tail{Most: 10}
	var all string
	for i := range 40 {
		if b, err := tail.Whole(); (len(all) > 10) != errors.Is(err, ErrTooLong) || err == nil && string(b) != all {
			t.Errorf("after %q: %q, %v", all, b, err)
		}
		text := strings.Repeat(fmt.Sprint(i%10), i%4)
		all += text
		if n, err := tail.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("Write = %d, %v", n, err)
		}
		if got, want := tail.String(), all[max(0, len(all)-10):]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if len(tail.buf) > 20 {
			t.Errorf("%d bytes are held", len(tail.buf))
		}
	}
	_, _ = tail.Write([]byte("a very long line indeed"))
	if got := tail.String(); got != "ine indeed" {
		t.Errorf("%q", got)
	}
}

func TestSaid(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "it printed nothing on standard error",
		" \n\n":                        "it printed nothing on standard error",
		"one\n":                        "one",
		"one\ntwo\nthree\n":            "two; three",
		strings.Repeat("x", 1000):      strings.Repeat("x", 300),
		strings.Repeat("é", 200) + "x": strings.Repeat("é", 149) + "x",
	} {
		if got := Said(text); got != want {
			t.Errorf("Said(%.20q) = %q, want %q", text, got, want)
		}
	}
}
