package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/redact"
)

func (s *Server) keyRoutes() []rest.Route {
	lists := []string{"p", "page_size", "q", "api_id"}
	rows := append([]string{"view", "active", "label", "policy_id", "sort"}, lists...)
	all := []rest.Route{
		{
			Method: "GET", Path: "/api/keys", Summary: "List keys by their hashes", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Query: rows, Reply: keyList{}, Rows: keyRows{}, Handle: s.listKeys,
		},
		{
			Method: "GET", Path: "/api/apis/keys", Summary: "List keys by their hashes", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Query: rows, Reply: keyList{}, Rows: keyRows{}, Handle: s.listKeys,
		},
		{
			Method: "GET", Path: "/api/apis/{id}/keys", Summary: "List the keys that may call an API", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Query: []string{"view", "active", "label", "policy_id", "sort", "p", "page_size", "q"}, Reply: keyList{}, Rows: keyRows{}, Handle: s.listKeys,
		},
		{
			Method: "GET", Path: "/api/keys/detailed", Summary: "List keys with their sessions", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Query: lists, Reply: detailedKeys{}, Handle: s.listDetailedKeys,
		},
		{
			Method: "GET", Path: "/api/keys/legacy_hashes", Summary: "Count the keys that are still valid under legacy hashes", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Reply: legacyKeys{}, Handle: s.countLegacyKeys,
		},
		{
			Method: "POST", Path: "/api/gateway/keys/lookup", Summary: "Find a key's session for a gateway whose key store may have lost it", Tag: "Gateways", Role: rest.Gateway,
			Body: keyLookup{}, Reply: foundKey{}, Wrong: []int{400, 404, 413, 415}, Handle: s.lookupKey,
		},
		{
			Method: "POST", Path: "/api/gateway/keys/strengthen", Summary: "Replace the legacy hash of a key that was used by SHA-256", Tag: "Gateways", Role: rest.Gateway,
			Body: strengthening{}, Reply: strengthenedKey{}, Wrong: []int{400, 404, 409, 413, 415}, Handle: s.strengthenKey,
		},
		{
			Method: "GET", Path: "/api/gateway/keys/changes", Summary: "Get the hashes of keys that changed after a position, once there are some", Tag: "Gateways", Role: rest.Gateway, Waits: true,
			Query: []string{"position", "wait"}, Reply: definition.KeyChanges{}, Wrong: []int{400}, Secret: true, Handle: s.getKeyChanges,
		},
		{
			Method: "POST", Path: "/api/keys/sync", Summary: "Make the key store of the gateways hold what the database has; used quotas stay", Tag: "Keys", Role: rest.Admin,
			Within: syncWithin, Reply: keystore.Difference{}, Wrong: []int{400}, Handle: s.syncKeys,
		},
		{
			Method: "POST", Path: "/api/keys", Summary: "Create a key; the answer shows it this once", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"suppress_reset", "strict"}, Body: definition.Session{}, Reply: keyDetail{}, Wrong: []int{400, 409, 413, 415}, Secret: true, Handle: s.createKey,
		},
		{
			Method: "POST", Path: "/api/keys/find", Summary: "Find a key without writing it into an address: by the key itself, its hash or its custom id", Tag: "Keys", Role: rest.Viewer,
			Body: keyNamed{}, Reply: keyFound{}, Wrong: []int{400, 404, 413, 415}, Handle: s.findKey,
		},
		{
			Method: "POST", Path: "/api/keys/preview", Summary: "Show a session with its policies applied; nothing is stored", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Query: strictly, Body: definition.Session{}, Reply: definition.Session{}, Wrong: []int{400, 413, 415}, Handle: s.previewKey,
		},
		{
			Method: "POST", Path: "/api/keys/{key}", Summary: "Create or replace a key that has a custom id", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"suppress_reset", "strict"}, Body: definition.Session{}, Reply: keyDetail{}, Wrong: []int{400, 409, 413, 415}, Secret: true, Handle: s.createKey,
		},
		{
			Method: "POST", Path: "/api/keys/{key}/reset_quota", Summary: "Forget a key's used quota", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"hashed"}, Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.resetKeyQuota,
		},
		{
			Method: "POST", Path: "/api/keys/{key}/rotate", Summary: "Make a successor of a key; both are one to counters, and the answer shows it this once", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"hashed"}, Body: rotation{}, Reply: keyDetail{}, Wrong: []int{400, 404, 413, 415}, Secret: true, Handle: s.rotateKey,
		},
		{
			Method: "DELETE", Path: "/api/keys/{key}/rotate", Summary: "End the grace of the keys before the newest", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"hashed"}, Reply: keyDetail{}, Wrong: []int{400, 404}, Handle: s.endGrace,
		},
		{
			Method: "PUT", Path: "/api/keys/{key}/policies", Summary: "Replace a key's policies; its used quota stays", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"hashed"}, Body: keyPolicies{}, Reply: keyDetail{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.setKeyPolicies,
		},
	}
	for _, path := range []string{"/api/keys/{key}", "/api/apis/{id}/keys/{key}"} {
		all = append(all, s.oneKeyRoutes(path)...)
	}
	return all
}

