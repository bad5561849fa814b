//go:build !guestinit

package boot

// carried is nil: this program was built without the guest's, as `go build` and `go test`
// do, and is its own guest's first program, slower to boot and never out of step.
func carried() []byte { return nil }
