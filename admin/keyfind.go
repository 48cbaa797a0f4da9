package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

// A namedKey is the key that the path of a call names.
type namedKey struct {
	ref     keys.Ref
	hash    string
	session *definition.Session
	version int64
}

// key finds the key that the path names, by its hash or by its custom id.
func (s *Server) key(ctx context.Context, c *rest.Call) (*namedKey, error) {
	return s.keyNamed(ctx, c, c.Param("key"))
}

// keyNamed finds the key that an id names: the key itself, its hash or its custom id.
func (s *Server) keyNamed(ctx context.Context, c *rest.Call, id string) (*namedKey, error) {
	hasher := s.deps.KeyOptions.Hasher
	tries, err := s.identities(ctx, c, id)
	if err != nil {
		return nil, err
	}
	row, err := s.firstKey(ctx, c.Who.Org, tries)
	if err != nil {
		return nil, rest.Missing(err, keyMissing)
	}
	session, owner, err := s.owner(ctx, row)
	if err != nil {
		return nil, err
	}
	hash := owner.KeyHash
	// A key that is stored in clear is its own identity.
	ref := keys.Ref{ID: hash, Hashed: hasher.Algorithm != credential.None, Org: c.Who.Org}
	return &namedKey{ref: ref, hash: hash, session: session, version: owner.Version}, nil
}

// firstKey returns the first key of an organisation that one of some hashes names. The
// first of them may be what is shown in place of a legacy hash.
func (s *Server) firstKey(ctx context.Context, org string, hashes []string) (store.Key, error) {
	for _, hash := range hashes {
		row, err := s.deps.Store.KeyByHash(ctx, org, hash)
		if !errors.Is(err, store.ErrNotFound) {
			return row, err
		}
	}
	return s.deps.Store.MaskedKey(ctx, org, hashes[0])
}

// identities returns the identities under which the key may be stored that a path names.
// A gateway's callers do not know its organisation: the call is about that of the key
// which is found.
func (s *Server) identities(ctx context.Context, c *rest.Call, id string) ([]string, error) {
	hasher := s.deps.KeyOptions.Hasher
	named := !c.Flag("hashed") && credential.Check(hasher.Prefix, []byte(id))
	orgs := []string{c.Who.Org}
	anywhere := c.Who.Role == rest.Gateway && !c.OrgNamed
	if anywhere && named {
		rows, _, err := s.deps.Store.ListOrgs(ctx, "", store.Page{})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			orgs = append(orgs, row.ID)
		}
	}
	tries := []string{id}
	for _, org := range orgs {
		if named {
			tries = append(tries, hasher.Candidates([]byte(id), org)...)
		}
	}
	if !anywhere {
		return tries, nil
	}
	org, err := s.deps.Store.OrgOfKey(ctx, tries)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return tries, nil
	case err != nil:
		return nil, err
	}
	c.Who.Org = org
	return tries, nil
}

// keyNamed names a key in a body.
type keyNamed struct {
	// The key itself, its hash or its custom id. It is neither stored nor logged.
	Key string `json:"key"`
}

// keyFound is the key that a body named.
type keyFound struct {
	// Hash of the key; of a key that was rotated that of the first one.
	Hash string `json:"key_hash"`
	// Alias of the key; empty: it has none.
	Alias string `json:"alias"`
	// Whether the key is not switched off; it may have expired nevertheless.
	Active bool `json:"active"`
}

// findKey answers which key a body names. What was sent is not logged.
func (s *Server) findKey(ctx context.Context, c *rest.Call) (any, error) {
	var sent keyNamed
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	if sent.Key == "" || len(sent.Key) > 4*rest.MaxText {
		return nil, rest.BadRequest(fmt.Sprintf("key: must be a key, a hash or a custom id of at most %d bytes", 4*rest.MaxText))
	}
	found, err := s.keyNamed(ctx, c, sent.Key)
	if err != nil {
		return nil, err
	}
	return keyFound{Hash: s.hashFor(c, found.hash), Alias: found.session.Alias, Active: !found.session.IsInactive}, nil
}
