package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// installWithin bounds the installation of packages and the wait for another process
// that installs them.
const installWithin = 5 * time.Minute

// NodeModules returns the directory of the Node.js programs that tests run, with
// their packages installed. It installs the versions of the lock file if the lock
// file has changed; concurrent processes wait for the first. Without Node.js, or if
// the packages cannot be installed, t is skipped, or fails under SLUICE_TEST_REQUIRE_SERVERS=1.
func NodeModules(t testing.TB) string {
	t.Helper()
	dir, err := nodeModules()
	if err != nil {
		unavailable(t, err)
	}
	return dir
}

// nodeModules installs once for each process.
var nodeModules = sync.OnceValues(func() (string, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return "", errors.New("node is not installed: try apt-get install nodejs npm")
	}
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "internal", "testenv", "graphqljs")
	if err := install(dir); err != nil {
		return "", fmt.Errorf("installing the packages of %s: %w", dir, err)
	}
	return dir, nil
})

// Packages installs the Node.js packages of a directory, relative to the root of the
// repository, as NodeModules does.
func Packages(t testing.TB, dir string) {
	t.Helper()
	_, err := exec.LookPath("node")
	if err != nil {
		err = errors.New("node is not installed: try apt-get install nodejs npm")
	}
	root := ""
	if err == nil {
		root, err = findRoot()
	}
	if err == nil {
		err = install(filepath.Join(root, filepath.FromSlash(dir)))
	}
	if err != nil {
		unavailable(t, err)
	}
}

// Chromium returns the path of a Chromium that tests may drive. Without one t is skipped,
// or fails under SLUICE_TEST_REQUIRE_SERVERS=1.
func Chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	unavailable(t, errors.New("chromium is not installed: try apt-get install chromium"))
	return ""
}

// stamp is a copy of the lock file whose packages are installed.
const stamp = "node_modules/.installed"

// install runs npm unless the packages match the lock file.
func install(dir string) error {
	wanted, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	if current(dir, wanted) {
		return nil
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if current(dir, wanted) {
		return nil // another process was faster
	}
	fmt.Fprintf(os.Stderr, "installing the packages of %s (npm ci)\n", dir)
	ctx, cancel := context.WithTimeout(context.Background(), installWithin)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return os.WriteFile(filepath.Join(dir, stamp), wanted, 0o644)
}

func current(dir string, wanted []byte) bool {
	have, err := os.ReadFile(filepath.Join(dir, stamp))
	return err == nil && bytes.Equal(have, wanted)
}

// lockDirectory waits until no other process installs to dir. Closing the file,
// or the end of this process, lets the next one go on.
func lockDirectory(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Root returns the directory of the module.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("this does not run below a go.mod")
		}
		dir = parent
	}
	return "", err
}

// Data returns a file of the data that is too large, or not ours, to be in the
// repository, such as "schemas/github.graphql". It is in the
// directory SLUICE_TEST_DATA, by default ../shared/data beside the repository. If it
// is missing, ok is false and t logs it.
func Data(t testing.TB, name string) (content []byte, ok bool) {
	t.Helper()
	dir := os.Getenv("SLUICE_TEST_DATA")
	if dir == "" {
		dir = filepath.Join(Root(t), "..", "shared", "data")
	}
	content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Logf("runs without %s, which is looked for where SLUICE_TEST_DATA says: %v", name, err)
		return nil, false
	}
	return content, true
}
