package counter_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
)

const childDir = "SLUICE_COUNTER_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		countUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// records is a log to look at while it is written.
type records struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *records) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(b)
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

// saved is a memory with a saver that runs until stop.
type saved struct {
	subject
	log  *records
	stop func() error
}

func openSaved(t testing.TB, dir string, every time.Duration, clock func() time.Time) saved {
	t.Helper()
	m, log := counter.NewMemory(clock), &records{}
	s, err := counter.OpenSaver(m, counter.SaverOptions{Dir: dir, Every: every, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	return saved{subject{Counter: m}, log, stop}
}

func (s saved) end(t testing.TB) {
	t.Helper()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
}

func TestCleanStopLosesNothing(t *testing.T) {
	dir := t.TempDir()
	first := openSaved(t, dir, time.Hour, nil)
	q, forever, reset := first.quota("q", 10, time.Hour), first.quota("forever", 10, 0), first.quota("reset", 10, time.Hour)
	minute, short := first.rate("minute", 40, time.Minute), first.rate("short", 40, time.Second*59)
	want(t, "admitted", first.admitted(t, 7, q, forever, reset, minute, short), int64(7))
	before := first.peek(t, q, minute)
	if err := first.Reset(t.Context(), reset.Key); err != nil {
		t.Fatal(err)
	}
	first.end(t)
	second := openSaved(t, dir, time.Hour, nil)
	after := second.peek(t, q, minute, forever, reset, short)
	want(t, "quota", after[0], before[0])
	want(t, "rate of a minute", after[1], before[1])
	want(t, "quota that never renews", after[2].Remaining, int64(3))
	want(t, "quota that was reset", after[3].Remaining, int64(10))
	want(t, "rate below a minute", after[4].Remaining, int64(40))
	want(t, "complaints", second.log.String(), "")
}

// What is saved every second: changes only, resets among them.
func TestJournalHoldsWhatChanged(t *testing.T) {
	dir := t.TempDir()
	s := openSaved(t, dir, time.Millisecond, nil)
	q, reset := s.quota("q", 1000, time.Hour), s.quota("reset", 10, time.Hour)
	s.take(t, reset)
	until(t, "the journal holds what is to be reset", 5*time.Second, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("journal-%020d", 1)))
		return err == nil && bytes.Contains(text, []byte(reset.Key))
	})
	want(t, "admitted", s.admitted(t, 7, q), int64(7))
	if err := s.Reset(t.Context(), reset.Key); err != nil {
		t.Fatal(err)
	}
	until(t, "a crash now would lose nothing", 5*time.Second, func() bool {
		copied := copyDir(t, dir)
		other := openSaved(t, copied, time.Hour, nil)
		defer other.end(t)
		counts := other.peek(t, q, reset)
		return counts[0].Remaining == 993 && counts[1].Remaining == 10
	})
	quiet := size(t, dir)
	for range 50 {
		s.peek(t, q)
	}
	want(t, "size after looks only", size(t, dir), quiet)
	until(t, "a long journal is folded into the full file", 20*time.Second, func() bool {
		for i := range 2000 {
			s.take(t, s.quota(fmt.Sprint("filler", i), 1<<40, time.Hour))
		}
		_, err := os.Stat(filepath.Join(dir, fmt.Sprintf("journal-%020d", 2)))
		return err == nil
	})
	s.end(t)
	want(t, "counted", openSaved(t, dir, time.Hour, nil).peek(t, q)[0].Remaining, int64(993))
}

func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if i, err := e.Info(); err == nil {
			n += i.Size()
		}
	}
	return n
}

func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestLoadDropsWhatIsOverAndCapsWhatLastsTooLong(t *testing.T) {
	dir := t.TempDir()
	var clock atomic.Int64
	clock.Store(1_800_000_000_000_000)
	now := func() time.Time { return time.UnixMicro(clock.Load()) }
	first := openSaved(t, dir, time.Hour, now)
	q, minute := first.quota("hour", 10, time.Hour), first.quota("minute", 10, time.Minute)
	r := first.rate("r", 10, time.Minute)
	first.take(t, q, minute, r)
	first.end(t)
	clock.Add(int64(90 * time.Second / time.Microsecond))
	second := openSaved(t, dir, time.Hour, now)
	counts := second.peek(t, q, minute, r)
	want(t, "still open", counts[0].Remaining, int64(9))
	want(t, "over", counts[1], counter.Count{Remaining: 10})
	want(t, "left the window", counts[2].Remaining, int64(10))
	want(t, "cells", second.Counter.(*counter.Memory).Len(), 1)
	second.end(t)
	clock.Add(-int64(48 * time.Hour / time.Microsecond))
	third := openSaved(t, dir, time.Hour, now)
	want(t, "end after the clock was set back", third.peek(t, q)[0].ResetAt, now().Add(time.Hour).UnixMilli())
}

