package analyse

// Outcome is what a comparison came to, before its verdict. Every report asks it,
// so that all say the same of a cell.
type Outcome string

// Outcomes, in the order in which they are asked for: what made measuring
// impossible comes before what came of it.
const (
	Skipped    Outcome = "skipped"     // this host cannot run the cell
	GivenUp    Outcome = "given up"    // it failed again and again, and has no value
	BelowNoise Outcome = "below noise" // at least one value is: no ratio, though there may be a level
	Failed     Outcome = "failed"      // every trial did
	NoValue    Outcome = "no value"
	Baseline   Outcome = "baseline" // a level, to which the others are compared
	NoRatio    Outcome = "no ratio" // a level alone
	HasRatio   Outcome = "ratio"    // Verdict says the rest
)

// Outcome returns it.
func (c *Comparison) Outcome() Outcome {
	switch none := c.Level.N == 0; {
	case c.Skipped != "":
		return Skipped
	case none && c.GaveUp != "":
		return GivenUp
	case c.Level.BelowNoise > 0:
		return BelowNoise
	case none && c.Failed > 0:
		return Failed
	case none:
		return NoValue
	case c.Baseline:
		return Baseline
	case c.Base.BelowNoise > 0, c.Estimate.N == 0, c.Estimate.Undefined != "":
		return NoRatio
	}
	return HasRatio
}
