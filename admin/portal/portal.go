// Package portal is the developer portal: its catalogue, the developers who sign up,
// their key requests and credentials, and the webhooks and letters that report what
// happens. It puts the packages below together.
package portal

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/brand"
	"github.com/sluicegate/sluice/admin/portal/catalogue"
	"github.com/sluicegate/sluice/admin/portal/content"
	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/developers"
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/portal/webhooks"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/throttle"
)

// SessionPrefix begins every credential of a signed-in developer.
const SessionPrefix = developers.SessionPrefix

// EventsPath is where portal_webhook outputs of streams post messages to.
const EventsPath = webhooks.EventsPath

// Deps are what a Portal works with.
type Deps struct {
	Store      *store.Store
	Counters   counter.Counter   // of the keys' quotas
	Naming     counter.Naming    // of Counters
	KeyOptions keys.Options      // how keys are made and found; its Passwords hash those of developers, too
	Deliver    func(hash string) // writes a committed key to the gateways' key store without delay
	MasterKey  secret.Key        // seals secrets; with the zero value nothing secret can be stored
	Settings
	LoginRate int                   // failed log-ins of developers a minute from one address before 429; 0: 5
	Metrics   prometheus.Registerer // nil: not measured
	Now       func() time.Time
	Log       *slog.Logger
}

// Settings are what an operator may choose.
type Settings struct {
	Outbound     dialguard.Policy     // where messages to webhooks of organisations may go
	Developer    dialguard.Policy     // where messages to webhooks of developers may go
	PublicURL    string               // under which developers reach the portal, for the links in letters
	Organisation string               // whose portal visitors see, by id; "": the first
	Gateway      func() string        // URL of the gateways for examples in the portal; nil or "": not known
	Playground   []byte               // script of the playground, compressed with gzip; nil: there is none
	Apart        bool                 // the pages are served on a listener of their own
	HSTS         time.Duration        // how long browsers use HTTPS alone for that listener; 0: not said
	Server       *delivery.MailServer // sends letters; nil: they are kept in a mailbox
	Mailbox      int                  // letters of one organisation in it; 0: 1,000
	TokenTTL     time.Duration        // how long access tokens of OAuth clients are valid; 0: 1 h
}

// Portal is the portal of all organisations. Make one with New.
type Portal struct {
	store      *store.Store
	entries    *catalogue.Service
	developers *developers.Service
	keys       *credentials.Keys
	letters    *delivery.Letters
	routes     []rest.Route
	workers    []func(context.Context) // in the background, until their context ends
}

