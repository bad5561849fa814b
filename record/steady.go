package record

// What a trial says of the time within it: samples with the label
// response=NAME, for each response that a series follows, and codes of warnings.
// They judge a trial; they are never n.
const (
	LabelResponse    = "response"
	SteadyPoints     = "steady_points"     // points of the series in the measured time; always there
	EffectiveSamples = "effective_samples" // independent values that they are worth; missing when it is too short to tell
	SteadyFrom       = "steady_from"       // s into the measured time, where the steady part begins; missing without one
	SteadyChange     = "steady_change"     // level of the steady part over that of all; missing without one

	NoSteadyState  = "no-steady-state"
	WarmUpMeasured = "warm-up-measured"
)
