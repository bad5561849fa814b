package trial

import "maps"

// applySettings puts the cell's settings of the machine's kernel in force. Sandboxes that take turns may have different ones,
// so it is called before each turn, and also for a cell that has none.
func (t *trial) applySettings() error {
	s, ok := t.maker.Place.(Setter)
	if !ok {
		return nil
	}
	facts, err := s.Set(t.res.Settings)
	maps.Copy(t.rec.Facts, facts)
	return err //nolint:wrapcheck // the place names the setting
}