// New returns a Portal, and registers a hook of the store that raises the events about
// APIs. The database may be unavailable.
func New(d Deps) (*Portal, error) {
	p := &Portal{store: d.Store}
	queue, err := delivery.New(delivery.Options{Store: d.Store, MasterKey: d.MasterKey, Metrics: d.Metrics, Log: d.Log})
	if err != nil {
		return nil, err
	}
	documents := catalogue.NewDocuments(d.Store)
	entries := catalogue.New(d.Store, p.Identify, documents).StoresKeysInClear(d.KeyOptions.Hasher.KeepsKeys()).ShowsVisitors(d.Organisation)
	p.entries = entries
	letters := p.openMail(d, queue, entries)
	p.letters = letters
	hooks := webhooks.New(webhooks.Deps{
		Store: d.Store, Queue: queue, Letters: letters, MasterKey: d.MasterKey, Outbound: d.Outbound, Developer: d.Developer, Now: d.Now, Log: d.Log,
	})
	if d.Metrics != nil {
		if err := d.Metrics.Register(hooks.Metrics()); err != nil {
			return nil, fmt.Errorf("registering metrics of events: %w", err)
		}
	}
	d.Store.OnPublish(raiseAPIEvents(hooks))
	p.keys = credentials.NewKeys(credentials.KeyDeps{
		Store: d.Store, Counters: d.Counters, Naming: d.Naming, Options: d.KeyOptions, Deliver: d.Deliver, Events: hooks, Now: d.Now, Log: d.Log,
	})
	p.developers = developers.New(developers.Deps{
		Store: d.Store, Configurations: entries, Letters: letters, Keys: p.keys, KeyID: p.keys.PublicID,
		Passwords: d.KeyOptions.Passwords, Deliver: d.Deliver, LoginRate: d.LoginRate, Now: d.Now, Log: d.Log,
	})
	clients := credentials.NewClients(credentials.ClientDeps{
		Store: d.Store, Keys: p.keys, Catalogue: entries, Attempts: throttle.New(max(d.LoginRate, 1), d.Now), Hasher: d.KeyOptions.Hasher,
		TokenTTL: cmp.Or(d.TokenTTL, time.Hour), Deliver: d.Deliver, Now: d.Now, Log: d.Log,
	})
	requests := credentials.NewRequests(credentials.RequestDeps{
		Store: d.Store, Keys: p.keys, Catalogue: entries, Letters: letters, Events: hooks, Clients: clients, MasterKey: d.MasterKey, Log: d.Log,
	})
	p.routes = append(p.routes, slices.Concat(entries.Routes(), documents.Routes(), p.keys.Routes(), requests.Routes(), queue.Routes(), hooks.Routes(), brand.New(d.Store, entries.VisitorOrg).Routes(), content.New(d.Store, entries.VisitorOrg).Routes(), clients.Routes(), p.developers.Routes())...)
	p.workers = append(p.workers, queue.Run, clients.Run, p.developers.Run)
	return p, nil
}

// openMail chooses what sends letters: a server, or else the mailbox.
func (p *Portal) openMail(d Deps, queue *delivery.Queue, config delivery.Configurer) *delivery.Letters {
	mailbox := delivery.NewMailbox(d.Store, queue, cmp.Or(d.Mailbox, 1000))
	if d.Server != nil {
		queue.Handle(delivery.Letter, d.Server)
	} else {
		queue.Handle(delivery.Letter, mailbox)
	}
	p.routes = append(p.routes, mailbox.Routes()...)
	return delivery.NewLetters(queue, config, d.PublicURL)
}

// Routes lists the routes of the portal.
func (p *Portal) Routes() []rest.Route { return p.routes }

// Letters writes letters of the installation, by the portal's mail server or into its mailbox.
func (p *Portal) Letters() *delivery.Letters { return p.letters }

// Identify returns the developer whose session a credential is, or store.ErrNotFound.
func (p *Portal) Identify(ctx context.Context, credential []byte) (rest.Principal, error) {
	return p.developers.Identify(ctx, credential)
}

// OwnKey returns the hash of the developer's own key that the path of a call names.
func (p *Portal) OwnKey(ctx context.Context, c *rest.Call) (hash string, err error) {
	r := p.store.Reader()
	hash, err = p.keys.HashOf(ctx, r, credentials.Owner{Org: c.Who.Org, Developer: c.Who.ID}, c.Param("key"))
	if err != nil {
		return "", err
	}
	if _, err := r.DeveloperKey(ctx, c.Who.Org, c.Who.ID, hash); err != nil {
		return "", rest.Missing(err, "Could not retrieve portal object.")
	}
	return hash, nil
}

// OwnCaller returns a developer's own key that may call an API, by the id that names it
// in calls.
func (p *Portal) OwnCaller(ctx context.Context, who rest.Principal, key, api string) (*credentials.Caller, error) {
	return p.keys.Caller(ctx, credentials.Owner{Org: who.Org, Developer: who.ID}, key, api)
}

// Offered returns an entry of an organisation's catalogue that developers see.
func (p *Portal) Offered(ctx context.Context, org, id string) (*model.Entry, error) {
	return p.entries.Offered(ctx, org, id)
}

// Run does the portal's work in the background until ctx ends.
func (p *Portal) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, work := range p.workers {
		running.Go(func() { work(ctx) })
	}
	running.Wait()
}
