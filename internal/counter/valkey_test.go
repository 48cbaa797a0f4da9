package counter_test

import (
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

func TestValkeyCluster(t *testing.T) {
	store := testenv.ValkeyCluster(t)
	suite(t, func(t *testing.T) subject {
		return subject{
			Counter: openValkey(t, counter.ValkeyOptions{Addresses: store.Addresses(), Cluster: true, Outage: counter.Closed}),
			naming:  counter.Naming{Tagged: true},
		}
	})
}
