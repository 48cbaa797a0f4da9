package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// releaseFile names the commit to compare with while there is no tag.
const releaseFile = "bench/release"

// git runs git in a directory, "" being the current one.
type git struct{ dir string }

// run returns what git printed, without the last line end. Its error says what
// git said.
func (g git) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = g.dir
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return strings.TrimRight(string(out), "\n"), nil
}

// A release is what is compared with.
type release struct {
	name   string // as a reader knows it
	commit string // full id
}

// String names the release and its commit.
func (r release) String() string {
	if strings.HasPrefix(r.commit, r.name) {
		return r.name
	}
	return r.name + " (" + r.commit[:min(10, len(r.commit))] + ")"
}

// lastRelease returns the revision that was asked for; or else the newest tag v*
// that is reachable; or else the commit of releaseFile.
func lastRelease(ctx context.Context, repo git, asked string) (release, error) {
	if asked != "" {
		return repo.resolve(ctx, asked, "BASE")
	}
	if tag, ok := repo.newestTag(ctx); ok {
		return repo.resolve(ctx, tag, "the newest tag")
	}
	id, err := releaseID(filepath.Join(repo.dir, releaseFile))
	if err != nil {
		return release{}, err
	}
	r, err := repo.resolve(ctx, id, releaseFile)
	r.name = r.commit[:min(10, len(r.commit))]
	return r, err
}

// newestTag looks for a release behind HEAD. One that HEAD itself is, without a
// change to it, would be compared with itself: then it is the one before.
func (g git) newestTag(ctx context.Context) (string, bool) {
	tag, err := g.run(ctx, "describe", "--tags", "--abbrev=0", "--match", "v*")
	if err != nil {
		return "", false // no tag is reachable, which is no error
	}
	changed, err := g.run(ctx, "status", "--porcelain", "--untracked-files=no")
	if err != nil || changed != "" {
		return tag, true
	}
	if since, err := g.run(ctx, "rev-list", "--count", tag+"..HEAD"); err != nil || since != "0" {
		return tag, true
	}
	earlier, err := g.run(ctx, "describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^")
	return earlier, err == nil
}

// resolve finds the commit that a revision stands for; from says who named it.
func (g git) resolve(ctx context.Context, revision, from string) (release, error) {
	commit, err := g.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err == nil {
		return release{name: revision, commit: commit}, nil
	}
	if ctx.Err() != nil {
		return release{}, ctx.Err()
	}
	if shallow, _ := g.run(ctx, "rev-parse", "--is-shallow-repository"); shallow == "true" {
		return release{}, fmt.Errorf("%s names %q, which is not in this clone: it is shallow, run git fetch --unshallow --tags", from, revision)
	}
	return release{}, fmt.Errorf("%s names %q, which is no revision here: name a tag, a branch or a commit (git fetch --tags brings what is missing)", from, revision)
}

// releaseID reads the first word of a file that is not in a comment.
func releaseID(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("no tag v* is reachable, and there is no %s that names a commit: say BASE=revision", releaseFile)
	}
	if err != nil {
		return "", fmt.Errorf("reading which commit to compare with: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 {
			return words[0], nil
		}
	}
	return "", fmt.Errorf("%s names no commit: one line must hold a commit's id", releaseFile)
}
