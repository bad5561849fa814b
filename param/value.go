package param

// ValueError is an error about the value of one parameter, which is shown where that is
// written.
type ValueError struct {
	Param string
	Err   error // names the parameter
}

// Error is that of Err: the parameter is in it.
func (e *ValueError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ValueError) Unwrap() error { return e.Err }
