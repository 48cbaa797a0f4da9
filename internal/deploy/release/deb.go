package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// deb has nfpm pack a program for Debian, as internal/deploy/debian describes it, into a
// folder. It returns the path of the package. The working directory is the root of the
// repository.
func deb(program, folder, version, architecture string, at time.Time) (string, error) {
	path := filepath.Join(folder, fmt.Sprintf("sluice_%s_%s.deb", strings.TrimPrefix(version, "v"), architecture))
	pack := exec.Command("go", "tool", "-modfile=internal/deploy/tools/go.mod", "nfpm", "package",
		"--config", "internal/deploy/debian/nfpm.yaml", "--packager", "deb", "--target", path)
	pack.Env = append(os.Environ(), "GOFLAGS=", "SLUICE_PROGRAM="+program, "SLUICE_VERSION="+version,
		"SLUICE_ARCHITECTURE="+architecture, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", at.Unix()))
	if out, err := pack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("nfpm: %w: %s", err, out)
	}
	return path, nil
}
