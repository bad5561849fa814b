package netload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"time"

	"tare/param"
	"tare/workload/inside"
)

// Main is `tare internal net`: server or client, by the first argument. It returns the exit
// code: 0, 1 for a failed run, 2 for wrong arguments. The report goes to stdout, errors go to
// stderr.
func Main(args []string, stdout, stderr io.Writer) int {
	// The collector would wait for threads that are blocked in RawSyscalls.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return inside.Main("net", args, stdout, stderr, run)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	end, args := inside.Verb(args)
	switch end {
	case "server":
		err = runServer(ctx, args, stdout, stderr)
	case "client":
		err = runClient(ctx, args, stdout, stderr)
	default:
		err = fmt.Errorf("%w: write server or client first", inside.ErrUsage)
	}
	if err != nil && !errors.Is(err, inside.ErrUsage) {
		err = fmt.Errorf("%s: %w", end, err)
	}
	return err
}

// ready is how the server's first line begins.
const ready = "tare net: listening"

func runServer(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := inside.Flags("tare internal net server", stderr)
	host := fs.String("host", "", "address to listen on; empty: all")
	port := fs.Int("port", defaultPort, "TCP port; 0: any")
	maxN := fs.Int("max-connections", maxConnections, "largest number of connections allowed")
	if err := inside.Parse(fs, args); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(*host, fmt.Sprint(*port)))
	if err != nil {
		return fmt.Errorf("listening on port %d: %w", *port, err)
	}
	if _, err := fmt.Fprintf(stdout, "%s on %s\n", ready, ln.Addr()); err != nil {
		return fmt.Errorf("printing the ready line: %w", err)
	}
	s := &server{ln: ln.(*net.TCPListener), maxN: *maxN, stderr: stderr}
	r, err := s.serve(ctx)
	if err != nil {
		return err
	}
	if r == nil {
		return errors.New("no client finished a session")
	}
	return inside.Print(stdout, r)
}

func runClient(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := inside.Flags("tare internal net client", stderr)
	cfg := config{Version: protocolVersion}
	host := fs.String("server", "", "address of the server")
	port := fs.Int("port", defaultPort, "TCP port of the server")
	fs.StringVar(&cfg.Mode, "mode", "rr", "stream or rr")
	file := fs.String("profile", "", "run the uperf profile in this `file`; the other load flags mean nothing then")
	fs.StringVar(&cfg.Profile, "profile-text", "", "the profile itself, instead of a file")
	fs.StringVar(&cfg.Vars, "vars", "", "values of the profile's variables: `\"nthr=4 size=8k\"`")
	fs.StringVar(&cfg.Protocol, "protocol", "tcp", "tcp or udp")
	fs.StringVar(&cfg.Direction, "direction", "upload", "of a stream: upload or download")
	fs.IntVar(&cfg.Size, "size", 1, "message `bytes`")
	fs.IntVar(&cfg.Reply, "reply", 0, "reply `bytes`; 0: as size")
	fs.IntVar(&cfg.Connections, "connections", 1, "connections, each with a thread at both ends")
	fs.IntVar(&cfg.Neighbours, "neighbours", 0, "addresses of the server that requests go to, UDP; 0: its one")
	addresses := fs.String("addresses", "", "the `range` that has the neighbours' addresses, such as 198.18.128.0/22")
	fs.Float64Var(&cfg.Rate, "rate", 0, "operations a second over all connections; 0: closed loop")
	fs.Int64Var(&cfg.Count, "count", 0, "operations over all connections; 0: by duration")
	fs.BoolVar(&cfg.NoDelay, "nodelay", true, "set TCP_NODELAY")
	spin := fs.Duration("spin", 50*time.Microsecond, "open loop: the end of each wait that looks at the clock")
	warmup := fs.Duration("warmup", time.Second, "load before measuring")
	duration := fs.Duration("duration", 2*time.Second, "time to measure")
	timeout := fs.Duration("timeout", 5*time.Second, "give up when nothing moves for so long")
	if err := inside.Parse(fs, args); err != nil {
		return err
	}
	cfg.Warmup, cfg.Duration, cfg.Timeout = warmup.Seconds(), duration.Seconds(), timeout.Seconds()
	cfg.Spin = spin.Seconds()
	if *host == "" {
		return fmt.Errorf("%w: --server is missing", inside.ErrUsage)
	}
	if err := cfg.readProfile(*file); err != nil {
		return fmt.Errorf("%w: %w", inside.ErrUsage, err)
	}
	if err := cfg.check(); err != nil {
		return fmt.Errorf("%w: %w", inside.ErrUsage, err)
	}
	if err := cfg.readAddresses(*addresses); err != nil {
		return fmt.Errorf("%w: %w", inside.ErrUsage, err)
	}
	r, err := client(ctx, cfg, *host, *port)
	if err != nil {
		return err
	}
	return inside.Print(stdout, r)
}

// readProfile reads and checks the profile, if the session has one.
func (c *config) readProfile(file string) error {
	if file != "" {
		f, err := os.Open(file) //nolint:gosec // the user names the file
		if err != nil {
			return fmt.Errorf("the profile: %w", err)
		}
		defer func() { _ = f.Close() }()
		b, err := io.ReadAll(io.LimitReader(f, maxProfileText+1))
		if err != nil {
			return fmt.Errorf("the profile: %w", err)
		}
		c.Profile = string(b)
	}
	if c.Profile == "" && file == "" {
		return nil
	}
	c.Mode = modeProfile
	_, err := newProgram(c.Profile, c.Vars)
	var fe *param.FileError
	if errors.As(err, &fe) && file != "" {
		return fmt.Errorf("%s:%d:%d: %s; %s", file, fe.Line, fe.Column, fe.What, fe.Instead)
	}
	return err
}