func TestDirectoryBelongsToOneProcess(t *testing.T) {
	dir := t.TempDir()
	s := openSaved(t, dir, time.Hour, nil)
	_, err := counter.OpenSaver(counter.NewMemory(nil), counter.SaverOptions{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "lock: another process uses it") {
		t.Errorf("second saver: %v", err)
	}
	s.end(t)
	openSaved(t, dir, time.Hour, nil)
	file := filepath.Join(dir, "counters")
	if _, err := counter.OpenSaver(counter.NewMemory(nil), counter.SaverOptions{Dir: file}); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// A file cut short anywhere, or with a byte changed, is never fatal, is reported, and
// yields only counts that were true at some time.
func TestDamagedFilesAreReportedSetAsideAndUsedAsFarAsWhole(t *testing.T) {
	dir := t.TempDir()
	s := openSaved(t, dir, time.Millisecond, nil)
	q, r := s.quota("q", 100, time.Hour), s.rate("r", 100, time.Hour)
	want(t, "admitted", s.admitted(t, 3, q, r), int64(3))
	s.end(t) // 3 in the full file
	s = openSaved(t, dir, time.Millisecond, nil)
	want(t, "admitted", s.admitted(t, 2, q, r), int64(2))
	journal := filepath.Join(dir, fmt.Sprintf("journal-%020d", 3))
	until(t, "the journal holds it", 5*time.Second, func() bool {
		text, err := os.ReadFile(journal)
		return err == nil && bytes.Contains(text, []byte("rate-r-7"))
	})
	crashed := copyDir(t, dir)
	s.end(t)
	for _, name := range []string{"counters", filepath.Base(journal)} {
		whole, err := os.ReadFile(filepath.Join(crashed, name))
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(whole); at += 1 + at/10 { // all of the head, then fewer
			spoiled := bytes.Clone(whole)
			spoiled[at] ^= 0x55
			checkDamaged(t, crashed, name, spoiled, q, r)
			checkDamaged(t, crashed, name, whole[:at], q, r)
		}
	}
}

func checkDamaged(t *testing.T, from, name string, content []byte, q, r counter.Limit) {
	t.Helper()
	dir := copyDir(t, from)
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openSaved(t, dir, time.Hour, nil)
	defer s.end(t)
	for _, c := range s.peek(t, q, r) {
		if used := 100 - c.Remaining; used < 0 || used > 5 {
			t.Fatalf("%s of %d bytes: %d used, which never was", name, len(content), used)
		}
	}
	head := len("sluice counters 1\n") + 12
	if name != "counters" && len(content) == head {
		return // an empty journal is whole
	}
	if !strings.Contains(s.log.String(), "damaged") || !strings.Contains(s.log.String(), name) {
		t.Fatalf("%s of %d bytes: no report: %q", name, len(content), s.log.String())
	}
	if _, err := os.Stat(filepath.Join(dir, name+".damaged")); err != nil {
		t.Fatalf("%s of %d bytes: not set aside: %v", name, len(content), err)
	}
}

// A disk that fails is reported once, and made up for when it works again.
func TestSavingGoesOnWhenTheDiskWorksAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "counters")
	s := openSaved(t, dir, time.Millisecond, nil)
	aside := dir + "-aside"
	if err := os.Rename(dir, aside); err != nil {
		t.Fatal(err)
	}
	filler := 0
	until(t, "the failure is reported", 20*time.Second, func() bool {
		for range 5000 { // a full save needs the directory; an open journal does not
			s.take(t, s.quota(fmt.Sprint("filler", filler), 10, time.Hour))
			filler++
		}
		return strings.Contains(s.log.String(), "counters not saved")
	})
	q := s.quota("q", 10, time.Hour)
	want(t, "admitted", s.admitted(t, 4, q), int64(4))
	if err := os.Rename(aside, dir); err != nil {
		t.Fatal(err)
	}
	until(t, "the recovery is reported", 5*time.Second, func() bool { return strings.Contains(s.log.String(), "counters saved again") })
	want(t, "reports of the failure", strings.Count(s.log.String(), "counters not saved"), 1)
	after := openSaved(t, copyDir(t, dir), time.Hour, nil)
	want(t, "counted", after.peek(t, q)[0].Remaining, int64(6))
}

