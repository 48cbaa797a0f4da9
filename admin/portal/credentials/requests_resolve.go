package credentials

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/jwt"
)

// maxRecord bounds a key request, in bytes. It is smaller than for other objects, as
// lists show many.
const maxRecord = 64 << 10

// policyVersion is the version of requests whose for_plan and apply_policies name
// policies. Those of older requests may name entries of the catalogue.
const policyVersion = "v2"

// resolved is a key request with the objects that it names, after checking.
type resolved struct {
	record   *model.KeyRequest
	policies []string
	entries  []*model.Entry // that offer the policies; nil for a policy without an entry
	kind     string         // of the credential
	hash     string         // of the key to be changed; "" for a new one
}

// readRequest reads a key request from the body.
func readRequest(c *rest.Call) (*model.KeyRequest, error) {
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	if len(body) > maxRecord {
		return nil, rest.Refuse(fasthttp.StatusRequestEntityTooLarge, fmt.Sprintf("A key request has at most %d bytes, not %d", maxRecord, len(body)))
	}
	r, err := model.Parse[model.KeyRequest](body)
	if err != nil {
		return nil, err
	}
	if r.Approved {
		return nil, rest.BadRequest("approved: must be false or left out; a request is approved by PUT /api/portal/requests/approve/{id}")
	}
	return r, checkTexts(r)
}

// checkTexts checks the texts of a request.
func checkTexts(r *model.KeyRequest) error {
	for path, text := range map[string]string{"by_user": r.ByUser, "for_plan": r.ForPlan, "for_api": r.ForAPI, "version": r.Version, "key_id": r.KeyID} {
		if len(text) > rest.MaxText || !rest.Printable(text) {
			return rest.BadRequest(fmt.Sprintf("%s: must be printable text of at most %d bytes", path, rest.MaxText))
		}
	}
	if err := CheckFields(r.Fields); err != nil {
		return err
	}
	if err := CheckNames("apply_policies", r.ApplyPolicies); err != nil {
		return err
	}
	return CheckNames("remove_policies", r.RemovePolicies)
}

// changesKey reports whether a request is about an existing key.
func changesKey(r *model.KeyRequest) bool { return r.KeyID != "" || len(r.RemovePolicies) > 0 }

// resolve finds and checks the objects that a request names. The developer in by_user
// is known to exist.
func (s *Requests) resolve(ctx context.Context, org string, r *model.KeyRequest) (*resolved, error) {
	a := &resolved{record: r, kind: Token}
	if err := s.findPolicies(ctx, org, a); err != nil {
		return nil, err
	}
	if err := s.checkPolicies(ctx, org, a); err != nil {
		return nil, err
	}
	if changesKey(r) {
		return a, s.findKey(ctx, org, a)
	}
	if len(a.policies) == 0 {
		return nil, rest.BadRequest("for_plan: must name a policy, or apply_policies at least one")
	}
	for i, e := range a.entries {
		kind := entryKind(e)
		if i > 0 && kind != a.kind {
			return nil, rest.BadRequest(fmt.Sprintf("apply_policies: %q is for auth_type %s, those before it for %s; one request is for one type", a.policies[i], kind, a.kind))
		}
		a.kind = kind
	}
	return a, checkKind(org, a)
}

func entryKind(e *model.Entry) string {
	if e == nil || e.AuthType == "" {
		return Token
	}
	return e.AuthType
}

// checkKind checks the members that depend on the kind of the credential.
func checkKind(org string, a *resolved) error {
	r := a.record
	switch a.kind {
	case Token:
	case Basic:
		if r.JWTSecret != "" || r.Certificate != "" {
			return rest.BadRequest("jwt_secret and certificate: must be left out, as the policy's auth_type is basic")
		}
	case OAuth:
		if len(a.policies) != 1 {
			return rest.BadRequest("apply_policies: an OAuth client is for one policy; ask for each alone")
		}
		c := clientGrantOf(r)
		if err := checkClient(&c, requestPaths); err != nil {
			return err
		}
	default:
		return rest.BadRequest(fmt.Sprintf("for_plan: its entry has auth_type %.40q, for which no credentials are issued", a.kind))
	}
	if err := checkSecret(r.JWTSecret); err != nil {
		return err
	}
	_, err := certificateID(org, r.Certificate)
	return err
}

func checkSecret(text string) error {
	if text == "" {
		return nil
	}
	k := jwt.Key{Secret: text}
	if faults := k.Check(false); len(faults) > 0 {
		return rest.BadRequest("jwt_secret: " + faults[0].Message)
	}
	return nil
}

// certificateID returns the id of a client certificate that is given in PEM or by id.
func certificateID(org, sent string) (string, error) {
	if sent == "" {
		return "", nil
	}
	if of, _, ok := certs.SplitID(sent); ok && of == org {
		return sent, nil
	}
	c, err := certs.Parse([]byte(sent))
	if err != nil {
		return "", rest.BadRequest("certificate: must be the certificate in PEM, or its id of organisation and SHA-256: " + err.Error())
	}
	if key, err := c.KeyPEM(); err != nil || key != nil {
		return "", rest.BadRequest("certificate: must be without its private key, which nobody else is to see; make another one")
	}
	return c.ID(org), nil
}

