package counter_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/testenv"
)

// patience is a time-out that a busy machine does not take for an outage.
const patience = 10 * time.Second

func openValkey(t testing.TB, o counter.ValkeyOptions) *counter.Valkey {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = patience
	}
	v, err := counter.OpenValkey(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func TestValkey(t *testing.T) {
	store := testenv.Valkey(t)
	suite(t, func(t *testing.T) subject {
		return subject{Counter: openValkey(t, counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed})}
	})
}

// gateways are several that share a store and take turns.
type gateways struct {
	each []counter.Counter
	turn atomic.Int64
}

func (g *gateways) next() counter.Counter {
	return g.each[int(g.turn.Add(1))%len(g.each)]
}

func (g *gateways) Take(ctx context.Context, limits []counter.Limit, calls int, counts []counter.Count) (int, error) {
	return g.next().Take(ctx, limits, calls, counts)
}

func (g *gateways) Peek(ctx context.Context, limits []counter.Limit, counts []counter.Count) error {
	return g.next().Peek(ctx, limits, counts)
}

func (g *gateways) Reset(ctx context.Context, keys ...string) error {
	return g.next().Reset(ctx, keys...)
}

func TestValkeyOfTwoGatewaysInTurn(t *testing.T) {
	store := testenv.Valkey(t)
	suite(t, func(t *testing.T) subject {
		o := counter.ValkeyOptions{Addresses: []string{store.Addr}, Outage: counter.Closed}
		return subject{Counter: &gateways{each: []counter.Counter{openValkey(t, o), openValkey(t, o)}}}
	})
}

func TestValkeyCluster(t *testing.T) {
	store := testenv.ValkeyCluster(t)
	suite(t, func(t *testing.T) subject {
		return subject{
			Counter: openValkey(t, counter.ValkeyOptions{Addresses: store.Addresses(), Cluster: true, Outage: counter.Closed}),
			naming:  counter.Naming{Tagged: true},
		}
	})
}
