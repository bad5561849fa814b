package store

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain is the child of the crash test too: it appends until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TARE_TEST_APPEND"); dir != "" {
		if err := appendForEver(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// appendForEver goes on where the folder ends and prints the number of each
// trial once Append has returned.
func appendForEver(dir string) error {
	var s *Store
	var err error
	if Exists(dir) {
		s, err = Open(dir)
	} else {
		s, err = Create(dir, testMeta())
	}
	if err != nil {
		return err
	}
	all, err := s.Trials()
	if err != nil {
		return err
	}
	for i := len(all) + 1; ; i++ {
		tr, ev := testTrial(i)
		if err := s.Append(context.Background(), tr, ev); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

// TestKill kills the writer at random moments of its life, its opening
// included. Every trial whose Append returned must be there, whole.
func TestKill(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 8
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "results")
	promised := 0
	life := 120 * time.Millisecond // of a child at most; longer where the first ones store nothing
	for k := range kills {
		if promised == 0 && k > 0 {
			life = min(2*life, 10*time.Second)
		}
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), "TARE_TEST_APPEND="+dir)
		var stderr bytes.Buffer
		c.Stderr = &stderr
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Duration(rng.Int64N(int64(life))), func() { _ = c.Process.Kill() })
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			n, err := strconv.Atoi(lines.Text())
			if err != nil || n != promised+1 {
				// One trial more may be stored than was printed.
				if n != promised+2 {
					t.Fatalf("kill %d: the child printed %q after %d", k, lines.Text(), promised)
				}
			}
			promised = n
		}
		_ = c.Wait()
		if stderr.Len() > 0 {
			t.Fatalf("kill %d: %s", k, stderr.Bytes())
		}
		if !Exists(dir) {
			continue // killed before the end of Create
		}
		s, err := Open(dir)
		if err != nil {
			t.Fatalf("kill %d: %v", k, err)
		}
		var verdict string
		if err := s.db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
			t.Fatalf("kill %d: integrity: %s, %v", k, verdict, err)
		}
		all, err := s.Trials()
		if err != nil {
			t.Fatal(err)
		}
		if len(all) < promised || len(all) > promised+1 {
			t.Fatalf("kill %d: %d trials are stored, %d were promised", k, len(all), promised)
		}
		promised = len(all)
		if k%10 == 9 || k == kills-1 {
			checkTrials(t, s, len(all))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if promised == 0 {
		t.Fatal("no child stored anything: the test shows nothing")
	}
	t.Logf("%d trials over %d kills", promised, kills)
}

// TestDiskFull fills a small file system with trials, frees some of it, and
// goes on with the same Store.
func TestDiskFull(t *testing.T) {
	if dir := os.Getenv("TARE_TEST_FULL"); dir != "" {
		for _, size := range []int{600, 660, 740, 1000, 1600} {
			t.Run(fmt.Sprint(size, "KiB"), func(t *testing.T) { fillDisk(t, filepath.Join(dir, strconv.Itoa(size)), size<<10) })
		}
		return
	}
	out, err := reexec(t, "TestDiskFull", "TARE_TEST_FULL="+t.TempDir()).CombinedOutput()
	if err != nil && out == nil {
		t.Skip("this host lets nobody make a mount namespace:", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	skipWithChild(t, out)
}

func skipWithChild(t *testing.T, out []byte) {
	t.Helper()
	t.Logf("%s", out)
	if i := bytes.Index(out, []byte("--- SKIP")); i >= 0 {
		t.Skip("the child: ", strings.TrimSpace(string(out[:i])))
	}
}

func fillDisk(t *testing.T, dir string, size int) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skip("no tmpfs of our own:", err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 300<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Create(filepath.Join(dir, "results"), testMeta())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	n := 0
	for ; ; n++ {
		tr, ev := testTrial(n + 1)
		if err = s.Append(t.Context(), tr, ev); err != nil {
			break
		}
	}
	if n == 0 {
		t.Fatalf("not one trial fitted: %v", err)
	}
	t.Logf("full after %d trials: %v", n, err)
	checkTrials(t, s, n)
	for range 3 { // still full: still an error, still no harm
		tr, ev := testTrial(n + 1)
		if err := s.Append(t.Context(), tr, ev); err == nil {
			n++ // a checkpoint may have made room
		}
	}
	checkTrials(t, s, n)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	appendN(t, s, n+1, n+2)
	checkTrials(t, s, n+2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(s.Dir()); err != nil {
		t.Fatal(err)
	}
	checkTrials(t, s, n+2)
}
