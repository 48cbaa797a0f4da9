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
)

// ValkeyOptions configure a Valkey.
type ValkeyOptions struct {
	// Addresses are host:port, or unix:/path for a store of one node: those of the
	// node, of any nodes of the cluster, or of the sentinels.
	Addresses []string
	Username  string
	Password  string

	// SentinelMaster is the name of the primary at the sentinels; empty without
	// sentinels, which have credentials of their own.
	SentinelMaster   string
	SentinelUsername string
	SentinelPassword string

	Cluster bool        // the store is a cluster; counters must then be named by Naming{Tagged: true}
	TLS     *tls.Config // nil: plain connections

	Timeout time.Duration // how long a call waits for the store; 0 means 200ms
	Outage  Policy        // how calls are decided that the store did not count

	// Gateways returns how many gateways share the store, for this one's share under
	// Local; nil or a result below 1 means one.
	Gateways func() int

	// Changed is called when the store goes away and when it is back. Calls do not
	// overlap; it must return soon.
	Changed func(State)
}

// defaultTimeout is far longer than a healthy store takes and far shorter than a
// client would wait.
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
	clientName = "sluice-counter" // in CLIENT LIST
)

// clientOption configures the client so that each call is counted at most once:
// nothing is retried, one connection keeps the order of commands, and commands are
// always pipelined, as one that is not closes the connection when it times out.
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
			TopologyRefreshInterval: 5 * time.Second, // a failover that was missed would bind the gateway to the old primary
		},
		ForceSingleClient: !o.Cluster && o.SentinelMaster == "",
		ConnWriteTimeout:  max(time.Second, 2*v.timeout), // how long commands wait for a dead peer
		PipelineMultiplex: -1,
		AlwaysPipelining:  true,
		DisableRetry:      true,
		DisableCache:      true,
	}
}

// dial opens a connection. A new one means that the last was lost, and perhaps the
// store's data with it, which the lanes check before they continue.
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
	}
	if err == nil {
		v.reconnected()
	}
	return conn, err
}

// errUnfit means that the store answers but cannot be used, now or later.
var errUnfit = errors.New("store cannot be used")

// examine checks that a server is recent enough and is a cluster if it should be.
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

// number returns a version's first two parts: 702 for 7.2.4; 0 if it cannot be read.
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

// isPermanent reports whether an error is due to configuration: the store was
// reached and will refuse later attempts as well.
func isPermanent(err error) bool {
	if errors.Is(err, errUnfit) {
		return true
	}
	refusal, ok := valkey.IsValkeyErr(err)
	return ok && slices.ContainsFunc([]string{"NOAUTH", "WRONGPASS", "NOPERM", "This instance has cluster support"}, func(prefix string) bool {
		return strings.HasPrefix(refusal.Error(), prefix)
	})
}
