// Package testenv provides tests with real servers: databases, stores and upstreams.
// Each has its own socket and ends with the test or its process. Only tests import
// it.
package testenv

import (
	"os"
	"os/exec"
	"testing"
)

// unavailable skips t because a program is not installed, or fails it under
// SLUICE_TEST_REQUIRE_SERVERS=1.
func unavailable(t testing.TB, why error) {
	t.Helper()
	if os.Getenv("SLUICE_TEST_REQUIRE_SERVERS") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Program returns the path of a program of this machine. Without it t is skipped, or fails
// under SLUICE_TEST_REQUIRE_SERVERS=1.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		unavailable(t, err)
	}
	return path
}
