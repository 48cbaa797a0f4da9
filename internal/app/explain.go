package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/certs"
	"github.com/sluicegate/sluice/gateway/control"
	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/definition"
)

// refusalAnswer explains a request that was refused.
type refusalAnswer struct {
	Refusal *explain.Refusal `json:"refusal"`
}

// liveExplainer explains requests by the configuration in force. It implements
// control.Explainer.
type liveExplainer struct{ *live }

// Explain implements control.Explainer.
func (l liveExplainer) Explain(_ context.Context, description []byte) (any, error) {
	q, err := explain.Parse(description)
	if err != nil {
		return nil, err
	}
	g := l.gateway.Load()
	if g == nil {
		return nil, control.ErrNotFound
	}
	if q.ID != "" {
		found, ok := g.Refusal(q.ID)
		if !ok {
			return nil, control.ErrNotFound
		}
		return refusalAnswer{found}, nil
	}
	if have := l.Revision(); q.Revision != 0 && strconv.FormatInt(q.Revision, 10) != have {
		return nil, &definition.Problems{{
			Path: "revision", Message: fmt.Sprintf("this gateway serves revision %q only; the admin explains by others", have),
		}}
	}
	if since := g.Since(); q.Due() != nil && q.Due().Before(since) {
		return nil, &definition.Problems{{
			Path: "at", Message: fmt.Sprintf("this gateway serves revision %q since %s, and keeps nothing from before; the admin explains by the revision of then", l.Revision(), since.UTC().Format(time.RFC3339)),
		}}
	}
	return g.Explain(q), nil
}

// adminExplainer explains requests for the admin. If no gateway is in its process, it
// uses one that serves nothing, with the stores that gateways share.
type adminExplainer struct {
	gateway *gateway.Gateway
	serves  bool // gateway has a configuration in force, and remembers refusals
	current func() (tag string, bundle []byte)
	store   *store.Store
	ask     func(ctx context.Context, id string) (json.RawMessage, error) // all gateways, for the record of a refused request
	learn   func(context.Context) error                                   // of certificates that definitions name; nil: the gateway knows them

	secret func(ctx context.Context, org string, ref definition.SecretRef) (string, error)

	mu     sync.Mutex
	asides map[string]*gateway.Aside // by what they were made of; at most maxAsides
}

// newExplainer returns the explainer of the admin.
func (m *management) newExplainer(p managementParts) (*adminExplainer, error) {
	e := &adminExplainer{gateway: p.gateway, serves: p.gateway != nil, store: m.store, current: m.currentBundle, ask: m.askGateways, secret: m.secret}
	if e.serves {
		return e, nil
	}
	silent := common{cfg: withoutTraffic(p.cfg), log: slog.New(slog.DiscardHandler), events: p.events}
	known := &secure{store: new(certs.Store)}
	pl, err := newPlane(planeParts{common: silent, stores: p.stores, origin: func() string { return "admin" }, usage: usage.NewOperations(), secure: known})
	if err != nil {
		return nil, err
	}
	e.learn = func(ctx context.Context) error {
		all, err := m.server.Certificates(ctx)
		if err != nil {
			return err
		}
		return known.store.Take(all, silent.log)
	}
	pl.pools.Guard(p.schemaOptions().Addresses) // this process calls what it may fetch schemas from
	e.gateway = pl.gateway
	return e, nil
}

// withoutTraffic returns a configuration for a gateway that serves nothing, without
// logs, overload protection and caches.
func withoutTraffic(of *config.Config) *config.Config {
	cfg := *of
	cfg.Log.Access, cfg.Overload.TargetDelay, cfg.Gateway.RefusalsKept = "off", 0, 0
	cfg.Keys.CacheSize, cfg.Keys.NegativeSize, cfg.Cache.MaxBytes = 1, 1, 0
	cfg.GraphQL.Cache, cfg.GraphQL.RefusedCache = 1<<20, 1<<20
	return &cfg
}

// currentBundle returns the configuration for gateways, or nil before the first.
func (m *management) currentBundle() (tag string, rendered []byte) {
	ended, end := context.WithCancel(context.Background())
	end() // does not wait for the next
	b := m.server.NextBundle(ended, "")
	if b == nil {
		return "", nil
	}
	return b.ETag, b.JSON()
}

// maxAsides bounds the compiled configurations that are kept for explanations.
const maxAsides = 2

