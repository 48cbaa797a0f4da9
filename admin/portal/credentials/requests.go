package credentials

import (
	"context"
	"log/slog"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
)

// Catalogue returns entries and configurations, or store.ErrNotFound.
type Catalogue interface {
	Configuration(ctx context.Context, org string) (*model.Configuration, error)
	ConfigurationFor(ctx context.Context, org string, e *model.Entry) (*model.Configuration, error)
	Entry(ctx context.Context, org, id string) (*model.Entry, error)
	EntryByPolicy(ctx context.Context, org, policy string) (*model.Entry, error)
}

// Letters queues letters in the transaction of their cause.
type Letters interface {
	Put(ctx context.Context, tx *store.Tx, l model.Letter) error
}

// A ClientGrant is an OAuth client to be issued to a developer.
type ClientGrant struct {
	Developer string // id
	Policy    string
	Redirect  string // URI
	App, Use  string // what it is, and what for
	Request   string // id of the key request
}

// RequestDeps are the dependencies of Requests. All are required unless they say
// otherwise.
type RequestDeps struct {
	Store     *store.Store
	Keys      *Keys
	Catalogue Catalogue
	Letters   Letters
	Events    Events
	Clients   *Clients   // nil: no OAuth clients can be issued
	MasterKey secret.Key // seals secrets; with the zero value requests with one are refused
	Log       *slog.Logger
}

// Requests manages key requests. It is safe for concurrent use.
type Requests struct{ d RequestDeps }

// NewRequests returns Requests.
func NewRequests(d RequestDeps) *Requests { return &Requests{d} }
