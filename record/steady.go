package record

// Samples on the steady state within a trial, with the label response=NAME, for each
// response that has a series, and codes of warnings. They judge a trial and never count
// towards n.
const (
	LabelResponse    = "response"
	LabelTurn        = "turn"              // of a response's value in one of a trial's turns, from 1
	SteadyPoints     = "steady_points"     // points of the series in the measured time; always present
	EffectiveSamples = "effective_samples" // independent values that they are worth; missing if too short to decide
	SteadyFrom       = "steady_from"       // s into the measured time, where the steady part begins; missing if there is none
	SteadyChange     = "steady_change"     // level of the steady part divided by that of all; missing if there is none

	NoSteadyState  = "no-steady-state"
	WarmUpMeasured = "warm-up-measured"
)
