// Package kafka is the msgbroker connector for Apache Kafka and what speaks its protocol.
//
// Acknowledgement: an input commits an offset when everything before it in its partition is
// settled, so that a message is committed only once every output has it. What was fetched
// and not settled when a gateway ends, or a partition moves to another member of the group,
// is delivered again.
package kafka

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

// What a record has in its headers.
const (
	metaHeader = "svc-meta-" // before the name of a value of metadata
	idHeader   = "svc-id"
)

const dialWithin = 10 * time.Second

// options are those of both directions. The hooks are called from their goroutines.
func options(s *streams.Servers, site *stream.Site, h *hooks) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(s.Addresses...), kgo.ClientID(s.ClientID), kgo.DisableClientMetrics(),
		kgo.Dialer(dialer(s, site.Dial)), kgo.WithHooks(h),
	}
	if s.User != "" {
		opts = append(opts, kgo.SASL(plain.Auth{User: s.User, Pass: string(s.Password)}.AsMechanism()))
	}
	return opts
}

// dialer returns how brokers are called: by the guarded dialer, with TLS if that is asked
// for.
func dialer(s *streams.Servers, dial stream.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialWithin)
		defer cancel()
		conn, err := dial(ctx, network, address)
		if err != nil || !s.TLS {
			return conn, err
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			host = address
		}
		over := tls.Client(conn, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.SkipVerify})
		if err := over.HandshakeContext(ctx); err != nil {
			_ = conn.Close() // it is not used
			return nil, err
		}
		return over, nil
	}
}

// hooks follow the connections of a client.
type hooks struct {
	state *stream.State
	lost  func() // a broker cannot be reached; nil: that changes nothing
}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (h *hooks) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	h.state.Attempts.Add(1)
	if err != nil {
		h.state.Fail(err)
		if h.lost != nil {
			h.lost()
		}
	}
}
