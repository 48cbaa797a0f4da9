package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A repo is a repository of its own with benchmarks in it.
type repo struct {
	t *testing.T
	git
}

func newRepo(t *testing.T) repo {
	r := repo{t: t, git: git{dir: t.TempDir()}}
	r.must("init", "-q", "-b", "main")
	r.must("config", "user.name", "test")
	r.must("config", "user.email", "test@example.org")
	r.must("config", "commit.gpgsign", "false")
	r.write("go.mod", "module example.org/bench\n\ngo 1.24\n")
	return r
}

func (r repo) must(args ...string) string {
	r.t.Helper()
	out, err := r.run(context.Background(), args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func (r repo) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) commit(subject string) string {
	r.t.Helper()
	r.must("add", "-A")
	r.must("commit", "-q", "--allow-empty", "-m", subject)
	return r.must("rev-parse", "HEAD")
}

// requestCost writes a benchmark whose request does so much.
func (r repo) requestCost(work string) {
	r.write("bench/request_test.go", `package bench

import "testing"

var kept []byte

func BenchmarkRequest(b *testing.B) {
	b.Run("keyless, POST", func(b *testing.B) {
		b.ReportAllocs()
		sum := 0
		for b.Loop() {
			`+work+`
		}
		kept = append(kept[:0], byte(sum))
	})
}
`)
}

const (
	// Dear enough to be found while all else on the machine is tested too.
	cheap = "for i := range 20_000 { sum += i * i }"
	dear  = "for i := range 400_000 { sum += i * i }; kept = make([]byte, 64)"
)

// check runs the command in the repository.
func (r repo) check(ctx context.Context, progress io.Writer, args ...string) (string, error) {
	r.t.Helper()
	r.t.Chdir(r.dir)
	var out bytes.Buffer
	err := run(ctx, append([]string{"-rounds", "8", "-times", "20"}, args...), &out, progress)
	return out.String(), err
}

// workTrees lists those besides the repository's own.
func (r repo) workTrees() string {
	r.t.Helper()
	_, others, _ := strings.Cut(r.must("worktree", "list"), "\n")
	return others
}

func TestACommitThatCostsMoreFails(t *testing.T) {
	r := newRepo(t)
	r.requestCost(cheap)
	r.commit("cheap")
	r.must("tag", "v0.1.0")
	r.requestCost(dear) // not committed
	r.write("kept.md", "before\n"+markBegin+"old\n"+markEnd+"after\n")
	table, err := r.check(t.Context(), t.Output(), "-keep", "kept.md")
	if !errors.Is(err, errWorse) || !strings.Contains(err.Error(), "keyless, POST: slower, allocates") {
		t.Errorf("the verdict is %v", err)
	}
	for _, want := range []string{"against v0.1.0 (", "| keyless, POST |", "| 0 → 1 |", string(both)} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	text, err := os.ReadFile("kept.md")
	if want := "before\n" + markBegin + "\n" + table + "\n" + markEnd + "after\n"; err != nil || string(text) != want {
		t.Errorf("kept %v\n%s, want\n%s", err, text, want)
	}
	if others := r.workTrees(); others != "" {
		t.Errorf("left behind: %s", others)
	}
}

func TestACommitThatCostsTheSamePasses(t *testing.T) {
	r := newRepo(t)
	r.requestCost(cheap)
	r.write("bench/release", "# a comment\n"+r.commit("cheap")+" # first\n")
	table, err := r.check(t.Context(), t.Output())
	if err != nil {
		t.Errorf("%v\n%s", err, table)
	}
}

func TestAnInterruptLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := newRepo(t)
	r.requestCost(cheap)
	r.commit("cheap")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := r.check(ctx, onLine{"building the benchmarks of the working tree", cancel}, "-base", "HEAD")
	if !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "killed") {
		t.Errorf("interrupted: %v", err)
	}
	if others := r.workTrees(); others != "" {
		t.Errorf("left behind: %s", others)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "bench-check-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// onLine calls a function when a line is written that contains what it looks for.
type onLine struct {
	text string
	do   func()
}

func (o onLine) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(o.text)) {
		o.do()
	}
	return len(p), nil
}

func TestTheLastReleaseIsTheNewestTagBehind(t *testing.T) {
	r := newRepo(t)
	first := r.commit("first")
	r.must("tag", "v0.1.0")
	second := r.commit("second")
	r.must("tag", "not-a-version")
	for _, c := range []struct {
		what, asked string
		prepare     func()
		want        release
	}{
		{"behind HEAD", "", func() {}, release{"v0.1.0", first}},
		{"HEAD itself, unchanged", "", func() { r.must("tag", "v0.2.0") }, release{"v0.1.0", first}},
		{"HEAD itself, changed", "", func() { r.write("go.mod", "module other\n") }, release{"v0.2.0", second}},
		{"asked for", "not-a-version", func() {}, release{"not-a-version", second}},
	} {
		c.prepare()
		got, err := lastRelease(t.Context(), r.git, c.asked)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v %v, want %+v", c.what, got, err, c.want)
		}
	}
}

func TestWithoutATagTheFileNamesTheRelease(t *testing.T) {
	r := newRepo(t)
	commit := r.commit("first")
	for _, c := range []struct{ file, want string }{
		{"", "BASE"},
		{"# only a comment\n", "names no commit"},
		{"0123456789012345678901234567890123456789\n", "no revision here"},
		{"# why\n\n" + commit[:12] + " # that\n", ""},
	} {
		if c.file != "" {
			r.write(releaseFile, c.file)
		}
		got, err := lastRelease(t.Context(), r.git, "")
		switch {
		case c.want == "" && (err != nil || got.commit != commit):
			t.Errorf("%q: %+v %v", c.file, got, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: %v, want an error about %q", c.file, err, c.want)
		}
	}
}

func TestAShallowCloneSaysSo(t *testing.T) {
	r := newRepo(t)
	first := r.commit("first")
	r.write(releaseFile, first)
	r.commit("second")
	clone := filepath.Join(t.TempDir(), "clone")
	if out, err := exec.Command("git", "clone", "-q", "--depth", "1", "file://"+r.dir, clone).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	_, err := lastRelease(t.Context(), git{dir: clone}, "")
	if err == nil || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Errorf("%v, want advice", err)
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "3"}, {"-times", "0"}, {"v0.1.0"}, {"-nope"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}

func TestBenchmarkOutputIsRead(t *testing.T) {
	const text = `goos: linux
cpu: AMD EPYC
BenchmarkRequest/keyless,_POST         	    1000	     20638 ns/op	      18.50 cpu-µs/op	       0 B/op	       2 allocs/op
BenchmarkScale/keys=1000               	    1000	     22083 ns/op
PASS
`
	got, err := readSamples(text)
	want := samples{{name: "keyless, POST", budget: true, wall: 20.638, cpu: 18.5, allocs: 2}, {name: "Scale/keys=1000", wall: 22.083}}
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
	again, err := readSamples(text + "BenchmarkScale/keys=1000 1000 21000 ns/op\nBenchmarkScale/keys=1000 1000 23000 ns/op\n")
	if err != nil || len(again) != 2 || again[1].wall != 21 {
		t.Errorf("read three times: %+v %v, want the least", again, err)
	}
	for _, broken := range []string{"BenchmarkX 10 x ns/op", "BenchmarkX 10 12 B/op", "BenchmarkX 10 NaN ns/op"} {
		if got, err := readSamples(broken); err == nil {
			t.Errorf("%q is read as %+v", broken, got)
		}
	}
}