// Explain implements admin.Explainer.
func (e *adminExplainer) Explain(ctx context.Context, org string, description []byte) (any, error) {
	q, err := explain.Parse(description)
	if err != nil {
		return nil, err
	}
	if q.ID != "" {
		return e.refusal(ctx, org, q.ID)
	}
	if q.KeyHash != "" { // keys of other organisations must look absent
		row, err := e.store.KeyByHash(ctx, org, q.KeyHash)
		if errors.Is(err, store.ErrNotFound) {
			row, err = e.store.MaskedKey(ctx, org, q.KeyHash)
		}
		if err != nil {
			return nil, fmt.Errorf("the key that key_hash names: %w", err)
		}
		q.KeyHash = row.KeyHash
	}
	if q.Policy != "" {
		if _, err := e.store.PolicyByID(ctx, org, q.Policy); err != nil {
			return nil, fmt.Errorf("the policy that policy names: %w", err)
		}
	}
	report, err := e.report(ctx, org, q)
	if err != nil {
		return nil, err
	}
	if report.API != nil && report.API.Org != org {
		return nil, fmt.Errorf("the API that the request reaches is another organisation's: %w", store.ErrNotFound)
	}
	return report, e.place(ctx, report)
}

// place reports which gateways serve an API with tags.
func (e *adminExplainer) place(ctx context.Context, report *explain.Report) error {
	if report.API == nil || len(report.API.Tags) == 0 {
		return nil
	}
	rows, err := e.store.ListGateways(ctx)
	if err != nil {
		return fmt.Errorf("looking for the gateways that serve the API: %w", err)
	}
	for i := range rows {
		if definition.AnyTag(report.API.Tags, definition.SplitTags(rows[i].Tags)) {
			report.API.Gateways = append(report.API.Gateways, rows[i].Name)
		}
	}
	which := "; these have one: " + strings.Join(report.API.Gateways, ", ")
	if len(report.API.Gateways) == 0 {
		which = "; no gateway that reported within a day has one"
	}
	report.Steps[0].Said += which
	return nil
}

// refusal returns the record of a refused request, of the gateway in this process or of
// any other.
func (e *adminExplainer) refusal(ctx context.Context, org, id string) (any, error) {
	if e.serves {
		if found, ok := e.gateway.Refusal(id); ok && found.API != nil && found.API.Org == org {
			return refusalAnswer{found}, nil
		}
	}
	answer, err := e.ask(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("asking the gateways: %w", err)
	}
	found := new(explain.Refusal)
	if answer != nil {
		if err := json.Unmarshal(answer, found); err != nil {
			return nil, fmt.Errorf("reading the answer of a gateway: %w", err)
		}
	}
	if found.API == nil || found.API.Org != org {
		return nil, fmt.Errorf("no refused request with this id is remembered by any gateway; each keeps the last gateway.refusals_kept until it stops: %w", store.ErrNotFound)
	}
	return refusalAnswer{found}, nil
}

// secret returns a sealed secret.
func (m *management) secret(ctx context.Context, org string, ref definition.SecretRef) (string, error) {
	return m.server.Secret(ctx, org, ref)
}

// askGateways asks the gateways of all admins.
func (m *management) askGateways(ctx context.Context, id string) (json.RawMessage, error) {
	return m.server.Refusal(ctx, id)
}

func (e *adminExplainer) report(ctx context.Context, org string, q *explain.Request) (*explain.Report, error) {
	if err := e.then(ctx, org, q); err != nil {
		return nil, err
	}
	var served *explain.Report // by the gateway in this process
	if q.Revision == 0 && e.serves {
		served = e.gateway.Explain(q)
		if served.API != nil || served.Outcome.Reason != pipeline.ReasonRouteNotFound.String() {
			return served, nil
		}
	}
	make := func() (*definition.Bundle, error) { return e.revision(ctx, org, q.Revision) }
	tag := org + "@" + strconv.FormatInt(q.Revision, 10)
	if q.Revision == 0 {
		now, rendered := e.current()
		if rendered == nil {
			return nil, fmt.Errorf("there is no configuration yet: %w", store.ErrNotFound)
		}
		tag, make = now, func() (*definition.Bundle, error) { return definition.ParseBundle(rendered) }
	}
	aside, err := e.aside(ctx, tag, make)
	if err != nil {
		return nil, err
	}
	report := aside.Explain(q)
	if served != nil && (report.API == nil || len(report.API.Tags) == 0) {
		return served, nil // no other gateway serves more
	}
	return report, nil
}

