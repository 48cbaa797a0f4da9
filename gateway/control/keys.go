package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/valyala/fasthttp"
)

// Keys creates, returns and changes keys. Its errors are those of package keys; one of
// type *Error becomes the response.
type Keys interface {
	// Create makes a key and returns it; custom is an id that the caller chose, or "".
	// With keepQuota a key that is replaced keeps its used quota.
	Create(ctx context.Context, custom string, s *definition.Session, keepQuota bool) (keys.Issued, error)

	// Update replaces a key's session.
	Update(ctx context.Context, ref keys.Ref, s *definition.Session, keepQuota bool) (keys.Issued, error)

	// Get returns a key's session with what is left of its quotas, and its hash.
	Get(ctx context.Context, ref keys.Ref) (*definition.Session, string, error)

	// Delete removes a key.
	Delete(ctx context.Context, ref keys.Ref) (keys.Issued, error)

	// ResetQuota resets the used quotas of a key.
	ResetQuota(ctx context.Context, ref keys.Ref) (keys.Issued, error)

	// Rotate creates the successor of a key, which stays valid for a grace period.
	Rotate(ctx context.Context, ref keys.Ref, grace time.Duration) (keys.Issued, error)

	// Retire ends the keys that have a successor.
	Retire(ctx context.Context, ref keys.Ref) (keys.Issued, error)

	// SetPolicies replaces the policies of a key.
	SetPolicies(ctx context.Context, ref keys.Ref, policies []string) (keys.Issued, error)

	// Find returns the hashes of matching keys or, where keys are stored in clear, the
	// keys.
	Find(ctx context.Context, f keys.Filter) ([]string, error)

	// Preview returns a session with its policies applied.
	Preview(ctx context.Context, s *definition.Session) (*definition.Session, error)
}

// LocalKeys are the keys of a gateway without an admin.
type LocalKeys struct{ *keys.Service }

// Preview implements Keys.
func (l LocalKeys) Preview(_ context.Context, s *definition.Session) (*definition.Session, error) {
	return l.Service.Preview(s)
}

// The kinds of bodies with a session. They differ in the error for a body that is not
// JSON.
var (
	keyKind    = sessionKind(refuse(fasthttp.StatusBadRequest, "Request malformed"))
	createKind = sessionKind(refuse(fasthttp.StatusInternalServerError, "Unmarshalling failed"))
)

func sessionKind(malformed *Error) kind[*definition.Session] {
	return kind[*definition.Session]{parse: definition.ParseSession, name: "Key", malformed: malformed}
}

// ref returns the key that a call names.
func (c *call) ref() (keys.Ref, error) {
	hashed, err := c.flag("hashed")
	if err != nil {
		return keys.Ref{}, err
	}
	named, err := c.flag("username")
	if err != nil {
		return keys.Ref{}, err
	}
	if named && hashed {
		return keys.Ref{}, refuse(fasthttp.StatusBadRequest, "username=true names a user and hashed=true a hash; send one of them")
	}
	return keys.Ref{ID: c.id, Hashed: hashed, User: named, Org: c.query["org_id"]}, nil
}

// change parses a call that creates or changes a key: the key, its session, and whether
// its used quota stays.
func (c *call) change(k kind[*definition.Session]) (ref keys.Ref, s *definition.Session, keepQuota bool, err error) {
	if ref, err = c.ref(); err != nil {
		return ref, nil, false, err
	}
	if keepQuota, err = c.flag("suppress_reset"); err != nil {
		return ref, nil, false, err
	}
	if s, err = read(c, k); err != nil {
		return ref, nil, false, err
	}
	if c.chosen, err = keys.TakeID(s); err != nil {
		return ref, nil, false, invalid(k.name, problemsOf(err))
	}
	if c.chosen != "" && c.id != "" && c.chosen != c.id {
		return ref, nil, false, refuse(fasthttp.StatusBadRequest, "key in the session does not match that in the path")
	}
	return ref, s, keepQuota, nil
}

func (a *API) createKey(ctx context.Context, c *call) (any, error) {
	return a.create(ctx, c, createKind, creating)
}

func (a *API) addKey(ctx context.Context, c *call) (any, error) {
	return a.create(ctx, c, keyKind, creating)
}

// nameKey creates a key with the id in the path.
func (a *API) nameKey(ctx context.Context, c *call) (any, error) {
	return a.create(ctx, c, keyKind, naming)
}

func (a *API) create(ctx context.Context, c *call, k kind[*definition.Session], words keyWords) (any, error) {
	ref, session, keep, err := c.change(k)
	if err != nil {
		return nil, err
	}
	if session.OrgID == "" {
		session.OrgID = ref.Org
	} else if ref.Org != "" && ref.Org != session.OrgID {
		return nil, refuse(fasthttp.StatusBadRequest, "org_id in the query does not match that in the session")
	}
	issued, err := a.deps.Keys.Create(ctx, cmp.Or(c.chosen, c.id), session, keep)
	if err != nil {
		return nil, words.fault(err)
	}
	a.raise(event.TokenCreated, issued)
	return &change{Key: issued.Key, Status: "ok", Action: added, KeyHash: issued.Hash, Warnings: c.warnings}, nil
}

