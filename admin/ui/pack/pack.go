package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/admin/ui"
)

// maxSize bounds the zip, which every program carries.
const maxSize = 1 << 20

// Where things are, from the root of the repository.
const (
	webDir  = "admin/ui/web"
	zipFile = "admin/ui/ui.zip"
)

// pack writes the built UI into the zip.
func pack() error {
	files, err := collect()
	if err != nil {
		return err
	}
	packed, err := write(files)
	if err != nil {
		return err
	}
	if len(packed) > maxSize {
		return fmt.Errorf("%s would have %d bytes, and may have %d", zipFile, len(packed), maxSize)
	}
	if err := os.WriteFile(zipFile, packed, 0o644); err != nil {
		return err
	}
	fmt.Printf("%s: %d files, %d bytes\n", zipFile, len(files), len(packed))
	return nil
}

// check compares the built UI with the zip, file by file.
func check() error {
	built, err := collect()
	if err != nil {
		return err
	}
	archive, err := zip.OpenReader(zipFile)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }() // it was only read
	packed := make(map[string][]byte)
	for _, entry := range archive.File {
		if packed[entry.Name], err = fs.ReadFile(archive, entry.Name); err != nil {
			return err
		}
	}
	var wrong []string
	for name, content := range built {
		if have, ok := packed[name]; !ok || !bytes.Equal(have, content) {
			wrong = append(wrong, name)
		}
	}
	for name := range packed {
		if _, ok := built[name]; !ok {
			wrong = append(wrong, name)
		}
	}
	if wrong != nil {
		slices.Sort(wrong)
		return fmt.Errorf("%s is not what its sources build; run make ui. These differ: %s", zipFile, strings.Join(wrong, ", "))
	}
	return nil
}

// collect returns the files of the zip by name.
func collect() (map[string][]byte, error) {
	files := make(map[string][]byte)
	dist := filepath.Join(webDir, "dist")
	err := filepath.WalkDir(dist, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dist, path)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); name == "licenses.md" {
			name = "assets/licenses.md" // shown by the page about
		}
		files[name], err = os.ReadFile(path)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not there: build the UI first, as make ui does", dist)
	}
	if err != nil {
		return nil, err
	}
	hash, err := ui.SourceHash(os.DirFS(webDir))
	if err != nil {
		return nil, err
	}
	files["SOURCE_HASH"] = []byte(hash + "\n")
	index, err := os.ReadFile(filepath.Join(webDir, "src/pages/index.ts"))
	if err != nil {
		return nil, err
	}
	routes, err := ui.Routes(string(index))
	if err != nil {
		return nil, err
	}
	files["routes.json"], err = json.MarshalIndent(routes, "", "  ")
	return files, err
}

// write returns a zip with sorted names and without times: the same files make the same
// bytes.
func write(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(to, flate.BestCompression)
	})
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entry, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