// oneKeyRoutes are the routes on one key, which has two paths.
func (s *Server) oneKeyRoutes(path string) []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "Get a key, with what is left of its quotas", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Query: []string{"hashed", "own"}, Reply: keyDetail{}, Wrong: []int{404}, Handle: s.getKey,
		},
		{
			Method: "PUT", Path: path, Summary: "Replace a key's session", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"hashed", "suppress_reset", "strict"}, Body: definition.Session{}, Reply: keyDetail{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.updateKey,
		},
		{
			Method: "DELETE", Path: path, Summary: "Delete a key", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"hashed"}, Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.deleteKey,
		},
	}
}

// keyMissing is the answer about a key that is not there.
const keyMissing = "Could not retrieve key detail."

// keyTx is the keys.Store of one call: the keys of one organisation in the database.
type keyTx struct {
	server *Server
	by     store.Author
	have   int64 // version of the key that the caller saw; 0: any
	failed error // of a read that could not return an error
}

// service returns the rules of keys over the database. It has the policies of the
// sessions, and reads APIs when they are needed.
func (s *Server) service(ctx context.Context, c *rest.Call, sessions ...*definition.Session) (*keys.Service, error) {
	var ids []string
	for _, session := range sessions {
		ids = append(ids, session.Policies()...)
	}
	policies, err := s.policySet(ctx, c.Who.Org, ids)
	if err != nil {
		return nil, err
	}
	work := &keyTx{server: s, by: c.Author(c.Source())}
	if c.Route.Match {
		if work.have, err = c.IfMatch(); err != nil {
			return nil, err
		}
	}
	return &keys.Service{
		Store: work, Counter: s.deps.Counters, Naming: s.deps.Naming, Options: s.deps.KeyOptions, Now: time.Now,
		Policies: func() *definition.PolicySet { return policies },
		API:      func(id string) *definition.API { return work.api(ctx, id) },
		Legacy:   func(ctx context.Context) ([]string, error) { return s.deps.Store.LegacyHashes(ctx, c.Who.Org) },
		Failed:   func() error { return work.failed },
	}, nil
}

func (s *Server) policySet(ctx context.Context, org string, ids []string) (*definition.PolicySet, error) {
	if len(ids) == 0 {
		return definition.NewPolicySet(nil), nil
	}
	bodies, err := s.deps.Store.PolicyBodies(ctx, org, ids)
	if err != nil {
		return nil, err
	}
	return store.PolicySet(bodies)
}

