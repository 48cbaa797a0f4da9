// Package testenv provides tests with real servers: databases, stores and upstreams.
// Each has its own socket and ends with the test or its process. Only tests import
// it.
package testenv

import (
	"os"
	"testing"
)

// unavailable skips t because a server is not installed, or fails it under
// SLUICE_TEST_REQUIRE_SERVERS=1.
func unavailable(t testing.TB, why error) {
	t.Helper()
	if os.Getenv("SLUICE_TEST_REQUIRE_SERVERS") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}
