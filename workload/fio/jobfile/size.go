package jobfile

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// number is a number of fio with its unit: kb_base is 1024, as in tare's own text. A percentage is of what is there, and z
// counts zones. fio reads a text such as 1.5g or 4x as another number than it says, without a word.
var number = regexp.MustCompile(`^(0x[0-9a-f]+|[0-9]+(?:e[0-9]+)?)([kmgtp]?)(?:i?b)?([%z]?)$`)

// sizes are options whose values are sizes, and counts those whose values are plain numbers; how values stand side by side is
// in separators.
const (
	sizes  = " size io_size io_limit filesize offset fileoffset offset_increment offset_align bs blocksize ba blockalign bsrange blocksize_range zonesize "
	counts = " iodepth nrfiles nr_files loops rwmixread rwmixwrite fsync fdatasync openfiles number_ios thinktime_blocks "
	// positive are those of both that fio refuses as 0. size=0 is for the whole section to judge: sized.
	positive = " filesize bs blocksize ba blockalign iodepth "
)

// badNumber returns what is wrong with the value of a size or a count, and what to write.
func badNumber(o Option) (what, write string) {
	of, like := "size", "4k, 64m or 1g"
	if strings.Contains(counts, " "+o.Name+" ") {
		of, like = "number", "4"
	} else if !strings.Contains(sizes, " "+o.Name+" ") {
		return "", ""
	}
	for part := range strings.FieldsFuncSeq(o.Value, separators) {
		if !number.MatchString(strings.ToLower(strings.TrimSpace(part))) {
			return fmt.Sprintf("%s=%s: %q is not a %s that fio reads", o.Name, o.Value, part, of), "write one such as " + like
		}
	}
	if strings.Contains(positive, " "+o.Name+" ") && slices.ContainsFunc(strings.Split(o.Value, ","), zero) {
		return fmt.Sprintf("%s=%s: fio refuses 0", o.Name, o.Value), "write one such as " + like
	}
	if strings.Trim(o.Value, ",-:/ ") == "" {
		return fmt.Sprintf("%s has no value", o.Name), "write one such as " + like
	}
	return "", ""
}

// zero reports whether a number is 0, whatever its unit.
func zero(text string) bool {
	m := number.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if m == nil {
		return false
	}
	digits, _, _ := strings.Cut(m[1], "e")
	if hex, is := strings.CutPrefix(m[1], "0x"); is {
		digits = hex
	}
	return strings.Trim(digits, "0") == ""
}

// sized returns why fio cannot tell how large the files of a section are; nil if it can.
func (s *Section) sized() error {
	const write = "write size=${SIZE}, or a size such as size=64m"
	var none *Option
	for _, names := range [][]string{{"size"}, {"filesize"}, {"io_size", "io_limit"}} {
		switch o, ok := s.Get(names...); {
		case !ok:
		case !zero(o.Value):
			return nil
		case none == nil:
			none = &o
		}
	}
	if none == nil {
		return &Error{s.Line, 1, fmt.Sprintf("section %s has no size, so fio does not know how large its files are", s.Name), write}
	}
	return &Error{none.Line, none.At, fmt.Sprintf("%s=%s: the files of section %s have no bytes, and fio refuses them", none.Name, none.Value, s.Name), write}
}

// separators stand between the values of directions (,) and the ends of a range (-, : or /).
func separators(r rune) bool { return strings.ContainsRune(",-:/", r) }

// most is the largest size in a value, in bytes; 0 if there is none, or only fio can tell.
func most(o Option) (out int64) {
	for part := range strings.FieldsFuncSeq(o.Value, separators) {
		m := number.FindStringSubmatch(strings.ToLower(strings.TrimSpace(part)))
		if m == nil || m[3] != "" {
			continue
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if hex, is := strings.CutPrefix(m[1], "0x"); is {
			var u uint64
			u, err = strconv.ParseUint(hex, 16, 64)
			n = float64(u)
		}
		if err == nil || math.IsInf(n, 1) {
			out = max(out, int64(min(n*math.Exp2(float64(10*(strings.Index("kmgtp", m[2])+1)*len(m[2]))), maxBytes)))
		}
	}
	return out
}

// maxBytes is larger than any disk. A sum of what all jobs of a file have is still an int64.
const maxBytes = 1 << 50

// span returns how many bytes a job of the section uses: of all its files, and of each from its start up to where the last job
// ends. size is that of a section without the option size; 0: io_size takes its place.
func (s *Section) span(files, size int64) (all, each int64) {
	get := func(names ...string) int64 { o, _ := s.Get(names...); return most(o) }
	all = get("size")
	switch _, said := s.Get("size"); {
	case size == 0 && all == 0:
		all = get("io_size", "io_limit")
	case !said:
		all = size
	}
	if one := get("filesize"); one > 0 {
		all = min(one, maxBytes/min(files, maxBytes)) * files
	}
	from := get("offset", "fileoffset")
	return all + from, (all+files-1)/files + from + get("offset_increment")*int64(s.Jobs()-1)
}

// Bytes returns how large the files of all jobs are together, as far as the text says it. Jobs that name a file share it.
func (f *File) Bytes() (out int64) {
	named := map[string]int64{}
	for i := range f.Sections {
		s := &f.Sections[i]
		if o, given := s.Get("filename"); given {
			names := strings.Split(o.Value, ":")
			_, each := s.span(int64(len(names)), 0)
			for _, name := range names {
				named[name] = max(named[name], each)
			}
			continue
		}
		o, _ := s.Get("nrfiles", "nr_files")
		files := max(most(o), 1)
		all, each := s.span(files, 0)
		format, _ := s.Get("filename_format")
		switch all = min(all, maxBytes); {
		case format.Value == "" || strings.Contains(format.Value, "$jobnum"):
			out += all * int64(s.Jobs())
			continue
		case files == 1:
			all = min(each, maxBytes)
		}
		// The jobs of the section share its files, and without its name in them other sections do, too.
		name := format.Value
		if strings.Contains(name, "$jobname") {
			name += "\n" + s.Name
		}
		named["\n"+name] = max(named["\n"+name], all)
	}
	for _, n := range named {
		out = min(out+min(n, maxBytes), MaxJobs*maxBytes) // a list of thousands of names would not fit an int64
	}
	return out
}

// Reach returns how many bytes of a device the jobs need from its start, as far as the text says it; 0: it does not. all is the
// number of devices that a section without filename uses, and size that of a section without size.
func (f *File) Reach(device string, all int, size int64) (out int64) {
	for i := range f.Sections {
		s, files := &f.Sections[i], all
		if o, given := s.Get("filename"); given {
			names := strings.Split(o.Value, ":")
			if files = len(names); !slices.Contains(names, device) {
				continue
			}
		}
		_, each := s.span(int64(files), size)
		out = max(out, min(each, maxBytes))
	}
	return out
}