// countUntilKilled is the child of the next test.
func countUntilKilled(dir string) {
	m := counter.NewMemory(nil)
	s, err := counter.OpenSaver(m, counter.SaverOptions{Dir: dir, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go s.Run(context.Background())
	limits := []counter.Limit{{Key: "q", Max: 1 << 40}}
	counts := make([]counter.Count, 1)
	tick := time.NewTicker(100 * time.Microsecond)
	for n := 1; ; n++ {
		<-tick.C
		if _, err := m.Take(context.Background(), limits, 1, counts); err != nil {
			os.Exit(1)
		}
		fmt.Println(n, time.Now().UnixMilli())
	}
}

// Bound: a crash forgets the calls of about one second. Killed at several
// moments, the count is never above what was admitted, and never below what was
// admitted one second, and the time of one save, before.
func TestKilledProcessForgetsAtMostAboutASecond(t *testing.T) {
	dir := t.TempDir()
	total, admittedBefore := 0, 0
	for _, life := range []time.Duration{300 * time.Millisecond, 1700 * time.Millisecond, 2400 * time.Millisecond} {
		counted, secondBefore := runChild(t, dir, life)
		s := openSaved(t, copyDir(t, dir), time.Hour, nil)
		used := 1<<40 - int(s.peek(t, counter.Limit{Key: "q", Max: 1 << 40})[0].Remaining)
		if low, high := admittedBefore+secondBefore, admittedBefore+counted; used < low || used > high {
			t.Errorf("after %s: %d calls known, want %d..%d", life, used, low, high)
		}
		total += counted
		t.Logf("killed after %s: %d admitted, %d known, lost %d", life, counted, used-admittedBefore, counted-used+admittedBefore)
		admittedBefore = used
	}
	if total < 1000 {
		t.Errorf("%d calls in all: too few to tell", total)
	}
}

// runChild kills a counting child and returns how many calls it was told were
// admitted, in all and until 1.25 s before its end.
func runChild(t *testing.T, dir string, life time.Duration) (counted, secondBefore int) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(life, func() { _ = child.Process.Kill() }) // waited for below
	defer timer.Stop()
	var times []int64
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, at, ok := strings.Cut(lines.Text(), " "); ok {
			if ms, err := strconv.ParseInt(at, 10, 64); err == nil && len(at) == 13 {
				times = append(times, ms)
			}
		}
	}
	_ = child.Wait() // killed
	for secondBefore < len(times) && times[secondBefore] < times[len(times)-1]-1250 {
		secondBefore++
	}
	return len(times) + 1, secondBefore // one may be admitted and not told
}

func TestResetIsSavedWhenItReturns(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	m := counter.NewMemory(nil)
	s, err := counter.OpenSaver(m, counter.SaverOptions{Dir: dir, Every: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	limits, counts := []counter.Limit{{Key: "quota-k", Kind: counter.Quota, Max: 5, Period: time.Hour}}, make([]counter.Count, 1)
	for range 3 {
		if _, err := m.Take(ctx, limits, 1, counts); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Reset(ctx, "other"); err != nil { // saves the count
		t.Fatal(err)
	}
	if err := s.Reset(ctx, "quota-k"); err != nil {
		t.Fatal(err)
	}
	// What is on the disk now is what a crash would leave.
	left := t.TempDir()
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	again := counter.NewMemory(nil)
	if _, err := counter.OpenSaver(again, counter.SaverOptions{Dir: left}); err != nil {
		t.Fatal(err)
	}
	if err := again.Peek(ctx, limits, counts); err != nil || counts[0].Remaining != 5 {
		t.Errorf("after the crash: %+v, %v", counts[0], err)
	}
}
