//go:build guestinit

package boot

import _ "embed" // the guest's first program

// The program of agent/guest/init, which `make build` puts here first.
//
//go:embed guest-init
var guestInit []byte

// carried is the guest's first program as this one carries it.
func carried() []byte { return guestInit }
