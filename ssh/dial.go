// Package ssh brings another machine as a site, over the system's ssh.
//
// The data path: 1. Parse reads ssh://user@machine:port; 2. Dial runs ssh once. A fixed script there
// looks for this program by its hash, takes a copy if there is none, and becomes `tare internal
// site`, which is remote.Serve; 3. remote.Machine asks it for trials.
//
// Nothing of a command line is in what the other machine's shell reads: questions go through
// standard input. docs/design/0030-another-machine.md says why.
package ssh

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"tare/site"
	"tare/site/remote"
)

// Setup is what Dial needs beside an address.
type Setup struct {
	Takes remote.Takes
	Say   func(string) // tells the user
	Heard func(string) // tells the user what ssh or the machine said: any characters
}

// script runs on the machine: it finds or takes this program, and becomes it. The user's shell
// there, whichever it is, reads it as one word: it has no quote, newline, backslash or !. It
// prints a line that begins with mark when it knows whether it needs a copy, and one when it is
// about to begin. The copy comes compressed, after its size on a line.
const script = `umask 022; d=/var/cache/tare; [ "$(id -u)" = 0 ] || { umask 077; d="${XDG_CACHE_HOME:-$HOME/.cache}/tare"; }; ` +
	`mkdir -p "$d"; umask 077; d="$d/ssh"; mkdir -p "$d" && chmod 700 "$d" || exit 73; f="$d/tare-HASH"; ` +
	`is() { [ "$(sha256sum <"$1" | cut -c1-64)" = HASH ]; }; ` +
	`if [ -f "$f" ] && is "$f"; then echo "MARK has $(uname -s) $(uname -m)"; else echo "MARK needs $(uname -s) $(uname -m)"; ` +
	`read -r n || exit 1; t="$f.$$"; head -c "$n" | gzip -dc >"$t"; ` +
	`if is "$t" && chmod 700 "$t" && mv "$t" "$f"; then :; else rm -f "$t"; echo "the copy of tare did not arrive as it was sent" >&2; exit 74; fi; fi; ` +
	`cd; echo "MARK begins"; exec "$f" internal site`

// Dial connects to a machine and has this program serve there. ctx bounds Dial alone. ssh asks
// for passwords at the terminal itself.
func Dial(ctx context.Context, at Address, s Setup) (*remote.Machine, error) {
	self, hash, err := own()
	if err != nil {
		return nil, err
	}
	defer func() { _ = self.Close() }()
	if _, err := exec.LookPath("ssh"); err != nil {
		return nil, &site.UnableError{Err: errors.New("cannot find ssh on this machine; install OpenSSH's client (openssh-client)")}
	}
	heard := remote.Bounded(s.Heard)
	p, err := start(at, hash, heard)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, p.Kill)
	in := bufio.NewReader(p)
	err = p.begin(in, at, hash, self, s.Say)
	if !stop() || ctx.Err() != nil {
		p.Kill()
		return nil, site.ErrInterrupted
	}
	if err != nil {
		p.Kill()
		return nil, &site.UnableError{Err: err}
	}
	return remote.Connect(in, p.in, p, remote.Setup{
		Name: at.String(), Takes: s.Takes, Heard: heard,
		About: site.About{
			Flag:    "--host " + at.URL(),
			Cannot:  at.String() + " cannot run",
			Nothing: at.String() + " can run no cell of the study; the reasons are above, and `tare doctor` there checks the host",
		},
	})
}

// own opens this program's file, and says its SHA-256 in hexadecimal digits.
func own() (*os.File, string, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, "", fmt.Errorf("cannot read tare's own binary: %w", err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		_ = f.Close()
		return nil, "", fmt.Errorf("cannot read tare's own binary: %w", err)
	}
	return f, hex.EncodeToString(h.Sum(nil)), nil
}

func mark(hash string) string { return "tare-" + hash[:16] }

// begin goes through the script's part, up to its end.
func (p *process) begin(in *bufio.Reader, at Address, hash string, self io.Reader, say func(string)) error {
	words, err := marked(in, mark(hash))
	if err != nil {
		return fmt.Errorf("cannot reach %s: %w; does `%s true` work?", at, p.Why(err), at.command())
	}
	if len(words) != 3 {
		return fmt.Errorf("%s says %.300q of itself, and not its system and processor", at, words)
	}
	if err := fits(at, words[1], words[2]); err != nil {
		return err
	}
	if words[0] != "has" {
		if err := p.carry(at, self, say); err != nil {
			return err
		}
	}
	if _, err := marked(in, mark(hash)); err != nil {
		return fmt.Errorf("cannot start tare on %s: %w", at, p.Why(err))
	}
	return nil
}

// machine is uname's word for one of Go's architectures.
func machine(arch string) string {
	switch arch {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	case "386":
		return "i686"
	}
	return arch
}

// fits says whether this program runs there.
func fits(at Address, system, processor string) error {
	if system != "Linux" {
		return fmt.Errorf("%s runs %.100s, and tare needs Linux", at, system)
	}
	if processor == machine(runtime.GOARCH) {
		return nil
	}
	for _, arch := range []string{"amd64", "arm64", "386", "riscv64", "ppc64le", "s390x"} {
		if processor == machine(arch) {
			return fmt.Errorf("%s is %s, and this tare is for %s; build one for it with `GOARCH=%s make build`, copy it there, and run it there", at, processor, machine(runtime.GOARCH), arch)
		}
	}
	return fmt.Errorf("%s is %.100s, and this tare is for %s; build tare there, and run it there", at, processor, machine(runtime.GOARCH))
}

// carry sends this program.
func (p *process) carry(at Address, self io.Reader, say func(string)) error {
	var b strings.Builder
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if f, ok := self.(io.Seeker); ok {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	if _, err := io.Copy(z, self); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	say(fmt.Sprintf("copying tare to %s, %d MiB; it stays there for the next time", at, b.Len()>>20))
	if _, err := fmt.Fprintf(p.in, "%d\n%s", b.Len(), b.String()); err != nil {
		return fmt.Errorf("cannot copy tare to %s: %w", at, p.Why(err))
	}
	return nil
}

// maxNoise is what a machine may print before the script does, in bytes: a profile's greeting.
const maxNoise = 64 << 10

// marked reads up to a line that begins with mark, and returns its other words.
func marked(in *bufio.Reader, mark string) ([]string, error) {
	line, n := []byte(nil), 0
	for n < maxNoise {
		part, err := in.ReadSlice('\n')
		n += len(part)
		line = append(line, part...)
		switch {
		case err == nil:
			if words := strings.Fields(string(line)); len(words) > 1 && words[0] == mark {
				return words[1:], nil
			}
			line = line[:0]
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
	return nil, fmt.Errorf("it printed %d bytes before tare's first line; make its login shell print less", n)
}
