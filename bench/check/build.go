package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// patience is how long tidying up may take after an interrupt.
const patience = 30 * time.Second

// A program is the benchmarks of one tree.
type program struct {
	path string
	dir  string // where they run: the bench folder of their tree
}

// programs are the two that are compared.
type programs struct{ base, now program }

// build compiles the benchmarks of the base, in a work tree of its own, and those
// of the working tree. The function that it returns removes everything that was
// made, and is never nil.
func build(ctx context.Context, repo git, base release, progress io.Writer) (p programs, remove func(), err error) {
	temp, err := os.MkdirTemp("", "bench-check-")
	if err != nil {
		return p, func() {}, fmt.Errorf("making a folder for two builds: %w", err)
	}
	tree := filepath.Join(temp, "base")
	remove = func() {
		if err := tidy(repo, tree, temp); err != nil {
			fmt.Fprintln(progress, "bench-check:", err)
		}
	}
	// What an earlier check left that was killed is forgotten.
	if _, err := repo.run(ctx, "worktree", "prune"); err != nil {
		return p, remove, fmt.Errorf("making a work tree: %w", err)
	}
	if _, err := repo.run(ctx, "worktree", "add", "--quiet", "--detach", tree, base.commit); err != nil {
		return p, remove, fmt.Errorf("making a work tree of %s: %w", base, err)
	}
	p.base = program{path: filepath.Join(temp, "base.test"), dir: filepath.Join(tree, "bench")}
	p.now = program{path: filepath.Join(temp, "now.test"), dir: filepath.Join(repo.dir, "bench")}
	fmt.Fprintf(progress, "building the benchmarks of %s\n", base)
	if err := p.base.compile(ctx); err != nil {
		return p, remove, fmt.Errorf("building the benchmarks of %s: %w", base, err)
	}
	fmt.Fprintln(progress, "building the benchmarks of the working tree")
	if err := p.now.compile(ctx); err != nil {
		return p, remove, fmt.Errorf("building the benchmarks of the working tree: %w", err)
	}
	return p, remove, nil
}

func (p program) compile(ctx context.Context) error {
	// Of the paths that a build embeds nothing may differ but the code.
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-o", p.path, ".")
	cmd.Dir = p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// tidy removes the work tree and the folder. The check's own context may have
// ended by then.
func tidy(repo git, tree, temp string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var failed error
	if _, err := os.Stat(tree); err == nil {
		_, failed = repo.run(ctx, "worktree", "remove", "--force", tree)
	}
	failed = errors.Join(failed, os.RemoveAll(temp))
	if _, err := repo.run(ctx, "worktree", "prune"); err != nil {
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return fmt.Errorf("removing %s: %w", temp, failed)
	}
	return nil
}
