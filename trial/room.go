package trial

import (
	"tare/study"
	"tare/volume"
	"tare/workload"
)

// Room is what the files of a role take. It is freed at the end of the trial.
type Room struct {
	Bytes  int64
	Copies int            // of the root file system, one for each sandbox, in addition to Bytes
	Image  string         // that root file system; "" for the tree with the study's tools
	Volume *volume.Volume // that holds them; nil: no volume does
	Root   bool           // without a volume, the writable root file system holds them; else the sandbox's memory does
	// Options are those of the role's sandbox.
	Options map[string]string
}

// roomNot says why the place has no room for what a trial lays out, "" if it has.
func (c *checker) roomNot(all *parts) string {
	var d Demand
	for _, p := range all.each() {
		for i := range p.roles {
			d.Rooms = append(d.Rooms, roomsOf(&p.roles[i], p.res.Options)...)
			if k := c.maker.Kinds[p.res.Sandbox]; k != nil && k.Traits(p.res.Options).CopiesRoot && study.Isolated(p.res.Isolate, p.roles[i].Name, p.ends()) {
				d.Rooms = append(d.Rooms, Room{Copies: atOnceOf(&p.roles[i]), Image: p.roles[i].Image, Options: p.res.Options})
			}
		}
	}
	if len(d.Rooms) == 0 {
		return ""
	}
	if err := c.maker.Place.Check(d); err != nil {
		return err.Error()
	}
	return ""
}

// roomsOf are a role's. What the user's own device or directory holds is not known.
func roomsOf(r *workload.Role, options map[string]string) (out []Room) {
	for i := range r.Volumes {
		v := &r.Volumes[i]
		switch {
		case v.Medium == volume.Device, v.Medium == volume.Bind:
		case v.Size > 0:
			out = append(out, Room{Bytes: v.Size, Volume: v, Options: options})
		case i == 0 && r.Room > 0:
			out = append(out, Room{Bytes: r.Room, Volume: v, Options: options})
		}
	}
	if len(r.Volumes) == 0 && r.Room > 0 {
		out = append(out, Room{Bytes: r.Room, Root: r.Writable, Options: options})
	}
	return out
}
