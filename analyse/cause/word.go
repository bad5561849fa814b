package cause

import "strings"

// Word is a cause in a word or two, as reports show it.
func (k Name) Word() string {
	switch k {
	case Guest:
		return "guest CPU"
	case GuestOne:
		return "one CPU"
	case Emulation:
		return "emulated CPU"
	case Host:
		return "host CPU"
	case Steal:
		return "hypervisor"
	case SoftIRQ:
		return "host interrupts"
	case Other:
		return "something else"
	case Device:
		return "disk"
	case IOLimit:
		return "disk limit"
	case Depth:
		return "queue depth"
	case Fsync:
		return "fsync"
	case PageCache:
		return "page cache"
	case Gofer:
		return "gofer"
	case Path:
		return "fixed delay"
	case Saturation:
		return "queues"
	case Interception:
		return "system calls"
	case Connections:
		return "connections"
	case Behind:
		return "waiting"
	case Untold:
		return "unclear"
	}
	return string(k) // or whatever a newer version calls it
}

// oneOf writes several causes as alternatives.
func oneOf(list []Name) string {
	words := make([]string, len(list))
	for i, k := range list {
		words[i] = k.Word()
	}
	last := max(0, len(words)-1)
	if last == 0 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