// findPolicies finds the policies that a request names, and the entries that offer them.
func (s *Requests) findPolicies(ctx context.Context, org string, a *resolved) error {
	path, names := "apply_policies", a.record.ApplyPolicies
	if len(names) == 0 && a.record.ForPlan != "" {
		path, names = "for_plan", []string{a.record.ForPlan}
	}
	if a.record.Version != policyVersion && len(names) == 0 {
		path, names = namesOfEntries(a.record)
	}
	for _, name := range names {
		entry, err := s.entry(ctx, org, a.record.Version, name)
		if err != nil {
			return err
		}
		policy := name
		if entry != nil {
			policy = entry.PolicyID
		}
		if slices.Contains(a.policies, policy) {
			return rest.BadRequest(fmt.Sprintf("%s: %.40q stands for policy %q, which is named already", path, name, policy))
		}
		a.policies, a.entries = append(a.policies, policy), append(a.entries, entry)
	}
	return nil
}

// namesOfEntries returns the names of the entries in an old request.
func namesOfEntries(r *model.KeyRequest) (path string, names []string) {
	path = "catalogues"
	all := r.Entries
	if len(all) == 0 && r.Entry != nil {
		path, all = "catalogue_entry", []model.Entry{*r.Entry}
	}
	for _, e := range all {
		switch {
		case e.ID != "":
			names = append(names, e.ID)
		case e.PolicyID != "":
			names = append(names, e.PolicyID)
		}
	}
	return path, names
}

// entry returns the catalogue entry for a name in a request; nil for a policy without an
// entry.
func (s *Requests) entry(ctx context.Context, org, version, name string) (*model.Entry, error) {
	if version != policyVersion {
		e, err := s.d.Catalogue.Entry(ctx, org, name)
		if err == nil && e.PolicyID == "" {
			return nil, rest.BadRequest(fmt.Sprintf("for_plan: catalogue entry %.40q has no policy", name))
		}
		if !errors.Is(err, store.ErrNotFound) {
			return e, err
		}
	}
	e, err := s.d.Catalogue.EntryByPolicy(ctx, org, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return e, err
}

// checkPolicies refuses policies that cannot be approved.
func (s *Requests) checkPolicies(ctx context.Context, org string, a *resolved) error {
	if len(a.policies) == 0 {
		return nil
	}
	found, err := s.d.Store.FindPolicies(ctx, org, a.policies)
	if err != nil {
		return err
	}
	err = CheckPolicies(found, a.policies)
	if wrong, ok := errors.AsType[*PolicyError](err); ok {
		path := "apply_policies: "
		if len(a.record.ApplyPolicies) == 0 {
			path = "for_plan: "
		}
		all := new(definition.Problems)
		for _, problem := range wrong.Problems {
			*all = append(*all, definition.Problem{Path: path[:len(path)-2], Message: problem})
		}
		return all
	}
	return err
}

// findKey finds the key to be changed: the one that is named, or the newest with the
// policies to be removed.
func (s *Requests) findKey(ctx context.Context, org string, a *resolved) (err error) {
	r, read := a.record, s.d.Store.Reader()
	if r.JWTSecret != "" || r.Certificate != "" {
		return rest.BadRequest("jwt_secret and certificate: must be left out, as the request is about the policies of a key that there is")
	}
	if r.KeyID != "" {
		a.hash, err = s.d.Keys.HashOf(ctx, read, Owner{Org: org, Developer: r.ByUser}, r.KeyID)
	} else if a.hash, err = read.DeveloperKeyWith(ctx, org, r.ByUser, r.RemovePolicies); errors.Is(err, store.ErrNotFound) {
		return rest.BadRequest("remove_policies: the developer has no key with these policies")
	}
	if err != nil {
		return err
	}
	key, err := read.DeveloperKey(ctx, org, r.ByUser, a.hash)
	if errors.Is(err, store.ErrNotFound) {
		return rest.BadRequest("key_id: names no key of the developer")
	}
	if err != nil {
		return err
	}
	return a.checkChange(&key)
}

// checkChange checks the policies to be added and removed.
func (a *resolved) checkChange(key *store.DeveloperKey) error {
	for _, id := range a.record.RemovePolicies {
		if !slices.Contains(key.Key.Policies, id) {
			return rest.BadRequest(fmt.Sprintf("remove_policies: the key does not have policy %q", id))
		}
	}
	if len(a.policies)+len(a.record.RemovePolicies) == 0 {
		return rest.BadRequest("apply_policies: must name what the key is to get, or remove_policies what it is to lose")
	}
	kind, err := keyKind(&key.Key)
	if err != nil || len(a.policies) == 0 {
		return err
	}
	if kind == OAuth {
		return rest.BadRequest("apply_policies: an OAuth client is for one policy; ask for another client")
	}
	for i, e := range a.entries {
		if e != nil && entryKind(e) != kind {
			return rest.BadRequest(fmt.Sprintf("apply_policies: %q is for auth_type %s, and the key is of %s; ask for another key", a.policies[i], entryKind(e), kind))
		}
	}
	return nil
}
