// Command pack builds the script of the playground's page and puts it beside the stage
// that serves it. It is run from the stage's folder and needs Node with the packages of
// admin/ui/web.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run() error {
	web := filepath.Join("..", "..", "..", "admin", "ui", "web")
	hash, err := sourceHash(os.DirFS(web))
	if err != nil {
		return err
	}
	build := exec.Command("npx", "--no-install", "vite", "build", "--logLevel", "warn", "-c", "vite.playground.config.ts")
	build.Dir, build.Stdout, build.Stderr = web, os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the script: %w", err)
	}
	script, err := os.ReadFile(filepath.Join(web, "dist-playground", "playground.js"))
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = w.Write(script)
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	return errors.Join(os.WriteFile("playground.js.gz", packed.Bytes(), 0o644), os.WriteFile("SOURCE_HASH", []byte(hash+"\n"), 0o644))
}
