package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	kept "github.com/sluicegate/sluice/admin/store/requests"
	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/jwt"
)

// maxRecord bounds a key request, in bytes: it is smaller than other records, as
// lists show many.
const maxRecord = 64 << 10

// policyVersion is the version of records whose for_plan and apply_policies name
// policies; those of older ones may name entries of the catalogue.
const policyVersion = "v2"

// asked is what a record asks for, found out and checked.
type asked struct {
	record   *record.KeyRequest
	policies []string
	entries  []*record.Entry // that offer the policies; nil for one that none offers
	kind     string          // of the credential
	hash     string          // of the key that is to change; "" for a new one
}

// read reads a record from a call's body.
func read(c *rest.Call) (*record.KeyRequest, error) {
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	if len(body) > maxRecord {
		return nil, rest.Refuse(fasthttp.StatusRequestEntityTooLarge, fmt.Sprintf("A key request has at most %d bytes, not %d", maxRecord, len(body)))
	}
	r, err := record.Parse[record.KeyRequest](body)
	if err != nil {
		return nil, err
	}
	if r.Approved {
		return nil, rest.BadRequest("approved: must be false or left out; a request is approved by PUT /api/portal/requests/approve/{id}")
	}
	return r, checkTexts(r)
}

// checkTexts refuses what no request can hold.
func checkTexts(r *record.KeyRequest) error {
	for path, text := range map[string]string{"by_user": r.ByUser, "for_plan": r.ForPlan, "for_api": r.ForAPI, "version": r.Version, "key_id": r.KeyID} {
		if len(text) > rest.MaxText || !rest.Printable(text) {
			return rest.BadRequest(fmt.Sprintf("%s: must be printable text of at most %d bytes", path, rest.MaxText))
		}
	}
	if err := credentials.CheckFields(r.Fields); err != nil {
		return err
	}
	if err := credentials.CheckNames("apply_policies", r.ApplyPolicies); err != nil {
		return err
	}
	return credentials.CheckNames("remove_policies", r.RemovePolicies)
}

// changesKey tells whether a request is about a key that the developer has.
func changesKey(r *record.KeyRequest) bool { return r.KeyID != "" || len(r.RemovePolicies) > 0 }

// ask finds out what a record asks for. by_user is known to be a developer of the
// organisation.
func (s *Service) ask(ctx context.Context, org string, r *record.KeyRequest) (*asked, error) {
	a := &asked{record: r, kind: credentials.Token}
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
		kind := kindOf(e)
		if i > 0 && kind != a.kind {
			return nil, rest.BadRequest(fmt.Sprintf("apply_policies: %q is for auth_type %s, those before it for %s; one request is for one type", a.policies[i], kind, a.kind))
		}
		a.kind = kind
	}
	return a, checkKind(org, a)
}

func kindOf(e *record.Entry) string {
	if e == nil || e.AuthType == "" {
		return credentials.Token
	}
	return e.AuthType
}

// checkKind checks what goes with the kind of the credential.
func checkKind(org string, a *asked) error {
	r := a.record
	switch a.kind {
	case credentials.Token:
	case credentials.Basic:
		if r.JWTSecret != "" || r.Certificate != "" {
			return rest.BadRequest("jwt_secret and certificate: must be left out, as the policy's auth_type is basic")
		}
	case credentials.OAuth:
		if len(a.policies) != 1 {
			return rest.BadRequest("apply_policies: an OAuth client is for one policy; ask for each alone")
		}
		c := clientOf(r)
		if err := CheckClient(&c, clientPaths); err != nil {
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

// certificateID returns the id of a client's certificate, which a request has in
// PEM or by its id.
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

// findPolicies finds the policies that a record names, and the entries that offer
// them.
func (s *Service) findPolicies(ctx context.Context, org string, a *asked) error {
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

// namesOfEntries returns what the entries in an old record are called by.
func namesOfEntries(r *record.KeyRequest) (path string, names []string) {
	path = "catalogues"
	all := r.Entries
	if len(all) == 0 && r.Entry != nil {
		path, all = "catalogue_entry", []record.Entry{*r.Entry}
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

// entry returns the entry of the catalogue that a name in a record stands for; nil
// for a policy that no entry offers.
func (s *Service) entry(ctx context.Context, org, version, name string) (*record.Entry, error) {
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

// checkPolicies refuses policies that approving could not give or take.
func (s *Service) checkPolicies(ctx context.Context, org string, a *asked) error {
	if len(a.policies) == 0 {
		return nil
	}
	found, err := kept.FindPolicies(ctx, s.d.Store, org, a.policies)
	if err != nil {
		return err
	}
	err = credentials.CheckPolicies(found, a.policies)
	if wrong, ok := errors.AsType[*credentials.PolicyError](err); ok {
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

// findKey finds the key that is to change: the one that is named, or the newest
// that has the policies which are to go.
func (s *Service) findKey(ctx context.Context, org string, a *asked) (err error) {
	r, read := a.record, s.d.Store.Read()
	if r.JWTSecret != "" || r.Certificate != "" {
		return rest.BadRequest("jwt_secret and certificate: must be left out, as the request is about the policies of a key that there is")
	}
	if r.KeyID != "" {
		a.hash, err = s.d.Credentials.HashOf(ctx, read, credentials.Owner{Org: org, Developer: r.ByUser}, r.KeyID)
	} else if a.hash, err = kept.KeyWith(ctx, read, org, r.ByUser, r.RemovePolicies); errors.Is(err, store.ErrNotFound) {
		return rest.BadRequest("remove_policies: the developer has no key with these policies")
	}
	if err != nil {
		return err
	}
	key, err := kept.KeyOf(ctx, read, org, r.ByUser, a.hash)
	if errors.Is(err, store.ErrNotFound) {
		return rest.BadRequest("key_id: names no key of the developer")
	}
	if err != nil {
		return err
	}
	return a.checkChange(&key)
}

// checkChange checks what a key is to get and to lose.
func (a *asked) checkChange(key *kept.DeveloperKey) error {
	for _, id := range a.record.RemovePolicies {
		if !slices.Contains(key.Key.Policies, id) {
			return rest.BadRequest(fmt.Sprintf("remove_policies: the key does not have policy %q", id))
		}
	}
	if len(a.policies)+len(a.record.RemovePolicies) == 0 {
		return rest.BadRequest("apply_policies: must name what the key is to get, or remove_policies what it is to lose")
	}
	kind, err := credentials.KindOf(&key.Key)
	if err != nil || len(a.policies) == 0 {
		return err
	}
	if kind == credentials.OAuth {
		return rest.BadRequest("apply_policies: an OAuth client is for one policy; ask for another client")
	}
	for i, e := range a.entries {
		if e != nil && kindOf(e) != kind {
			return rest.BadRequest(fmt.Sprintf("apply_policies: %q is for auth_type %s, and the key is of %s; ask for another key", a.policies[i], kindOf(e), kind))
		}
	}
	return nil
}
