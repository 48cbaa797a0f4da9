package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const oldestMajor = 13

// installation is one set of server binaries.
type installation struct {
	dir   string // holds initdb and postgres
	major int
}

// places are the directories of server binaries in distributions; the star is the major
// version.
var places = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/usr/local/pgsql/bin",
}

var (
	majorInPath    = regexp.MustCompile(`[0-9]+`)
	majorInVersion = regexp.MustCompile(`\(PostgreSQL\) ([0-9]+)`)
)

// installations returns the usable installations, the preferred one first. A configured
// directory is the only candidate, because a fallback would hide a mistake.
func installations(ctx context.Context, binDir string) ([]installation, error) {
	candidates := candidateDirs()
	if binDir != "" {
		abs, err := filepath.Abs(binDir)
		if err != nil {
			return nil, fmt.Errorf("postgres.bin_dir %q: %w", binDir, err)
		}
		candidates = []string{abs}
	}
	missing := &MissingError{BinDir: binDir}
	var found []installation
	for _, dir := range candidates {
		major := askMajor(ctx, dir)
		switch {
		case major >= oldestMajor:
			found = append(found, installation{dir, major})
		case major > 0 && missing.Found == "":
			missing.Found = fmt.Sprintf("%d (%s)", major, dir)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("looking for PostgreSQL: %w", err)
	}
	if len(found) == 0 {
		return nil, missing
	}
	return found, nil
}

func candidateDirs() []string {
	var dirs []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(initdb))
		// A link in /usr/bin may point to the directory of the other binaries.
		if real, err := filepath.EvalSymlinks(initdb); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, place := range places {
		matches, _ := filepath.Glob(place) // fails only for malformed patterns
		slices.SortStableFunc(matches, func(a, b string) int { return pathMajor(b) - pathMajor(a) })
		dirs = append(dirs, matches...)
	}
	return slices.Compact(dirs)
}

// pathMajor returns the number in a directory's name, so that 9 sorts before 15.
func pathMajor(dir string) int {
	n, _ := strconv.Atoi(majorInPath.FindString(dir)) // no number: 0
	return n
}

// askMajor runs the server binary for its version, because a directory's name may be
// wrong. It returns 0 if the installation is incomplete or does not work.
func askMajor(ctx context.Context, dir string) int {
	if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err != nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version")
	cmd.Env = serverEnv()
	out, err := cmd.Output()
	if err != nil {
		return 0
	}
	version := majorInVersion.FindSubmatch(out)
	if version == nil {
		return 0
	}
	major, _ := strconv.Atoi(string(version[1])) // digits only
	return major
}

// choose returns the first installation, or the first of the major version of existing
// data. A major of 0 means no data.
func choose(found []installation, major int, data string) (installation, error) {
	if major == 0 {
		return found[0], nil
	}
	wrong := &VersionError{Data: data, Major: major}
	for _, in := range found {
		if in.major == major {
			return in, nil
		}
		if !slices.Contains(wrong.Found, in.major) {
			wrong.Found = append(wrong.Found, in.major)
		}
	}
	return installation{}, wrong
}

// serverEnv is the environment of initdb and the server, without PGDATA and the user's
// locale.
func serverEnv() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}
