// Package requests is how developers ask for credentials and operators decide:
// key requests, their states, and what approving one comes to.
package requests

import (
	"context"
	"log/slog"

	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
)

// Catalogue knows what is offered, and how. What it does not know is
// store.ErrNotFound.
type Catalogue interface {
	Configuration(ctx context.Context, org string) (*record.Configuration, error)
	ConfigurationFor(ctx context.Context, org string, e *record.Entry) (*record.Configuration, error)
	Entry(ctx context.Context, org, id string) (*record.Entry, error)
	EntryByPolicy(ctx context.Context, org, policy string) (*record.Entry, error)
}

// Letters are queued in the transaction of what they are about.
type Letters interface {
	Put(ctx context.Context, tx *store.Tx, l record.Letter) error
}

// Clients makes OAuth clients. It notes the keys that it made in the work, and
// refuses one client too many.
type Clients interface {
	Issue(ctx context.Context, w *credentials.Work, c Client) (record.Credential, error)
}

// A Client is an OAuth client that a developer is to get.
type Client struct {
	Developer string // id
	Policy    string
	Redirect  string // URI
	App, Use  string // what it is, and what for
	Request   string // id of the key request
}

// Deps are what a Service works with. All are required unless they say otherwise.
type Deps struct {
	Store       *store.Store
	Credentials *credentials.Keeper
	Catalogue   Catalogue
	Letters     Letters
	Events      credentials.Events
	Clients     Clients    // nil: no OAuth clients can be made
	MasterKey   secret.Key // seals secrets; the zero value: requests with one are refused
	Log         *slog.Logger
}

// Service answers for key requests. It is safe for concurrent use.
type Service struct{ d Deps }

// New returns a Service.
func New(d Deps) *Service { return &Service{d} }
