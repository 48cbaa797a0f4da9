package counter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/sluicegate/sluice/internal/counter/exchange"
	"github.com/sluicegate/sluice/internal/rawio"
)

// ValkeyOptions say where the shared store is and what to do without it.
type ValkeyOptions struct {
	// Addresses are host:port, or unix:/path for a store of one node: the
	// node's, any of the cluster's, or the sentinels'.
	Addresses []string
	Username  string
	Password  string

	// SentinelMaster is the name that sentinels know the primary by; empty
	// without sentinels. They have credentials of their own.
	SentinelMaster   string
	SentinelUsername string
	SentinelPassword string

	Cluster bool        // the store is a cluster; counters must then be named by Naming{Tagged: true}
	TLS     *tls.Config // nil: plain connections

	Timeout time.Duration // how long a call waits for the store; 0 means 200ms
	Outage  Policy        // what happens to calls that the store did not count

	// Gateways tells how many gateways share the store, for this one's share
	// under Local; nil or below 1 means one.
	Gateways func() int

	// Changed is told when the store goes away and when it is back. Calls do
	// not overlap; it must return soon.
	Changed func(State)
}

// defaultTimeout is far above a healthy store's answer and far below what a
// client would wait for.
const defaultTimeout = 200 * time.Millisecond

func (o *ValkeyOptions) check() error {
	switch {
	case len(o.Addresses) == 0:
		return errors.New("addresses: none given, want host:port")
	case o.Cluster && o.SentinelMaster != "":
		return errors.New("cluster and sentinel_master: want one of them")
	case len(o.Addresses) > 1 && !o.Cluster && o.SentinelMaster == "":
		return errors.New("addresses: several need cluster or sentinel_master")
	case o.Timeout < 0:
		return fmt.Errorf("timeout %s: want more than 0", o.Timeout)
	case o.Outage > Closed:
		return fmt.Errorf("outage policy %d: want local, open or closed", o.Outage)
	}
	for _, a := range o.Addresses {
		if strings.HasPrefix(a, unixPrefix) && !o.Cluster && o.SentinelMaster == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("address %q: want host:port: %w", a, err)
		}
	}
	return nil
}

const (
	unixPrefix = "unix:"
	clientName = "sluice-counter" // in the store's lists
)

// clientOption sets the library up to count each call once: nothing is retried, one
// connection keeps the order of commands, and commands are always pipelined, since a
// lone one that times out would close the connection under the others.
func (v *Valkey) clientOption(o *ValkeyOptions) valkey.ClientOption {
	dialer := net.Dialer{Timeout: v.timeout}
	return valkey.ClientOption{
		InitAddress: o.Addresses,
		Username:    o.Username, Password: o.Password, ClientName: clientName,
		TLSConfig: o.TLS,
		Dialer:    dialer,
		DialCtxFn: v.dial,
		Sentinel: valkey.SentinelOption{
			MasterSet: o.SentinelMaster, Username: o.SentinelUsername, Password: o.SentinelPassword,
			TLSConfig: o.TLS, Dialer: dialer,
			TopologyRefreshInterval: 5 * time.Second, // a missed switch would bind us to the old primary
		},
		ForceSingleClient: !o.Cluster && o.SentinelMaster == "",
		ConnWriteTimeout:  max(time.Second, 2*v.timeout), // how long a dead peer holds commands back
		PipelineMultiplex: -1,
		AlwaysPipelining:  true,
		DisableRetry:      true,
		DisableCache:      true,
	}
}

// own makes what holds a connection for one flight at a time, of a single server
// over plain TCP; nil for all others.
func (v *Valkey) own(o *ValkeyOptions) *exchange.Holder {
	if !v.alone || o.TLS != nil || strings.HasPrefix(o.Addresses[0], unixPrefix) {
		return nil
	}
	return exchange.NewHolder(o.Addresses[0], v.timeout, exchange.Greeting{Username: o.Username, Password: o.Password, Name: clientName})
}

// dial opens a connection. A new one means that the last was lost, and perhaps
// the store's data with it: the lanes find out before they go on.
func (v *Valkey) dial(ctx context.Context, address string, dialer *net.Dialer, secure *tls.Config) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		network, address = "unix", path
	}
	var conn net.Conn
	var err error
	if secure != nil {
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: secure}).DialContext(ctx, network, address)
	} else {
		conn, err = dialer.DialContext(ctx, network, address)
		if err == nil {
			conn = rawio.Wrap(conn) // ordinary calls keep the runtime's monitor awake
		}
	}
	if err == nil {
		v.reconnected()
	}
	return conn, err
}

// errUnfit says that the store answers and cannot be used: waiting will not help.
var errUnfit = errors.New("store cannot be used")

// examine checks that a server can run the scripts and is what it is taken for.
func examine(ctx context.Context, c valkey.Client, clustered bool) error {
	info, err := c.Do(ctx, c.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return err
	}
	facts := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
	if isCluster := facts["redis_mode"] == "cluster"; isCluster != clustered {
		return fmt.Errorf("%w: its mode is %q but cluster is set to %v", errUnfit, facts["redis_mode"], clustered)
	}
	name, version, least := "Redis", facts["redis_version"], 700
	if own, ok := facts["valkey_version"]; ok {
		name, version, least = "Valkey", own, 702
	}
	if number(version) < least {
		return fmt.Errorf("%w: it is %s %q, want Redis 7.0 or Valkey 7.2 at least", errUnfit, name, version)
	}
	return nil
}

// number is a version's first two parts: 7.2.4 is 702; 0 when it cannot be read.
func number(version string) int {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	if err1 != nil || err2 != nil {
		return 0
	}
	return 100*a + b
}

// refusesUs tells whether an error is a matter of configuration: the store was
// reached and will go on refusing.
func refusesUs(err error) bool {
	if errors.Is(err, errUnfit) {
		return true
	}
	refusal, ok := valkey.IsValkeyErr(err)
	return ok && slices.ContainsFunc([]string{"NOAUTH", "WRONGPASS", "NOPERM", "This instance has cluster support"}, func(prefix string) bool {
		return strings.HasPrefix(refusal.Error(), prefix)
	})
}
