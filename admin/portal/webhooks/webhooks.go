// Package webhooks sends events of the portal to developers and organisations, and messages
// of streams to developers, signed by the Standard Webhooks specification
// (https://www.standardwebhooks.com).
package webhooks

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/secret"
)

// Letters queues letters.
type Letters interface {
	// Put queues a letter as part of a transaction.
	Put(ctx context.Context, tx *store.Tx, l model.Letter) error
}

// Deps are the dependencies of a Service. Without Letters no letters are sent.
type Deps struct {
	Store     *store.Store
	Queue     *delivery.Queue
	Letters   Letters
	MasterKey secret.Key       // seals the secrets of webhooks
	Outbound  dialguard.Policy // where messages of organisations may go
	Developer dialguard.Policy // where those of developers may go, who choose the URLs
	Now       func() time.Time
	Log       *slog.Logger
}

// Service manages webhooks and raises events. Make one with New.
type Service struct {
	deps       Deps
	operators  *reach
	developers *reach

	events    *prometheus.CounterVec
	sources   sources
	decisions decisions
}

// reach is where messages may go.
type reach struct {
	policy dialguard.Policy
	client *http.Client
}

func newReach(policy dialguard.Policy) *reach {
	return &reach{policy, &http.Client{
		Transport: policy.Transport(connectWithin),
		// A redirect could lead to where the URL was not permitted to.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// reachOf returns where messages to the webhooks of a developer may go, nil for those
// of the organisation.
func (s *Service) reachOf(developer *string) *reach {
	if developer == nil {
		return s.operators
	}
	return s.developers
}

// connectWithin bounds connecting to a receiver and, again, its TLS handshake.
const connectWithin = 10 * time.Second

// New returns a Service and registers it as the sender of its kinds of messages.
func New(d Deps) *Service {
	s := &Service{
		deps: d, operators: newReach(d.Outbound), developers: newReach(d.Developer), events: newStreamEvents(),
		sources: sources{known: make(map[string]*outputs)}, decisions: decisions{known: make(map[decision]bool)},
	}
	d.Queue.Handle(delivery.Webhook, webhookSender{s})
	d.Queue.Handle(delivery.Hook, hookSender{s})
	return s
}
