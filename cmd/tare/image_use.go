package main

import "errors"

// examineImages adds a finding for each image: whether it is built, or why this
// host cannot build it.
func (a *app) examineImages(add func(area, name, detail string, err error)) error {
	b, err := a.builder(imageFlags{})
	if err != nil {
		return err
	}
	lines, err := listImages(b)
	if err != nil {
		return err
	}
	for _, l := range lines {
		detail := l.About + "; not built yet"
		if l.Built {
			detail = l.About + "; built"
		}
		var problem error
		if l.Problem != "" {
			problem = errors.New(l.Problem)
		}
		add("image", l.Name, detail, problem)
	}
	return nil
}
