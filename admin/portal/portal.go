// Package portal is where developers ask for access, operators decide, and a
// credential comes out: the rooms of the portal, put together.
package portal

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/attempts"
	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/mail"
	"github.com/sluicegate/sluice/admin/portal/catalogue"
	"github.com/sluicegate/sluice/admin/portal/clients"
	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/developers"
	"github.com/sluicegate/sluice/admin/portal/documents"
	"github.com/sluicegate/sluice/admin/portal/requests"
	"github.com/sluicegate/sluice/admin/portal/webhooks"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/guard"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/secret"
)

// SessionPrefix begins every credential of a signed-in developer.
const SessionPrefix = developers.SessionPrefix

// Deps are what a Portal works with.
type Deps struct {
	Store      *store.Store
	Counters   counter.Counter   // of the keys' quotas
	Naming     counter.Naming    // of Counters
	KeyOptions keys.Options      // how keys are made and found; its Passwords hash those of developers, too
	Deliver    func(hash string) // brings a key that was committed to the gateways without delay
	MasterKey  secret.Key        // seals what is secret; the zero value: such things cannot be kept
	Settings
	LoginRate int                   // log-ins that developers try a minute from one address before 429; 0: 5
	Metrics   prometheus.Registerer // nil: not measured
	Now       func() time.Time
	Log       *slog.Logger
}

// Settings are what an operator may choose.
type Settings struct {
	Outbound  guard.Policy  // where messages to webhooks may go, whose URLs developers choose
	PublicURL string        // under which developers reach the portal, for the links in letters
	Server    *mail.Server  // that sends letters; nil: they are kept in a mailbox
	Mailbox   int           // letters of one organisation in it; 0: 1,000
	TokenTTL  time.Duration // how long access tokens of OAuth clients are in force; 0: 1 h
}

// Portal is the portal of all organisations. Make one with New.
type Portal struct {
	routes  []rest.Route
	workers []func(context.Context) // in the background, until their context ends
	people  *developers.Service
	issued  *credentials.Keeper
	hooks   *webhooks.Service
	store   *store.Store
}

// New returns a Portal. The database may be away.
func New(d Deps) (*Portal, error) {
	p := &Portal{store: d.Store}
	queue, err := delivery.New(delivery.Options{Store: d.Store, MasterKey: d.MasterKey, Metrics: d.Metrics, Log: d.Log})
	if err != nil {
		return nil, err
	}
	written := documents.New(d.Store)
	offers := catalogue.New(d.Store, p.Identify, written)
	letters := p.openMail(d, queue, offers)
	hooks := webhooks.New(webhooks.Deps{
		Store: d.Store, Queue: queue, Letters: letters, MasterKey: d.MasterKey, Outbound: d.Outbound, Now: d.Now, Log: d.Log,
	})
	p.hooks = hooks
	p.issued = credentials.New(credentials.Deps{
		Store: d.Store, Counters: d.Counters, Naming: d.Naming, Options: d.KeyOptions, Deliver: d.Deliver, Events: hooks, Now: d.Now, Log: d.Log,
	})
	p.people = developers.New(developers.Deps{
		Store: d.Store, Configurations: offers, Letters: letters, Keys: []developers.Keys{p.issued}, KeyID: p.issued.PublicID,
		Passwords: d.KeyOptions.Passwords, Deliver: d.Deliver, LoginRate: d.LoginRate, Now: d.Now, Log: d.Log,
	})
	apps := clients.New(clients.Deps{
		Store: d.Store, Credentials: p.issued, Catalogue: offers, Attempts: attempts.New(max(d.LoginRate, 1), d.Now), Hasher: d.KeyOptions.Hasher,
		TokenTTL: cmp.Or(d.TokenTTL, time.Hour), Deliver: d.Deliver, Now: d.Now, Log: d.Log,
	})
	asked := requests.New(requests.Deps{
		Store: d.Store, Credentials: p.issued, Catalogue: offers, Letters: letters, Events: hooks, Clients: apps, MasterKey: d.MasterKey, Log: d.Log,
	})
	p.routes = append(p.routes, slices.Concat(offers.Routes(), written.Routes(), p.issued.Routes(), asked.Routes(), queue.Routes(), hooks.Routes(), apps.Routes(), p.people.Routes())...)
	p.workers = append(p.workers, queue.Run, apps.Run, p.people.Run)
	return p, nil
}

// openMail opens the room that letters leave by.
func (p *Portal) openMail(d Deps, queue *delivery.Queue, config mail.Configurer) *mail.Letters {
	mailbox := mail.NewMailbox(d.Store, queue, cmp.Or(d.Mailbox, 1000))
	if d.Server != nil {
		queue.Handle(delivery.Letter, d.Server)
	} else {
		queue.Handle(delivery.Letter, mailbox)
	}
	p.routes = append(p.routes, mailbox.Routes()...)
	return mail.NewLetters(queue, config, d.PublicURL)
}

// Routes lists what the portal answers.
func (p *Portal) Routes() []rest.Route { return p.routes }

// Identify returns which developer has a credential; store.ErrNotFound is nobody.
func (p *Portal) Identify(ctx context.Context, credential []byte) (rest.Principal, error) {
	return p.people.Identify(ctx, credential)
}

// Run does the portal's work in the background until ctx ends.
func (p *Portal) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, work := range p.workers {
		running.Go(func() { work(ctx) })
	}
	running.Wait()
}