// api returns an API, or nil for an unknown one. An error of the database is kept, and
// then nothing is committed.
func (w *keyTx) api(ctx context.Context, id string) *definition.API {
	row, err := w.server.deps.Store.APIByID(ctx, w.by.Org, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	api := new(definition.API)
	if err == nil {
		err = json.Unmarshal(row.Definition, api)
	}
	if err != nil {
		w.failed = fmt.Errorf("reading API %s: %w", id, err)
		return nil
	}
	return api
}

// Get implements keys.Store.
func (w *keyTx) Get(ctx context.Context, hash string) (*definition.Session, error) {
	row, err := w.server.deps.Store.KeyByHash(ctx, w.by.Org, hash)
	if err != nil {
		return nil, store.KeyError(err)
	}
	return store.SessionOf(&row)
}

// List implements keys.Store; the cursor is the last hash of the page before.
func (w *keyTx) List(ctx context.Context, cursor string, count int) (hashes []string, next string, err error) {
	hashes, err = w.server.deps.Store.KeyHashes(ctx, w.by.Org, cursor, count)
	if err == nil && len(hashes) == count {
		next = hashes[len(hashes)-1]
	}
	return hashes, next, err
}

// Commit implements keys.Store, and delivers the key to the gateways.
func (w *keyTx) Commit(ctx context.Context, c keys.Change) error {
	if w.failed != nil {
		return w.failed
	}
	change := store.NewKeyChange(c, w.server.deps.KeyOptions.Hasher.Shown)
	change.Have = w.have
	if err := w.server.deps.Store.CommitKey(ctx, w.by, change); err != nil {
		return store.KeyError(err)
	}
	for _, hash := range change.Others() {
		w.server.gateways.Deliver(hash)
	}
	w.server.gateways.Deliver(c.Hash)
	return nil
}

// keyFault turns the refusals of the rules of keys into answers.
func keyFault(err error) error {
	if policy, ok := errors.AsType[*keys.PolicyError](err); ok {
		return rest.BadRequest("Validation failed", "apply_policies: "+policy.Error())
	}
	if custom, ok := errors.AsType[*keys.CustomError](err); ok {
		return rest.BadRequest(custom.Error())
	}
	if rotation, ok := errors.AsType[*keys.RotationError](err); ok {
		return rest.BadRequest("Key cannot be rotated: " + rotation.Error())
	}
	switch {
	case errors.Is(err, keys.ErrNotFound):
		return rest.NotFound(keyMissing)
	case errors.Is(err, keys.ErrExists):
		return rest.Refuse(fasthttp.StatusConflict, "There is such a key already")
	case errors.Is(err, keys.ErrChanged):
		return rest.Refuse(fasthttp.StatusConflict, "The key was rotated at the same moment, please try again")
	case errors.Is(err, keys.ErrBusy):
		return rest.Unavailable("Too many passwords are being hashed; try again")
	case errors.Is(err, keys.ErrMaster):
		return rest.BadRequest("Failed to create key, keys must have at least one Access Rights record set.")
	}
	return err
}

// guardOrgLimits refuses to change the limits of an organisation as those of a key, for
// callers who may not change them otherwise.
func (s *Server) guardOrgLimits(ctx context.Context, c *rest.Call, key string) error {
	if !credential.IsOrg(key) {
		return nil
	}
	return s.mustManageOrgs(ctx, c)
}

func (s *Server) createKey(ctx context.Context, c *rest.Call) (any, error) {
	session, id, warnings, err := s.readSession(ctx, c, nil)
	if err == nil {
		err = s.guardOrgLimits(ctx, c, id)
	}
	if err != nil {
		return nil, err
	}
	service, err := s.service(ctx, c, session)
	if err != nil {
		return nil, err
	}
	issued, err := service.Create(ctx, id, session, c.Flag("suppress_reset"))
	if err != nil {
		return nil, keyFault(err)
	}
	hash := issued.Hash
	if hash == "" {
		hash = issued.Key
	}
	made, _, err := service.Get(ctx, keys.Ref{ID: issued.Key, Org: c.Who.Org})
	if err != nil {
		made = session // the key exists; only its remaining quota is unknown
		s.log.Warn("a new key's quota could not be looked at", "key", s.short(hash), "err", err)
	}
	s.log.Info("key created", "key", s.short(hash), "by", c.Who.Name)
	return keyDetail{ID: issued.Key, Key: issued.Key, Hash: hash, Session: newKeySession(made), Warnings: warnings}, nil
}

// chosenID returns the key that the caller has chosen, in the path or as the member key of
// the body; "" if one is to be generated. The member is no part of the session.
func chosenID(c *rest.Call, session *definition.Session) (string, error) {
	given, err := keys.TakeID(session)
	inPath := c.Param("key")
	if err == nil && given != "" && inPath != "" && given != inPath {
		return "", rest.BadRequest("Validation failed", "key: must be "+inPath+", as in the path, or be left out")
	}
	return cmp.Or(given, inPath), err
}

func (s *Server) getKey(ctx context.Context, c *rest.Call) (any, error) {
	found, err := s.key(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.Flag("own") {
		c.SetVersion(found.version)
		return &keyDetail{ID: c.Param("key"), Hash: s.hashFor(c, found.hash), Session: s.sessionFor(c, found.session)}, nil
	}
	return s.showKey(ctx, c, found)
}

// showKey shows a key with its remaining quotas, or without them if the counters are
// unavailable.
func (s *Server) showKey(ctx context.Context, c *rest.Call, found *namedKey) (*keyDetail, error) {
	service, err := s.service(ctx, c, found.session)
	if err != nil {
		return nil, err
	}
	session, _, err := service.Get(ctx, found.ref)
	switch {
	case errors.Is(err, counter.ErrUnavailable):
		s.log.Warn("a key's quota could not be looked at", "key", s.short(found.hash), "err", err)
		session = found.session
	case err != nil:
		return nil, keyFault(err)
	}
	c.SetVersion(found.version)
	return &keyDetail{ID: c.Param("key"), Hash: s.hashFor(c, found.hash), Session: s.sessionFor(c, session)}, nil
}

func (s *Server) updateKey(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.claimBody(ctx, c, ""); err != nil {
		return nil, err
	}
	var stored []byte
	if redact.HasMask(c.HTTP.Request.Body()) {
		found, err := s.key(ctx, c)
		if err != nil {
			return nil, err
		}
		if stored, err = rest.Encode(found.session); err != nil {
			return nil, err
		}
	}
	session, _, warnings, err := s.readSession(ctx, c, stored)
	if err != nil {
		return nil, err
	}
	shown, err := s.changeKey(ctx, c, session, func(service *keys.Service, ref keys.Ref) error {
		session.OrgID = ref.Org // of the key that was found
		_, err := service.Update(ctx, ref, session, c.Flag("suppress_reset"))
		return err
	})
	if err != nil {
		return nil, err
	}
	shown.Warnings = warnings
	return shown, nil
}

// keyPolicies names the policies that a key is to have.
type keyPolicies struct {
	// Id of a single policy; it is added to apply_policies.
	Policy string `json:"policy,omitempty"`
	// Ids of all policies that the key is to have; empty: none.
	// Example: ["free", "reports"]
	Policies []string `json:"apply_policies,omitempty"`
}

func (s *Server) setKeyPolicies(ctx context.Context, c *rest.Call) (any, error) {
	var wanted keyPolicies
	if err := c.Decode(&wanted); err != nil {
		return nil, err
	}
	if wanted.Policy != "" {
		wanted.Policies = append(wanted.Policies, wanted.Policy)
	}
	with := &definition.Session{ApplyPolicies: wanted.Policies}
	return s.changeKey(ctx, c, with, func(service *keys.Service, ref keys.Ref) error {
		_, err := service.SetPolicies(ctx, ref, wanted.Policies)
		return err
	})
}

func (s *Server) resetKeyQuota(ctx context.Context, c *rest.Call) (any, error) {
	_, err := s.changeKey(ctx, c, new(definition.Session), func(service *keys.Service, ref keys.Ref) error {
		_, err := service.ResetQuota(ctx, ref)
		return err
	})
	if err != nil {
		return nil, err
	}
	return rest.Done("Quota reset", nil), nil
}

func (s *Server) deleteKey(ctx context.Context, c *rest.Call) (any, error) {
	if err := s.guardOrgLimits(ctx, c, c.Param("key")); err != nil {
		return nil, err
	}
	found, err := s.key(ctx, c)
	if err != nil {
		return nil, err
	}
	service, err := s.service(ctx, c, found.session)
	if err != nil {
		return nil, err
	}
	if _, err := service.Delete(ctx, found.ref); err != nil {
		return nil, keyFault(err)
	}
	s.log.Info("key deleted", "key", s.short(found.hash), "by", c.Who.Name)
	reach, err := s.gateways.Reached(ctx)
	if err != nil { // the key is deleted all the same
		s.log.Warn("it is unknown which gateways refuse a deleted key", "key", s.short(found.hash), "err", err)
		return rest.Done("Key deleted successfully.", nil), nil
	}
	return rest.Done("Key deleted successfully.", reach), nil
}

// changeKey changes the key that the path names and answers with the changed key. The
// rules have the policies of the key and of the session with.
func (s *Server) changeKey(ctx context.Context, c *rest.Call, with *definition.Session, change func(*keys.Service, keys.Ref) error) (*keyDetail, error) {
	if err := s.guardOrgLimits(ctx, c, c.Param("key")); err != nil {
		return nil, err
	}
	found, err := s.key(ctx, c)
	if err != nil {
		return nil, err
	}
	service, err := s.service(ctx, c, found.session, with)
	if err != nil {
		return nil, err
	}
	if err := change(service, found.ref); err != nil {
		return nil, keyFault(err)
	}
	s.log.Info("key changed", "key", s.short(found.hash), "by", c.Who.Name, "route", c.Route.Name())
	if found, err = s.key(ctx, c); err != nil {
		return nil, err
	}
	return s.showKey(ctx, c, found)
}

// previewKey answers with a session as it would be with its policies applied.
func (s *Server) previewKey(ctx context.Context, c *rest.Call) (any, error) {
	session, _, _, err := s.readSession(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	service, err := s.service(ctx, c, session)
	if err != nil {
		return nil, err
	}
	applied, err := service.Preview(session)
	if err != nil {
		return nil, keyFault(err)
	}
	return s.sessionFor(c, applied), nil
}

// readSession reads a session from the body, and the key that the caller has chosen, if
// any. Its organisation is the one that the call is about, and its access rights may be an
// array. Masked secrets stay as they are stored; stored is nil for a new session. The
// warnings are about unknown members.
func (s *Server) readSession(ctx context.Context, c *rest.Call, stored []byte) (session *definition.Session, id string, warnings []string, err error) {
	if err := s.claimBody(ctx, c, ""); err != nil {
		return nil, "", nil, err
	}
	body, err := c.Body()
	if err != nil {
		return nil, "", nil, err
	}
	body, masks := restored(body, stored)
	if len(masks) > 0 {
		return nil, "", nil, &masks
	}
	body, list := cutMember(body, "access_rights_array")
	if session, err = definition.ParseSession(body); err != nil {
		return nil, "", nil, err
	}
	session.OrgID = c.Who.Org
	if list != nil {
		var array []*definition.Access
		if err := json.Unmarshal(list, &array); err != nil {
			return nil, "", nil, rest.BadRequest("Validation failed", "access_rights_array: "+err.Error())
		}
		if session.AccessRights, err = rightsOf(session.AccessRights, array); err != nil {
			return nil, "", nil, err
		}
		if err := session.Validate(); err != nil {
			return nil, "", nil, err
		}
	}
	if id, err = chosenID(c, session); err != nil {
		return nil, "", nil, err
	}
	warnings, refused := unknownMembers(c, session, false)
	if len(refused) > 0 {
		return nil, "", nil, &refused
	}
	return session, id, warnings, nil
}

// hashFor returns the identity of a key as the caller may see it: below editor, a hash
// even if keys are stored in clear. Nobody sees a legacy hash.
func (s *Server) hashFor(c *rest.Call, identity string) string {
	if c.Who.Role.BelowEditor() {
		return s.deps.KeyOptions.Hasher.Shown(identity)
	}
	return s.deps.KeyOptions.Hasher.Listed(identity)
}

// sessionFor returns a session as the caller may see it.
func (s *Server) sessionFor(c *rest.Call, session *definition.Session) *keySession {
	shown := newKeySession(session)
	if shown.Extra == nil || !c.Who.Role.BelowEditor() {
		return shown
	}
	extra := *shown.Extra
	extra.SuccessorOf = s.hashFor(c, extra.SuccessorOf)
	extra.Keys = slices.Clone(extra.Keys)
	for i := range extra.Keys {
		extra.Keys[i].Hash = s.hashFor(c, extra.Keys[i].Hash)
	}
	shown.Extra = &extra
	return shown
}

// short returns the part of a key's hash that logs show.
func (s *Server) short(hash string) string {
	return rest.Truncate(s.deps.KeyOptions.Hasher.Shown(hash), 12)
}
