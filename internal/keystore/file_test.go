//go:build unix

package keystore_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sluicegate/sluice/internal/keystore"
)

// writerEnv makes the test binary a process that writes to a journal until it is
// killed, printing each key once its write was acknowledged.
const writerEnv = "SLUICE_TEST_KEY_JOURNAL"

// limitEnv makes the test binary a process that may write little.
const limitEnv = "SLUICE_TEST_KEY_JOURNAL_LIMITED"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		writeUntilKilled(path)
	}
	if path := os.Getenv(limitEnv); path != "" {
		if err := writeUntilFull(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writeUntilFull fills a journal up to a limit of the process, which fails as a
// full disk does, and goes on when there is room again.
func writeUntilFull(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = 64 << 10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	f, err := keystore.OpenFile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	ctx := context.Background()
	written := 0
	for ; err == nil; written++ {
		err = f.Put(ctx, fmt.Sprint(written), alias(strings.Repeat("x", 5000)))
	}
	last := fmt.Sprint(written - 1)
	if _, gone := f.Get(ctx, last); !errors.Is(err, keystore.ErrUnavailable) || !errors.Is(gone, keystore.ErrNotFound) || written < 5 {
		return fmt.Errorf("after %d writes: put: %w, get: %w", written, err, gone)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := f.Put(ctx, "later", alias("x")); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	again, err := keystore.OpenFile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if again.Len() != written {
		return fmt.Errorf("%d sessions, want %d", again.Len(), written)
	}
	return again.Close()
}

func TestWriteThatDoesNotFitCostsNoOther(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), limitEnv+"="+filepath.Join(t.TempDir(), "keys"))
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// FuzzJournal holds that no file makes OpenFile panic, and that what it could
// read, it can read again.
func FuzzJournal(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed")
	seed, err := keystore.OpenFile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	put(f, seed, "a", alias("a"))
	put(f, seed, "b", alias("b"))
	if err := errors.Join(seed.Delete(f.Context(), "a"), seed.Close()); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Add(append(bytes.Clone(data), data...))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var there [2]int
		for i := range there {
			f, err := keystore.OpenFile(path, slog.New(slog.DiscardHandler))
			if err != nil {
				return
			}
			there[i] = f.Len()
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if there[0] != there[1] {
			t.Errorf("%d sessions, then %d", there[0], there[1])
		}
	})
}

func writeUntilKilled(path string) {
	f, err := keystore.OpenFile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var out sync.Mutex
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				hash := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				if err := f.Put(context.Background(), hash, alias(hash+strings.Repeat("x", i%3000))); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				out.Lock()
				fmt.Println(hash)
				out.Unlock()
			}
		}()
	}
	select {}
}

func TestAcknowledgedWritesSurviveAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	acknowledged := make(map[string]bool)
	for round := range 5 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), writerEnv+"="+path)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for seen := 0; lines.Scan(); seen++ {
			acknowledged[lines.Text()] = true
			if seen == 100+37*round {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = child.Wait() // killed
		f, err := keystore.OpenFile(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for hash := range acknowledged {
			if got := get(t, f, hash); !strings.HasPrefix(got.Alias, hash) {
				t.Fatalf("%s is %.40s", hash, got.Alias)
			}
		}
		t.Logf("round %d: %d acknowledged, %d there", round, len(acknowledged), f.Len())
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// journal writes keys a to e to a new journal, closes it, and returns its path
// and where each frame ended.
func journal(t *testing.T) (string, []int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	f, err := keystore.OpenFile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64
	for _, hash := range []string{"a", "b", "c", "d", "e"} {
		put(t, f, hash, alias(hash))
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, info.Size())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path, ends
}

func TestTornEndIsCutOffAndToldOf(t *testing.T) {
	whole, ends := journal(t)
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	tails := map[string][]byte{"nothing": nil, "zeros": make([]byte, 4096), "garbage": []byte("SlK1 and something")}
	for cut := ends[3] + 1; cut < ends[4]; cut++ {
		tails[fmt.Sprintf("%d bytes of a frame", cut-ends[3])] = data[ends[3]:cut]
	}
	bad := bytes.Clone(data[ends[3]:])
	bad[len(bad)-2] ^= 1
	tails["a frame with a wrong checksum"] = bad
	for name, tail := range tails {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, append(bytes.Clone(data[:ends[3]]), tail...), 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		f, err := keystore.OpenFile(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		get(t, f, "d")
		lacks(t, f, "e")
		if told := strings.Contains(log.String(), fmt.Sprintf("bytes=%d", len(tail))); told != (len(tail) > 0) {
			t.Errorf("%s: logged %q", name, log.String())
		}
		put(t, f, "f", alias("f"))
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		again, err := keystore.OpenFile(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		get(t, again, "f")
		get(t, again, "a")
		if err := again.Close(); err != nil || log.Len() > 0 {
			t.Errorf("%s: %v; opened again, it logged %q", name, err, log.String())
		}
	}
}

func TestDamageBeforeTheEndIsRefused(t *testing.T) {
	whole, ends := journal(t)
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for at := ends[1]; at < ends[2]; at += 3 {
		damaged := bytes.Clone(data)
		damaged[at] ^= 0x40
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := keystore.OpenFile(path, slog.New(slog.DiscardHandler))
		var corrupt *keystore.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Offset != ends[1] {
			t.Errorf("byte %d: %v", at, err)
		}
		if f != nil {
			f.Close()
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(after, damaged) {
			t.Errorf("byte %d: the journal was changed", at)
		}
	}
}

func TestJournalIsRewrittenWhenMostOfItIsHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	f := openFile(t, path)
	put(t, f, "kept", alias("kept"))
	put(t, f, "deleted", alias("x"))
	if err := f.Delete(t.Context(), "deleted"); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for w := range 16 {
		group.Go(func() {
			for i := range 1000 {
				if err := f.Put(context.Background(), fmt.Sprint(w), alias(fmt.Sprint(i))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if history := 16_000 * len(text(t, alias("999"))); info.Size() > int64(history/2) {
		t.Errorf("the journal has %d bytes", info.Size())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again := openFile(t, path)
	if got := again.Len(); got != 17 {
		t.Errorf("%d sessions, want 17", got)
	}
	for w := range 16 {
		if got := get(t, again, fmt.Sprint(w)); got.Alias != "999" {
			t.Errorf("%d is %s", w, got.Alias)
		}
	}
	if left, _ := filepath.Glob(path + ".new*"); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

func TestJournalBelongsToOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	openFile(t, path)
	if _, err := keystore.OpenFile(path, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "is held by another process") {
		t.Errorf("got %v", err)
	}
}

func TestClosedJournalTakesNothing(t *testing.T) {
	f, err := keystore.OpenFile(filepath.Join(t.TempDir(), "keys"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	isUnavailable(t, "put", f.Put(t.Context(), "h", alias("x")))
}

func TestWriterThatGivesUpIsToldThatNothingIsKnown(t *testing.T) {
	f := openFile(t, filepath.Join(t.TempDir(), "keys"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // the disk may win
		if err := f.Put(ctx, "h", alias("x")); err != nil {
			isUnavailable(t, "put", err)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the cause is not told: %v", err)
			}
			return
		}
	}
	t.Error("never gave up")
}

func TestJournalIsPrivate(t *testing.T) {
	path, _ := journal(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func BenchmarkFilePut(b *testing.B) {
	f, err := keystore.OpenFile(filepath.Join(b.TempDir(), "keys"), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := f.Put(context.Background(), "h", alias("x")); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkMemoryGet(b *testing.B) {
	m := keystore.NewMemory()
	put(b, m, "h", alias("x"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Get(context.Background(), "h"); err != nil {
			b.Fatal(err)
		}
	}
}
