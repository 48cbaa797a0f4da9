package testenv_test

import (
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
)

func TestStoreForgetsWhenKilledUnlessToldToPersist(t *testing.T) {
	for _, c := range []struct {
		settings []string
		want     string
	}{{nil, ""}, {[]string{"--appendonly", "yes", "--appendfsync", "always"}, "v"}} {
		s := testenv.Valkey(t, c.settings...)
		s.Do("SET", "k", "v")
		s.Kill()
		if _, err := s.Try("GET", "k"); err == nil {
			t.Fatal("a killed store answers")
		}
		s.Restart()
		if got := s.Do("GET", "k"); got != c.want {
			t.Errorf("after kill and restart with %q: %q, want %q", c.settings, got, c.want)
		}
	}
}

func TestClusterKnowsTheOwnerOfAKey(t *testing.T) {
	c := testenv.ValkeyCluster(t)
	c.Owner("a").Do("SET", "a", "1")
	if got := c.Owner("a").Do("GET", "a"); got != "1" {
		t.Errorf("owner answers %q", got)
	}
}

func TestSentinelPromotesTheReplica(t *testing.T) {
	s := testenv.ValkeySentinel(t)
	s.Primary.Do("SET", "k", "v")
	s.Replica.Await("v", "GET", "k")
	start := time.Now()
	s.Primary.Kill()
	s.Replica.Await("role:master", "INFO", "replication")
	t.Logf("promoted after %s", time.Since(start))
}
