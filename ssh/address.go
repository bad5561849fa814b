package ssh

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Address is where a machine is. An empty User or Port is ssh's own choice.
type Address struct{ User, Host, Port string }

// What may be in an address: ssh puts its parts into commands of the user's configuration
// (ProxyCommand, Match exec), and takes what begins with - as a flag. A host is a name, an
// address, or a Host of the configuration.
var (
	users = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}$`)
	hosts = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$`)
	zones = regexp.MustCompile(`^[0-9a-f:.]+(%[A-Za-z0-9_.-]{1,15})?$`)
)

// Parse reads ssh://[USER@]HOST[:PORT].
func Parse(text string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "ssh" || u.Host == "" {
		return Address{}, fmt.Errorf("%.300q is not the address of a machine; write ssh://USER@MACHINE or ssh://USER@MACHINE:PORT", text)
	}
	a := Address{User: u.User.Username(), Host: u.Hostname(), Port: u.Port()}
	_, password := u.User.Password()
	port, err := strconv.ParseUint(a.Port, 10, 16)
	switch {
	case password:
		return Address{}, fmt.Errorf("the address has a password, which every user of this machine can see; remove it, and use a key or let ssh ask")
	case u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "", u.ForceQuery:
		return Address{}, fmt.Errorf("%.300q has text after the machine; write only ssh://USER@MACHINE:PORT", text)
	case u.User != nil && !users.MatchString(a.User):
		return Address{}, fmt.Errorf("%.300q is not a user that ssh can be given; write letters, digits, and _.@+-", a.User)
	case !hosts.MatchString(a.Host) && !isIPv6(a.Host):
		return Address{}, fmt.Errorf("%.300q is not the name of a machine; write a name of letters, digits, _ . and -, or an IP address", a.Host)
	case a.Port != "" && (err != nil || port == 0):
		return Address{}, fmt.Errorf("the port %.300q is not between 1 and 65535", a.Port)
	}
	return a, nil
}

func isIPv6(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Is6() && zones.MatchString(host)
}

// String is how messages call the machine.
func (a Address) String() string {
	s := a.Host
	if a.User != "" {
		s = a.User + "@" + s
	}
	return s
}

// URL is the address as Parse reads it.
func (a Address) URL() string {
	u := url.URL{Scheme: "ssh", Host: a.Host}
	if a.User != "" {
		u.User = url.User(a.User)
	}
	if strings.Contains(a.Host, ":") { // in brackets, %25 for %: RFC 6874
		u.Host = "[" + a.Host + "]"
	}
	if a.Port != "" {
		u.Host += ":" + a.Port
	}
	return u.String()
}

// arguments are ssh's, before the command.
func (a Address) arguments() []string {
	// As scp has them: no terminal, nothing forwarded, and no command of the configuration.
	out := []string{"-T", "-x", "-a", "-oClearAllForwardings=yes", "-oPermitLocalCommand=no", "-oRemoteCommand=none"}
	if a.Port != "" {
		out = append(out, "-p", a.Port)
	}
	if a.User != "" {
		out = append(out, "-l", a.User)
	}
	return append(out, "--", a.Host)
}

// command is what a person writes to reach the machine.
func (a Address) command() string {
	if a.Port != "" {
		return "ssh -p " + a.Port + " " + a.String()
	}
	return "ssh " + a.String()
}
