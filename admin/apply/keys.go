package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

func (r *reading) key(ctx context.Context, i int, wanted *Key) error {
	place := fmt.Sprintf("keys[%q].session", wanted.Hash)
	if wanted.Generate {
		place = fmt.Sprintf("keys[%d].session", i)
	}
	if wanted.Generate == (wanted.Hash != "") {
		r.add(fmt.Sprintf("keys[%d]", i), "has either key_hash, or generate: true")
		return nil
	}
	if credential.IsOrg(wanted.Hash) {
		r.add(fmt.Sprintf("keys[%d].key_hash", i), "is that of the limits of an organisation, which are no key; PUT /api/orgs/{id} changes them")
		return nil
	}
	// The mask of a secret stands for nothing here: sessions are sent whole.
	session, err := definition.ParseSession(r.restored(place, wanted.Session, nil))
	if err != nil {
		if other := r.problem(place, err); other != nil {
			r.add(place, "%v", other)
		}
		return nil
	}
	if given, err := keys.TakeID(session); given != "" || err != nil {
		r.add(place, "key: cannot be given in a batch; create that key by POST /api/keys first, and name its hash here")
		return nil
	}
	r.unknown(place, session)
	if wanted.Hash != "" && r.hashes[wanted.Hash] {
		r.add(fmt.Sprintf("keys[%d]", i), "the hash %q is there twice", wanted.Hash)
		return nil
	}
	r.hashes[wanted.Hash] = true
	if r.foreign(place, session.OrgID) {
		return nil
	}
	session.OrgID = r.by.Org
	policies, err := r.policySet(ctx, session)
	if err != nil {
		return err
	}
	gather := &gatherer{reading: r}
	service := r.applier.Keys
	service.Store = gather
	service.Policies = func() *definition.PolicySet { return policies }
	service.API = func(id string) *definition.API { return gather.api(ctx, id) }
	service.Legacy = r.legacyHashes
	if wanted.Generate {
		err = r.make(ctx, i, &service, session)
	} else {
		_, err = service.Adopt(ctx, wanted.Hash, session)
	}
	if gather.failed != nil {
		return gather.failed
	}
	return r.keyProblem(place, err)
}

// legacyHashes returns the stored legacy hashes, which are read once.
func (r *reading) legacyHashes(ctx context.Context) (all []string, err error) {
	if r.legacy == nil {
		if all, err = r.applier.Store.LegacyHashes(ctx, r.by.Org); err == nil {
			r.legacy = append([]string{}, all...)
		}
	}
	return r.legacy, err
}

// make generates the key at index i of the batch.
func (r *reading) make(ctx context.Context, i int, service *keys.Service, session *definition.Session) error {
	issued, err := service.Create(ctx, "", session, false)
	if err == nil {
		r.made = append(r.made, NewKey{At: i, Name: session.Alias, Key: issued.Key, Hash: issued.Hash})
	}
	return err
}

// keyProblem collects refusals of the rules of keys.
func (r *reading) keyProblem(place string, err error) error {
	policy, unfit := errors.AsType[*keys.PolicyError](err)
	custom, unnamed := errors.AsType[*keys.CustomError](err)
	switch {
	case err == nil:
	case unfit:
		r.add(place+".apply_policies", "%v", policy)
	case unnamed:
		r.add(place, "%v", custom)
	case errors.Is(err, keys.ErrMaster):
		r.add(place, "access_rights: must have an entry, or apply_policies must")
	default:
		return r.problem(place, err)
	}
	return nil
}

// policySet returns the policies of a session, from the batch or else as stored.
func (r *reading) policySet(ctx context.Context, session *definition.Session) (*definition.PolicySet, error) {
	var all []*definition.Policy
	var others []string
	for _, id := range session.Policies() {
		if p := r.policies[id]; p != nil {
			in := *p
			in.OrgID = r.by.Org
			all = append(all, &in)
			continue
		}
		others = append(others, id)
	}
	if len(others) == 0 {
		return definition.NewPolicySet(all), nil
	}
	bodies, err := r.applier.Store.PolicyBodies(ctx, r.by.Org, others)
	if err != nil {
		return nil, err
	}
	for _, body := range bodies {
		p := new(definition.Policy)
		if err := json.Unmarshal(body, p); err != nil {
			return nil, fmt.Errorf("reading a policy: %w", err)
		}
		all = append(all, p)
	}
	return definition.NewPolicySet(all), nil
}

// A gatherer is the keys.Store of one key of a batch. It reads the database and adds
// changes to the batch.
type gatherer struct {
	*reading
	failed error // of a read that could not return an error
}

func (g *gatherer) api(ctx context.Context, id string) *definition.API {
	if api := g.apis[id]; api != nil {
		return api
	}
	api, err := g.storedAPI(ctx, id)
	if err != nil {
		g.failed = err
	}
	return api
}

// Get implements keys.Store.
func (g *gatherer) Get(ctx context.Context, hash string) (*definition.Session, error) {
	row, err := g.applier.Store.KeyByHash(ctx, g.by.Org, hash)
	if err != nil {
		return nil, store.KeyError(err)
	}
	return store.SessionOf(&row)
}

// List implements keys.Store. Batches do not list keys.
func (g *gatherer) List(context.Context, string, int) (hashes []string, next string, err error) {
	return nil, "", nil
}

// Commit implements keys.Store. The change is made later, with the batch.
func (g *gatherer) Commit(_ context.Context, c keys.Change) error {
	g.batch.Keys = append(g.batch.Keys, store.NewKeyChange(c, g.applier.Keys.Options.Hasher.Shown))
	return nil
}