func (a *API) getKey(ctx context.Context, c *call) (any, error) {
	ref, err := c.ref()
	if err != nil {
		return nil, err
	}
	session, _, err := a.deps.Keys.Get(ctx, ref)
	if err != nil {
		return nil, looking.fault(err)
	}
	return session, nil
}

func (a *API) updateKey(ctx context.Context, c *call) (any, error) {
	ref, session, keep, err := c.change(keyKind)
	if err != nil {
		return nil, err
	}
	issued, err := a.deps.Keys.Update(ctx, ref, session, keep)
	if err != nil {
		return nil, updating.fault(err)
	}
	a.raise(event.TokenUpdated, issued)
	answer := changed(ref.ID, modified).warn(c.warnings)
	if !ref.Hashed {
		answer.KeyHash = issued.Hash
	}
	return answer, nil
}

func (a *API) deleteKey(ctx context.Context, c *call) (any, error) {
	ref, err := c.ref()
	if err != nil {
		return nil, err
	}
	gone, err := a.deps.Keys.Delete(ctx, ref)
	if err != nil {
		return nil, deleting.fault(err)
	}
	a.raise(event.TokenDeleted, gone)
	return changed(ref.ID, deleted), nil
}

func (a *API) resetQuota(ctx context.Context, c *call) (any, error) {
	ref, err := c.ref()
	if err != nil {
		return nil, err
	}
	issued, err := a.deps.Keys.ResetQuota(ctx, ref)
	if err != nil {
		return nil, looking.fault(err)
	}
	a.raise(event.TokenUpdated, issued)
	return &outcome{Status: "ok", Message: "quota reset"}, nil
}

func (a *API) previewKey(ctx context.Context, c *call) (any, error) {
	_, session, _, err := c.change(createKind)
	if err != nil {
		return nil, err
	}
	applied, err := a.deps.Keys.Preview(ctx, session)
	if err != nil {
		return nil, creating.fault(err)
	}
	return applied, nil
}

// keyList is the response that lists keys.
type keyList struct {
	Keys []string `json:"keys"`
}

func (a *API) listKeys(ctx context.Context, c *call) (any, error) {
	if !a.deps.ListKeys {
		return nil, refuse(fasthttp.StatusNotFound, "Hashed key listing is disabled in config (enable_hashed_keys_listing)")
	}
	if _, err := c.ref(); err != nil {
		return nil, err
	}
	found, err := a.deps.Keys.Find(ctx, keys.Filter{Prefix: c.query["filter"], API: c.query["api_id"], Org: c.query["org_id"]})
	if err != nil {
		return nil, looking.fault(err)
	}
	if found == nil {
		found = []string{}
	}
	return &keyList{Keys: found}, nil
}

// swap is the request body that replaces the policies of a key.
type swap struct {
	Policy   string   `json:"policy"`
	Policies []string `json:"apply_policies"`
}

var swapKind = kind[swap]{
	parse: parseSwap, name: "Request",
	malformed: refuse(fasthttp.StatusBadRequest, "Request malformed"),
}

func parseSwap(body []byte) (swap, error) {
	var s swap
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	err := dec.Decode(&s)
	if err == nil && dec.More() {
		err = errors.New("something follows the object")
	}
	if err != nil {
		return s, errors.New(`must be {"policy": "<id>"} or {"apply_policies": ["<id>", …]}: ` + strings.TrimPrefix(err.Error(), "json: "))
	}
	switch {
	case s.Policy == "" && len(s.Policies) == 0:
		return s, errors.New(`policy: must be the id of a policy; without it apply_policies must have one at least`)
	case s.Policy != "" && len(s.Policies) > 0:
		return s, errors.New("policy: must be left out when apply_policies is given")
	case s.Policy != "":
		s.Policies = []string{s.Policy}
	}
	return s, nil
}

// swapPolicies takes the hash of a key, whatever the query says.
func (a *API) swapPolicies(ctx context.Context, c *call) (any, error) {
	wanted, err := read(c, swapKind)
	if err != nil {
		return nil, err
	}
	issued, err := a.deps.Keys.SetPolicies(ctx, keys.Ref{ID: c.id, Hashed: true}, wanted.Policies)
	if err != nil {
		return nil, swapping.fault(err)
	}
	a.raise(event.TokenUpdated, issued)
	return changed(c.id, updated), nil
}

// raise raises an event about a key, which is named by the beginning of its hash. A key
// that is stored in clear has none and is not named.
func (a *API) raise(name event.Name, key keys.Issued) {
	if a.deps.Events != nil {
		a.deps.Events.Raise(event.Event{Name: name, At: time.Now(), Key: key.Hash[:min(len(key.Hash), 12)]})
	}
}
