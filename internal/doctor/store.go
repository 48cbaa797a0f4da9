package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/sluicegate/sluice/internal/config"
	"github.com/valkey-io/valkey-go"
)

// store checks that the shared store of keys and counters responds, if there is one,
// and compares its clock.
func (d *Doctor) store(ctx context.Context) {
	v := d.Config.Valkey
	if v.URL.Empty() {
		d.add(OK, "store", "sessions and counters are kept in the process, which is enough for one gateway", "")
		return
	}
	target, err := v.Target()
	if err != nil || target.TLS || v.Cluster || v.SentinelMaster != "" || len(target.Addresses) != 1 {
		d.add(OK, "store", "uses TLS or several servers: the gateway reports its state", "")
		return
	}
	ahead, err := clockOf(ctx, target, d.Now)
	if err != nil {
		d.add(Fail, "store", target.Addresses[0]+": "+cause(err).Error(), "start it, or set valkey.url to its address, with the password")
		return
	}
	d.add(OK, "store", target.Addresses[0]+" responds", "")
	d.skew("clock of the store", ahead)
}

// clockOf returns how far the clock of a store is ahead.
func clockOf(ctx context.Context, t config.ValkeyTarget, now func() time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	o := valkey.ClientOption{
		InitAddress: t.Addresses, Username: t.Username, Password: t.Password.Reveal(), Dialer: net.Dialer{Timeout: within},
		AlwaysRESP2: true, DisableCache: true, DisableRetry: true, ForceSingleClient: true,
	}
	if t.Unix {
		o.DialCtxFn = func(ctx context.Context, path string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
	}
	client, err := valkey.NewClient(o)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	began := now()
	at, err := client.Do(ctx, client.B().Time().Build()).AsIntSlice()
	if err != nil {
		return 0, err
	}
	if len(at) != 2 {
		return 0, errors.New("unexpected response to TIME")
	}
	return time.Unix(at[0], at[1]*1000).Sub(began), nil
}

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
