// Package testenv provides tests with real servers: databases, stores, brokers
// and upstreams, each on a socket of its own and gone when the test or its
// process ends. Only tests import it.
package testenv

import (
	"os"
	"testing"
)

// unavailable skips t because a server is not installed, or fails it where
// SLUICE_TEST_REQUIRE_SERVERS=1 says that all of them are expected.
func unavailable(t testing.TB, why error) {
	t.Helper()
	if os.Getenv("SLUICE_TEST_REQUIRE_SERVERS") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}
