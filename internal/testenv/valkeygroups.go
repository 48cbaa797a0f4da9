package testenv

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A StoreCluster has three primaries with a third of the slots each.
type StoreCluster struct {
	Nodes []*Store
}

// Addresses returns the addresses of all nodes.
func (c *StoreCluster) Addresses() []string {
	all := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		all[i] = n.Addr
	}
	return all
}

// Owner returns the node that holds key.
func (c *StoreCluster) Owner(key string) *Store {
	slot, err := strconv.Atoi(c.Nodes[0].Do("CLUSTER", "KEYSLOT", key))
	if err != nil {
		c.Nodes[0].t.Fatalf("slot of key: %v", err)
	}
	for i := range c.Nodes {
		if first, last := slotsOf(i, len(c.Nodes)); slot >= first && slot <= last {
			return c.Nodes[i]
		}
	}
	return nil
}

func slotsOf(node, nodes int) (first, last int) {
	return node * 16384 / nodes, (node+1)*16384/nodes - 1
}

// ValkeyCluster starts a cluster for t as Valkey starts a server. A node that is
// killed and restarted comes back with its slots and without its data.
func ValkeyCluster(t testing.TB, settings ...string) *StoreCluster {
	t.Helper()
	c := &StoreCluster{}
	for range 3 {
		bus := strconv.Itoa(freePort(t))
		c.Nodes = append(c.Nodes, Valkey(t, append([]string{
			"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1500",
			"--cluster-require-full-coverage", "no",
		}, settings...)...))
	}
	for i, n := range c.Nodes {
		from, to := slotsOf(i, len(c.Nodes))
		n.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(from), strconv.Itoa(to))
		n.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for _, n := range c.Nodes[1:] {
		host, port, _ := net.SplitHostPort(n.Addr)
		c.Nodes[0].Do("CLUSTER", "MEET", host, port, n.args[slices.Index(n.args, "--cluster-port")+1])
	}
	for _, n := range c.Nodes {
		n.Await("cluster_slots_ok:16384", "CLUSTER", "INFO")
		n.Await("cluster_state:ok", "CLUSTER", "INFO")
	}
	return c
}

// A StoreSentinel is a primary with a replica and one sentinel that promotes the
// replica when the primary is down for a second. Several sentinels that start
// together often elect different leaders and retry seconds later.
type StoreSentinel struct {
	Master   string // the name that the sentinel knows the primary by
	Primary  *Store
	Replica  *Store
	Sentinel *Store
}

// ValkeySentinel starts a primary, a replica and a sentinel for t and returns when the
// replica is in sync.
func ValkeySentinel(t testing.TB, settings ...string) *StoreSentinel {
	t.Helper()
	s := &StoreSentinel{Master: "counters", Primary: Valkey(t, append([]string{"--repl-diskless-sync-delay", "0"}, settings...)...)}
	host, port, _ := net.SplitHostPort(s.Primary.Addr)
	s.Replica = Valkey(t, append([]string{"--replicaof", host + " " + port}, settings...)...)
	s.Replica.Await("master_link_status:up", "INFO", "replication")
	s.Sentinel = sentinel(t, s.Master, host, port)
	s.Sentinel.Await("num-slaves\n1", "SENTINEL", "MASTER", s.Master)
	return s
}

func sentinel(t testing.TB, master, host, port string) *Store {
	t.Helper()
	own := freePort(t)
	s := newStore(t, own)
	path := filepath.Join(t.TempDir(), "sentinel.conf") // sentinels rewrite theirs
	lines := []string{
		"port " + strconv.Itoa(own), "bind 127.0.0.1", "dir " + filepath.Dir(path),
		"sentinel monitor " + strings.Join([]string{master, host, port, "1"}, " "),
		"sentinel down-after-milliseconds " + master + " 1000",
		"sentinel failover-timeout " + master + " 1000",
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatalf("configuration of a sentinel: %v", err)
	}
	s.args = []string{path, "--sentinel"}
	s.Restart()
	s.Do("SENTINEL", "DEBUG", "info-period", "100") // it sees the replica's state at once
	return s
}
