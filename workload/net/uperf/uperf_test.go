package uperf_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/workload/net/uperf"
)

func vars(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// noPlaces leaves out what TestPlaces is for.
var noPlaces = cmpopts.IgnoreFields(uperf.Flowop{}, "Column", "Options")

// TestPlaces: an option's value is found again, over lines too; what is not written stands
// where the flowop does.
func TestPlaces(t *testing.T) {
	p, err := uperf.Parse(strings.NewReader(wrap("  <flowop type=write options=\"size=4k\n conn=2\"/>")), vars(nil))
	if err != nil {
		t.Fatal(err)
	}
	f := p.Groups[0].Transactions[0].Flowops[0]
	for option, want := range map[string]uperf.Place{"size": {2, 36}, "conn": {3, 7}, "port": {2, 3}} {
		if got := f.Place(option); got != want {
			t.Errorf("%s: %v, want %v", option, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	f, err := os.Open("testdata/stream.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := uperf.Parse(f, vars(map[string]string{"nthr": "4", "h": "Peer"}))
	if err != nil {
		t.Fatal(err)
	}
	want := uperf.Profile{Name: "tcp_stream", Groups: []uperf.Group{{Strands: 4, Transactions: []uperf.Transaction{
		{Iterations: 1, Flowops: []uperf.Flowop{
			{Op: uperf.Connect, Count: 1, RemoteHost: "peer", Protocol: uperf.TCP, Window: 50 << 10, NoDelay: true, Line: 6}}},
		{Duration: 30 * time.Second, Flowops: []uperf.Flowop{
			{Op: uperf.Write, Count: 16, Size: uperf.Size{Min: 8 << 10, Max: 8 << 10}, Line: 9},
			{Op: uperf.Think, Count: 1, Duration: time.Millisecond, Busy: true, Line: 10},
			{Op: uperf.Read, Count: 1, Size: uperf.Size{Min: 1, Max: 4 << 10}, CanFail: true, Line: 11}}},
		{Iterations: 1, Flowops: []uperf.Flowop{{Op: uperf.Disconnect, Count: 1, Line: 14}}},
	}}}}
	if d := cmp.Diff(want, got, noPlaces); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// wrap puts one flowop into the smallest profile; it begins at line 2.
func wrap(flowop string) string {
	return "<profile><group><transaction>\n" + flowop + "</transaction></group></profile>"
}

func TestOptions(t *testing.T) {
	for text, want := range map[string]uperf.Flowop{
		`<flowop type=send options="size=1.5K conn=2 port=9 timeout=20"/>`: {Op: uperf.Send, Size: uperf.Size{Min: 1536, Max: 1536}, Conn: 2, Port: 9, Timeout: 20 * time.Millisecond},
		`<flowop type="recv" options="rsize=8k size=64"/>`:                 {Op: uperf.Recv, Size: uperf.Size{Min: 64, Max: 64}, PeerSize: 8 << 10},
		`<flowop type=think options="duration=500u busy idle"/>`:           {Op: uperf.Think, Duration: 500 * time.Microsecond},
		`<flowop type=accept options="protocol=UDP remotehost=$H"/>`:       {Op: uperf.Accept, Protocol: uperf.UDP, RemoteHost: "10.0.0.1"},
		`<flowop type=nop options="count=3"/>`:                             {Op: uperf.Nop, Count: 3},
	} {
		want.Line, want.Count = 2, max(want.Count, 1)
		p, err := uperf.Parse(strings.NewReader(wrap(text)), vars(map[string]string{"h": "10.0.0.1"}))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d := cmp.Diff(want, p.Groups[0].Transactions[0].Flowops[0], noPlaces); d != "" {
			t.Errorf("%s: (-want +got)\n%s", text, d)
		}
	}
}

// TestRefused: each mistake is told with its place and what to write.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                                  "1:1: a profile begins",
		"<profile>":                                                         "1:1: <profile> is not ended",
		"<profile></profile>":                                               "1:1: the profile has no group",
		"<profile><group/></profile>":                                       "1:10: the group has no transaction",
		"<profile>\n  words</profile>":                                      "2:3: text between tags",
		"<profile><!-- x</profile>":                                         "1:10: the comment is not ended",
		"<profile name='x'>":                                                "1:15: a value stands in double quotes",
		"<profile><group size=3></group>":                                   `1:17: <group> has no attribute "size"`,
		"<profile><group nprocs=0></group>":                                 `1:24: nprocs="0" is not a whole number from 1 to 1024`,
		"<profile><group nthreads=1025></group>":                            `1:26: nthreads="1025" is not a whole number from 1 to 1024`,
		wrap(`<flowop type=sendfile/>`):                                     `2:14: the flowop "sendfile" is not supported`,
		wrap(`<flowop type=sendto/>`):                                       `2:14: "sendto" is in uperf's manual`,
		wrap(`<flowop type=jump/>`):                                         `2:14: there is no flowop "jump"; known are connect,`,
		wrap(`<flowop options="size=1"/>`):                                  "2:1: the flowop has no type",
		wrap(`<flowop type=nop></flowop>`):                                  "2:1: a flowop ends with />",
		wrap(`<flowop type=write/>`):                                        "2:1: write needs size",
		wrap(`<flowop type=connect/>`):                                      "2:1: connect needs remotehost",
		wrap(`<flowop type=think/>`):                                        "2:1: think needs duration",
		wrap(`<flowop type=write options="size=4k tcp_delay"/>`):            `2:37: there is no option "tcp_delay"`,
		wrap(`<flowop type=write options="size=4k rate=3"/>`):               "2:37: rate is an attribute of the transaction",
		wrap(`<flowop type=write options="size=4q"/>`):                      `2:34: size="4q" is not a size`,
		wrap(`<flowop type=write options="size=0"/>`):                       "not a size from 1 byte",
		wrap(`<flowop type=write options="size=rand(9,1)"/>`):               "the least is over the most",
		wrap(`<flowop type=write options="size=rand(9"/>`):                  "rand(MIN,MAX)",
		wrap(`<flowop type=write options="size=$none"/>`):                   "2:34: the variable $none has no value",
		wrap(`<flowop type=write options="size=${h}"/>`):                    "without braces",
		wrap(`<flowop type=write options="size=4k engine=qat"/>`):           "is not supported; remove it",
		wrap(`<flowop type=connect options="remotehost=a protocol=sctp"/>`): "write tcp or udp",
		"<profile><group><transaction rate=5>":                              "1:30: a rate needs a duration",
		"<profile><group><transaction duration=1h>":                         `duration="1h" is not a time`,
		wrap(`<flowop type=nop/>`) + "<profile>":                            "2:51: the profile has ended",
	} {
		_, err := uperf.Parse(strings.NewReader(text), vars(map[string]string{"h": "4"}))
		var e *uperf.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestIgnored(t *testing.T) {
	p, err := uperf.Parse(strings.NewReader(wrap(`<flowop type=write options="size=1 duration=3s"/>`)), vars(nil))
	if err != nil || len(p.Ignored) != 1 || !strings.HasPrefix(p.Ignored[0], "2:1: duration and busy have no effect on write") {
		t.Errorf("%v, %q", err, p.Ignored)
	}
}

func TestPeer(t *testing.T) {
	for _, o := range []uperf.Op{uperf.Connect, uperf.Accept, uperf.Read, uperf.Write, uperf.Send, uperf.Recv, uperf.Disconnect, uperf.Think, uperf.Nop} {
		if got := o.Peer().Peer(); got != o {
			t.Errorf("the peer's peer of %s is %s", o, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	b, err := os.ReadFile("testdata/stream.xml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add(wrap(`<flowop type=write options="size=rand(1, 4k) count=$n canfail"/>`))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := uperf.Parse(strings.NewReader(text), vars(map[string]string{"n": "2", "h": "a", "nthr": "1"}))
		if err != nil {
			var e *uperf.Error
			if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 || e.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, g := range p.Groups {
			for _, x := range g.Transactions {
				if g.Strands < 1 || (x.Iterations == 0) == (x.Duration == 0) {
					t.Fatalf("%+v", g)
				}
				for _, o := range x.Flowops {
					if o.Count < 1 || o.Size.Min > o.Size.Max || o.Size.Min < 0 {
						t.Fatalf("%+v", o)
					}
				}
			}
		}
	})
}
