package ffmpeg

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/images"
	"tare/param"
	"tare/record"
	"tare/workload/timed/timedtest"
	"tare/workload/workloadtest"
)

// The captures are of ffmpeg 5.1.9 (Debian 12) on two cores: natively, and inside
// gVisor (runsc, platform systrap).
func cases() []workloadtest.Case {
	return []workloadtest.Case{
		{Name: "default", Outputs: map[string]string{"main": "testdata/native-150.txt"}},
		{Name: "the guide's", Params: param.Values{"frames": "all", "preset": "veryslow", "output": "root", "caches": "cold"},
			Outputs: map[string]string{"main": "testdata/native-all-veryslow.txt"}},
		{Name: "gVisor", Params: param.Values{"frames": "25", "preset": "ultrafast", "threads": "1"}, Outputs: map[string]string{"main": "testdata/runsc-25.txt"}},
	}
}

func TestContract(t *testing.T) { workloadtest.Run(t, New(), cases()...) }

func FuzzParse(f *testing.F) { workloadtest.Fuzz(f, New(), cases()...) }

func capture(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("testdata/native-150.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTime: the time is the wrapper's, and the rate is the frames over it.
func TestTime(t *testing.T) {
	text := capture(t)
	_, after, _ := strings.Cut(text, `{"timed_ns":`)
	digits, _, _ := strings.Cut(after, ",")
	ns, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New().Parse("main", workloadtest.Fill(t, New(), nil), strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"time": ns / 1e9, "frame_rate": 150 / (ns / 1e9)} {
		i := slices.IndexFunc(r.Samples, func(s record.Sample) bool { return s.Name == name })
		if got := r.Samples[i].Value; got < want*(1-1e-9) || got > want*(1+1e-9) {
			t.Errorf("%s = %g, want %g", name, got, want)
		}
	}
}

// TestRefused: each thing that must hold of the new file is missed when it does not.
func TestRefused(t *testing.T) {
	text := capture(t)
	for _, c := range []struct{ name, old, new, want string }{
		{"more was asked", "", "", "150 frames, not 200"},
		{"no end", "progress=end", "progress=continue", "not finish"},
		{"progress too short", "frame=150\n", "frame=149\n", "149 frames"},
		{"no number", "frame=150\n", "frame=many\n", `"many"`},
		{"too many frames", "frame=150\n", "frame=99999999999\n", "it transcoded"},
		{"film too long", "out_time_us=6016000", "out_time_us=7016000", "7.016 s long"},
		{"cut before the time", `{"timed_ns"`, `{"x"`, "lacks the line with the time"},
		{"no check", "\"streams\"", "", "cannot read ffprobe's JSON"},
		{"frames missing in the file", `"nb_read_packets": "150"`, `"nb_read_packets": "149"`, `"149" frames`},
		{"sound too short", "\"codec_type\": \"audio\",\n            \"duration\": \"6.0", "\"codec_type\": \"audio\",\n            \"duration\": \"5.0", "its audio lasts"},
		{"length unknown", `"duration": "6.000000"`, `"duration": "NaN"`, "lasts"},
		{"another codec", `"h264"`, `"mpeg4"`, "mpeg4"},
		{"another size", `"width": 640`, `"width": 320`, "320x360"},
		{"no picture", `"codec_type": "video"`, `"codec_type": "data"`, "0 videos and 1 sounds"},
		{"no sound", `"codec_type": "audio"`, `"codec_type": "video"`, "aac"},
		{"an empty file", `"size": "2978422"`, `"size": "0"`, "its size"},
	} {
		v := workloadtest.Fill(t, New(), nil)
		if c.old == "" {
			v = workloadtest.Fill(t, New(), param.Values{"frames": "200"})
		} else if !strings.Contains(text, c.old) {
			t.Fatalf("%s: the capture has no %q", c.name, c.old)
		}
		_, err := New().Parse("main", v, strings.NewReader(strings.Replace(text, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
}

// TestCommand: the parameters reach the command and the role.
func TestCommand(t *testing.T) {
	roles, err := New().Roles(workloadtest.Fill(t, New(), param.Values{"frames": "30", "preset": "slow", "threads": "3", "output": "disk"}))
	if err != nil {
		t.Fatal(err)
	}
	r := roles[0]
	line := strings.Join(r.Args, " ")
	for _, want := range []string{"-t 1.2 ", "-preset slow ", "-threads 3 ", " /data/output.mp4 ++ ffprobe "} {
		if !strings.Contains(line, want) {
			t.Errorf("the command has no %q: %s", want, line)
		}
	}
	if r.Image != "ffmpeg" || len(r.Volumes) != 1 || r.Writable || r.DropCaches {
		t.Errorf("role %+v", r)
	}
	for output, want := range map[string][2]bool{"memory": {false, false}, "disk": {true, false}, "root": {false, true}} {
		roles, err := New().Roles(workloadtest.Fill(t, New(), param.Values{"output": output, "caches": "cold"}))
		if err != nil || (len(roles[0].Volumes) == 1) != want[0] || roles[0].Writable != want[1] || !roles[0].DropCaches {
			t.Errorf("output %s: %v, %+v", output, err, roles)
		}
		if strings.Contains(strings.Join(roles[0].Args, " "), "-threads") {
			t.Errorf("threads auto is told to ffmpeg: %v", roles[0].Args)
		}
	}
}

// TestVideo: the recipe makes the video that this package counts on.
func TestVideo(t *testing.T) {
	b, err := fs.ReadFile(images.FS, "ffmpeg/image.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("size=640x360:rate=%d,", videoRate),
		fmt.Sprintf(`-t, "%d", "-c:v", libx264`, videoFrames/videoRate),
		"/video.mp4]",
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("images/ffmpeg/image.yaml has no %q", want)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(timedtest.Main(m.Run)) }

// TestReal transcodes a second of the real video, into each of the places.
func TestReal(t *testing.T) {
	for _, output := range []string{toMemory, toRoot} {
		t.Run(output, func(t *testing.T) {
			timedtest.Run(t, New(), param.Values{"frames": "25", "preset": "ultrafast", "threads": "1", "output": output}, func(t *testing.T, r record.Reading) {
				if got := r.Samples[0]; got.Name != "time" || got.Value <= 0 {
					t.Errorf("the first sample is %+v", got)
				}
			})
		})
	}
}