// pageOfRevisions is how many revisions are read at once.
const pageOfRevisions = 200

// then explains a request at a moment in the past by the revision of that moment, unless
// it names a revision.
func (e *adminExplainer) then(ctx context.Context, org string, q *explain.Request) error {
	if q.Due() == nil || q.Revision != 0 || !q.Due().Before(time.Now()) {
		return nil
	}
	for page := (store.Page{Max: pageOfRevisions}); ; page.Skip += page.Max {
		list, _, err := e.store.ListRevisions(ctx, org, page)
		if err != nil {
			return fmt.Errorf("looking for the revision of then: %w", err)
		}
		for i := range list {
			if !list[i].CreatedAt.After(*q.Due()) {
				q.Revision = list[i].Revision
				return nil
			}
		}
		if len(list) < page.Max {
			return &definition.Problems{{
				Path: "at", Message: "is before the oldest revision that is kept; say revision, to explain by that one",
			}}
		}
	}
}

// aside returns the compiled configuration of a tag.
func (e *adminExplainer) aside(ctx context.Context, tag string, make func() (*definition.Bundle, error)) (*gateway.Aside, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ready := e.asides[tag]; ready != nil {
		return ready, nil
	}
	bundle, err := make()
	if err == nil {
		err = e.withSecrets(ctx, bundle)
	}
	if err == nil && e.learn != nil {
		err = e.learn(ctx)
	}
	if err != nil {
		return nil, err
	}
	ready, err := e.gateway.Aside(ctx, bundle)
	if err != nil {
		return nil, err
	}
	if e.asides == nil || len(e.asides) >= maxAsides {
		e.asides = map[string]*gateway.Aside{}
	}
	e.asides[tag] = ready
	return ready, nil
}

// withSecrets replaces references to secrets in a bundle. The admin cannot read those of
// gateways, and takes any text for them.
func (e *adminExplainer) withSecrets(ctx context.Context, b *definition.Bundle) error {
	for i, api := range b.APIs {
		with, err := e.revealed(ctx, api)
		switch {
		case errors.Is(err, store.ErrUnavailable):
			return err
		case err == nil:
			b.APIs[i] = with
		}
	}
	return nil
}

// revealed returns a definition that InForce takes its secrets of, for one API.
func (e *adminExplainer) revealed(ctx context.Context, api *definition.API) (*definition.API, error) {
	if !api.MayReferToSecrets() {
		return api, nil
	}
	var away error
	with, err := api.WithSecrets(func(ref definition.SecretRef) (string, error) {
		if ref.Kind != definition.SealedSecret {
			return "********", nil
		}
		secret, err := e.secret(ctx, api.OrgID, ref)
		if errors.Is(err, store.ErrUnavailable) {
			away = err
		}
		return secret, err
	})
	if away != nil {
		return nil, away
	}
	return with, err
}

// revision returns an organisation's configuration at a revision.
func (e *adminExplainer) revision(ctx context.Context, org string, number int64) (*definition.Bundle, error) {
	if _, err := e.store.RevisionByNumber(ctx, org, number); err != nil {
		return nil, fmt.Errorf("revision %d: %w", number, err)
	}
	objects, err := e.store.ObjectsAt(ctx, org, number)
	if err != nil {
		return nil, fmt.Errorf("revision %d: %w", number, err)
	}
	bundle, err := bundleOf(strconv.FormatInt(number, 10), objects)
	if err != nil {
		return nil, fmt.Errorf("revision %d: %w", number, err)
	}
	return bundle, nil
}

// bundleOf returns the bundle of some objects.
func bundleOf(revision string, objects []store.Object) (*definition.Bundle, error) {
	whole := struct {
		Revision string            `json:"revision"`
		APIs     []json.RawMessage `json:"apis"`
		Policies []json.RawMessage `json:"policies"`
	}{Revision: revision}
	for _, o := range objects {
		if o.Kind == "api" {
			whole.APIs = append(whole.APIs, o.Body)
		} else {
			whole.Policies = append(whole.Policies, o.Body)
		}
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, fmt.Errorf("writing a bundle: %w", err)
	}
	return definition.ParseBundle(text)
}
