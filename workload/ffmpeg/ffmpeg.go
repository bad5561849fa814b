// Package ffmpeg is the workload media.ffmpeg: a video is decoded and encoded
// again by x264, as gVisor's performance guide does it.
//
// The data path: 1. Roles makes one command for the image ffmpeg, which contains the video
// that its recipe made; 2. package timed measures the whole run of ffmpeg, which prints its
// progress in lines of KEY=VALUE (-progress, "Generic options" of ffmpeg(1)); 3. ffprobe then
// counts the contents of the new file; 4. Parse compares both with what was requested, and
// makes samples of the time.
package ffmpeg

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"tare/param"
	"tare/record"
	"tare/volume"
	"tare/workload"
	"tare/workload/timed"
)

// What images/ffmpeg/image.yaml makes.
const (
	videoFrames = 675
	videoRate   = 25 // frames a second
)

const (
	all  = "all"
	auto = "auto"
	// slack is how far the new file's length may be from the requested one: two packets of
	// sound.
	slack = 0.1 // s
)

// Where the new file goes.
const (
	toMemory = "memory"
	toDisk   = "disk"
	toRoot   = "root"
)

// New returns the workload.
func New() workload.Workload { return ffmpeg{} }

type ffmpeg struct{}

func (ffmpeg) Name() string { return "media.ffmpeg" }

func (ffmpeg) About() string {
	return "ffmpeg transcodes a video of 27 MB with x264: all processors at work, many threads that wait for each other"
}

func (ffmpeg) Params() []param.Param {
	return []param.Param{
		{Name: "frames", Type: param.Int, Default: "150", Min: 25, Max: videoFrames, Words: []string{all},
			Help: "how much of the video is transcoded, from its start; all of it has 675 frames, 27 s of film"},
		{Name: "preset", Type: param.Enum, Default: "medium", Words: []string{"ultrafast", "veryfast", "fast", "medium", "slow", "veryslow"},
			Help: "x264's preset: how hard it tries, and so how long it computes for a frame"},
		{Name: "threads", Type: param.Int, Default: auto, Min: 1, Max: 64, Words: []string{auto},
			Help: "threads of x264; auto lets it choose by the processors that it sees, as the guide does"},
		{Name: "output", Type: param.Enum, Default: toMemory, Words: []string{toMemory, toDisk, toRoot},
			Help: "where the new file goes: memory is the sandbox's own /tmp, disk the bind mount /data, root a writable root file system, as in the guide"},
		{Name: "caches", Type: param.Enum, Default: "warm", Words: []string{"warm", "cold"},
			Help: "cold: the host's page cache is dropped before, as the guide does it, so that ffmpeg and the video are read from the disk"},
	}
}

func (ffmpeg) Responses(param.Values) []record.Response {
	return []record.Response{
		{Name: "time", Unit: record.Second, Better: record.Lower, Operation: "run", Help: "the whole run of ffmpeg, from before its start to after its end"},
		{Name: "frame_rate", Unit: record.PerSecond, Better: record.Higher, Operation: "frame", Help: "frames transcoded in a second of the whole run"},
	}
}

// frames returns how many frames the values request.
func frames(v param.Values) int {
	if v.Str("frames") == all {
		return videoFrames
	}
	return v.Int("frames")
}

func (ffmpeg) Roles(v param.Values) ([]workload.Role, error) {
	r := workload.Role{
		Name: "main", Mode: workload.Exec, Image: "ffmpeg",
		Until:      timed.Until,
		DropCaches: v.Str("caches") == "cold",
		Expect:     expect(v.Str("preset"), frames(v)),
	}
	var out string
	switch v.Str("output") {
	case toDisk:
		out, r.Volumes = "/data/output.mp4", volume.AtData(volume.Disk)
	case toRoot:
		out, r.Writable = "/var/tmp/output.mp4", true
	default:
		out = "/tmp/output.mp4"
	}
	cmd := []string{"ffmpeg", "-hide_banner", "-loglevel", "warning", "-nostdin", "-y",
		"-i", "/video.mp4",
		// The length of the new file, so that sound and picture end together; with -frames:v
		// the sound would go on to the end.
		"-t", seconds(frames(v)),
		"-c:v", "libx264", "-preset", v.Str("preset")}
	if v.Str("threads") != auto {
		cmd = append(cmd, "-threads", v.Str("threads"))
	}
	cmd = append(cmd, "-progress", "pipe:1", "-nostats", out)
	r.Args = timed.Args(cmd, []string{"ffprobe", "-hide_banner", "-loglevel", "error", "-count_packets",
		"-show_entries", "format=size:stream=codec_name,codec_type,nb_read_packets,duration,width,height",
		"-print_format", "json", out})
	return []workload.Role{r}, nil
}

