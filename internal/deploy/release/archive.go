package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"time"
)

// An entry is a file of an archive.
type entry struct {
	name string
	path string // of the file that is packed
	mode int64
}

// entriesOf returns what an archive for an operating system has. Paths are below the root of
// the repository, the working directory.
func entriesOf(program, system string) []entry {
	entries := []entry{{"sluice", program, 0o755}, {"LICENSE", "LICENSE", 0o644}, {"README.md", "README.md", 0o644}}
	if system != "linux" {
		return entries
	}
	for _, name := range []string{
		"sluice-admin.service", "sluice-gateway.service", "admin.yaml", "gateway.yaml",
		"sluice.sysusers", "sluice.logrotate", "sluice.sysctl",
	} {
		entries = append(entries, entry{"systemd/" + name, "internal/deploy/systemd/" + name, 0o644})
	}
	return entries
}

// archive packs files below a folder. Owners and times say nothing of this machine.
func archive(entries []entry, folder string, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	packed := tar.NewWriter(zipped)
	for _, one := range entries {
		text, err := os.ReadFile(one.path)
		if err != nil {
			return nil, err
		}
		head := &tar.Header{Name: folder + "/" + one.name, Mode: one.mode, Size: int64(len(text)), ModTime: at, Format: tar.FormatUSTAR}
		if err := packed.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := packed.Write(text); err != nil {
			return nil, err
		}
	}
	if err := packed.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
