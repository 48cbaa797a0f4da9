// Package webhooks tells developers and organisations of what happens in the
// portal: whoever wants to be told of events says where, and gets messages that
// are signed as Standard Webhooks has it (https://www.standardwebhooks.com).
package webhooks

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/guard"
	"github.com/sluicegate/sluice/internal/secret"
)

// Letters sends letters.
type Letters interface {
	// Put queues a letter as a part of a transaction.
	Put(ctx context.Context, tx *store.Tx, l record.Letter) error
}

// Deps are what a Service works with. Letters may be nil, and then nobody gets
// one.
type Deps struct {
	Store     *store.Store
	Queue     *delivery.Queue
	Letters   Letters
	MasterKey secret.Key   // seals the secrets that messages are signed with
	Outbound  guard.Policy // where messages may go
	Now       func() time.Time
	Log       *slog.Logger
}

// Service looks after all webhooks. Make one with New.
type Service struct {
	deps   Deps
	client *http.Client
}

// connectWithin bounds connecting to a receiver and, again, its TLS handshake.
const connectWithin = 10 * time.Second

// New returns a service, to which the queue hands the messages from now on.
func New(d Deps) *Service {
	s := &Service{deps: d, client: &http.Client{
		Transport: d.Outbound.Transport(connectWithin),
		// A redirect could lead to where the URL was not permitted to.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	d.Queue.Handle(delivery.Webhook, webhookSender{s})
	d.Queue.Handle(delivery.Hook, hookSender{s})
	return s
}