func seconds(frames int) string {
	return strconv.FormatFloat(float64(frames)/videoRate, 'f', -1, 64)
}

// expect returns how long it takes on two processors of 2023, which is exact enough for a plan.
func expect(preset string, frames int) time.Duration {
	perSecond := map[string]float64{"ultrafast": 350, "veryfast": 150, "fast": 90, "medium": 70, "slow": 45, "veryslow": 15}[preset]
	perSecond = cmp.Or(perSecond, 15)
	return time.Duration(float64(frames) / perSecond * float64(time.Second)).Round(100 * time.Millisecond)
}

// progress is the last report of ffmpeg.
type progress struct {
	frame   int64
	outTime float64 // s of film
	size    int64   // bytes written
	ended   bool
}

// parseProgress reads the blocks that -progress writes; each ends with a line
// progress=continue or, once, progress=end. It ignores other keys.
func parseProgress(text []byte) (progress, error) {
	var p progress
	var us int64
	numbers := map[string]*int64{"frame": &p.frame, "out_time_us": &us, "total_size": &p.size}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, "=")
		if key == "progress" {
			p.ended = value == "end"
		}
		into := numbers[key]
		if into == nil || value == "N/A" { // before the first packet
			continue
		}
		var err error
		if *into, err = strconv.ParseInt(value, 10, 64); err != nil {
			return p, fmt.Errorf("ffmpeg: %q is not a number in the progress line %.200q", value, line)
		}
	}
	p.outTime = float64(us) / 1e6
	return p, nil
}

// probed is ffprobe's JSON for the new file, where numbers are strings.
type probed struct {
	Streams []struct {
		Codec    string `json:"codec_name"`
		Type     string `json:"codec_type"`
		Width    int    `json:"width"`
		Height   int    `json:"height"`
		Duration string `json:"duration"`
		Packets  string `json:"nb_read_packets"`
	} `json:"streams"`
	Format struct {
		Size string `json:"size"`
	} `json:"format"`
}

// check returns what is wrong with the new file; "" if it is right.
func (f probed) check(frames int) string {
	size, err := strconv.ParseInt(f.Format.Size, 10, 64)
	if err != nil || size <= 0 {
		return fmt.Sprintf("its size is %q", f.Format.Size)
	}
	video, audio := 0, 0
	for _, s := range f.Streams {
		if d, err := strconv.ParseFloat(s.Duration, 64); err != nil || !(math.Abs(d-float64(frames)/videoRate) <= slack) {
			return fmt.Sprintf("its %s lasts %.20q s, not %s", s.Type, s.Duration, seconds(frames))
		}
		switch {
		case s.Type == "audio":
			audio++
		case s.Type == "video" && (s.Codec != "h264" || s.Width != 640 || s.Height != 360):
			return fmt.Sprintf("its picture is %.20q of %dx%d, not h264 of 640x360", s.Codec, s.Width, s.Height)
		case s.Type == "video" && s.Packets != strconv.Itoa(frames):
			return fmt.Sprintf("it holds %.20q frames, not %d", s.Packets, frames)
		case s.Type == "video":
			video++
		}
	}
	if video != 1 || audio != 1 {
		return fmt.Sprintf("it holds %d videos and %d sounds, not one each", video, audio)
	}
	return ""
}

func (ffmpeg) Parse(_ string, v param.Values, out io.Reader) (record.Reading, error) {
	var rd record.Reading
	said, whole, check, err := timed.Read(out)
	if err != nil {
		return rd, fmt.Errorf("ffmpeg: %w", err)
	}
	p, err := parseProgress(said)
	if err != nil {
		return rd, err
	}
	n := frames(v)
	switch {
	case !p.ended:
		return rd, errors.New("ffmpeg: its progress has no end, so it did not finish the file")
	case p.frame != int64(n):
		return rd, fmt.Errorf("ffmpeg: it transcoded %d frames, not %d", p.frame, n)
	case !(math.Abs(p.outTime-float64(n)/videoRate) <= slack):
		return rd, fmt.Errorf("ffmpeg: its progress says that the new video is %g s long, not %s", p.outTime, seconds(n))
	}
	var f probed
	if err := json.Unmarshal(check, &f); err != nil {
		return rd, fmt.Errorf("ffmpeg: cannot read ffprobe's JSON for the new file: %w", err)
	}
	if bad := f.check(n); bad != "" {
		return rd, errors.New("ffmpeg: the new file is not as requested: " + bad)
	}
	whole.Sample(&rd)
	rd.Samples = append(rd.Samples, record.Sample{Name: "frame_rate", Unit: record.PerSecond, Kind: record.Value, Value: float64(n) / whole.Seconds(), Original: fmt.Sprintf("%d frames in %d ns", n, whole.Elapsed)})
	rd.Value("output_size", record.Byte, float64(p.size), "source", "ffprobe")
	return rd, nil
}
