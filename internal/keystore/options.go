package keystore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
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

	Cluster bool        // the store is a cluster
	TLS     *tls.Config // nil: plain connections

	Timeout time.Duration // how long a call waits for the store; 0 means 200ms

	// Seal authenticates the sessions in the store; nil: they are taken as they are.
	Seal *Seal

	// Fed says that an admin fills the store. After the store lost its data, and until
	// it is filled again, an absent key is ErrRefilling and not ErrNotFound.
	Fed bool
}

// defaultTimeout is far longer than a healthy store takes and far shorter than a client
// would wait.
const defaultTimeout = 200 * time.Millisecond

const unixPrefix = "unix:"

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
	}
	for _, a := range o.Addresses {
		if strings.HasPrefix(a, unixPrefix) {
			if o.Cluster || o.SentinelMaster != "" {
				return fmt.Errorf("address %q: want host:port: a socket is for a store of one node", a)
			}
			continue
		}
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("address %q: want host:port: %w", a, err)
		}
	}
	return nil
}

func (o *ValkeyOptions) timeout() time.Duration {
	if o.Timeout == 0 {
		return defaultTimeout
	}
	return o.Timeout
}

// client sets the library up for reading and writing. Reads that a lost
// connection cut off are tried again within their time; writes never are.
func (o *ValkeyOptions) client() valkey.ClientOption {
	dialer := net.Dialer{Timeout: max(o.timeout(), 100*time.Millisecond)}
	return valkey.ClientOption{
		InitAddress: o.Addresses,
		Username:    o.Username, Password: o.Password, ClientName: "sluice-keys",
		TLSConfig: o.TLS,
		Dialer:    dialer,
		DialCtxFn: dial,
		Sentinel: valkey.SentinelOption{
			MasterSet: o.SentinelMaster, Username: o.SentinelUsername, Password: o.SentinelPassword,
			TLSConfig: o.TLS, Dialer: dialer,
			TopologyRefreshInterval: 5 * time.Second, // a failover that was missed would bind the gateway to the old primary
		},
		ClusterOption:     valkey.ClusterOption{ShardsRefreshInterval: 5 * time.Second},
		ForceSingleClient: !o.Cluster && o.SentinelMaster == "",
		ConnWriteTimeout:  max(time.Second, 2*o.timeout()), // how long commands wait for a dead peer
		PipelineMultiplex: -1,
		AlwaysPipelining:  true, // a command that is not pipelined closes the connection when it times out
		DisableCache:      true,
		RetryDelay:        retryDelay,
	}
}

// retryDelay returns how long the client waits before it retries a command, about as
// long as by default. A subscription is not retried, as the caller must know that it
// was lost.
func retryDelay(attempts int, command valkey.Completed, _ error) time.Duration {
	if command.Commands()[0] == "SUBSCRIBE" {
		return -1
	}
	base := time.Microsecond << min(attempts, 20)
	return min(base+rand.N(base), time.Second)
}

// watcher configures the client for watching: one connection to each node, on which the
// server reports every write below the prefix.
func (o *ValkeyOptions) watcher(invalidated func([]valkey.ValkeyMessage), dialled func()) valkey.ClientOption {
	option := o.client()
	option.ClientName = "sluice-keys-watch"
	option.DisableCache = false // turns tracking on
	option.CacheSizeEachConn = 1 << 10
	option.ClientTrackingOptions = []string{"PREFIX", keyPrefix, "BCAST"}
	option.OnInvalidations = invalidated
	option.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, secure *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, address, d, secure)
		if err == nil {
			dialled()
		}
		return conn, err
	}
	return option
}

func dial(ctx context.Context, address string, dialer *net.Dialer, secure *tls.Config) (net.Conn, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, unixPrefix); ok {
		network, address = "unix", path
	}
	if secure != nil {
		return (&tls.Dialer{NetDialer: dialer, Config: secure}).DialContext(ctx, network, address)
	}
	return dialer.DialContext(ctx, network, address)
}

// isPermanent reports whether an error is due to configuration: the store was reached
// and will refuse later attempts as well.
func isPermanent(err error) bool {
	refusal, ok := valkey.IsValkeyErr(err)
	if !ok {
		return false
	}
	for _, prefix := range []string{"NOAUTH", "WRONGPASS", "NOPERM", "ERR AUTH", "ERR This instance has cluster support disabled"} {
		if strings.HasPrefix(refusal.Error(), prefix) {
			return true
		}
	}
	return false
}
