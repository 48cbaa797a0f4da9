package admin

import (
	"context"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// keyHashes is the list of keys without their sessions.
type keyHashes struct {
	// Hashes of the keys; the keys themselves are kept nowhere.
	Keys []string `json:"keys"`
}

// keyList is one page of keys.
type keyList struct {
	// Keys of the page.
	Data keyHashes `json:"data"`
	// Number of pages.
	Pages int64 `json:"pages"`
}

// keyDetail is a key with its session.
type keyDetail struct {
	// Always an empty object; clients of other gateways expect it.
	Model struct{} `json:"api_model"`
	// The key itself when it was made with this call, else its hash.
	ID string `json:"key_id"`
	// The key itself, shown this once; left out by calls that make no key.
	Key string `json:"key,omitempty"`
	// Hash of the key, which names it in later calls.
	Hash string `json:"key_hash"`
	// Rights, limits and metadata of the key, without passwords and secrets.
	Session *keySession `json:"data"`

	// Members of the body that are kept and have no effect, each with the place where it is.
	Warnings []string `json:"warnings,omitempty"`
}

// detailedKeys is one page of keys with their sessions.
type detailedKeys struct {
	// Keys of the page, without what is left of their quotas.
	Keys []keyDetail `json:"keys"`
	// Number of pages.
	Pages int64 `json:"pages"`
}

// listKeys lists the hashes of an organisation's keys.
func (s *Server) listKeys(ctx context.Context, c *rest.Call) (any, error) {
	if rows, err := rest.WantsRows(c, "active", "label", "policy_id", "sort"); err != nil || rows {
		return s.answerRows(ctx, c, err, s.listKeyRows)
	}
	rows, pages, err := s.keyPage(ctx, c)
	if err != nil {
		return nil, err
	}
	list := keyList{Data: keyHashes{Keys: make([]string, 0, len(rows))}, Pages: pages}
	for _, row := range rows {
		list.Data.Keys = append(list.Data.Keys, s.hashFor(c, row.KeyHash))
	}
	return list, nil
}

// listDetailedKeys lists an organisation's keys with their sessions as they are stored.
// The remaining quota is shown for single keys only.
func (s *Server) listDetailedKeys(ctx context.Context, c *rest.Call) (any, error) {
	rows, pages, err := s.keyPage(ctx, c)
	if err != nil {
		return nil, err
	}
	list := detailedKeys{Keys: make([]keyDetail, 0, len(rows)), Pages: pages}
	for _, row := range rows {
		session, err := store.SessionOf(&row)
		if err != nil {
			return nil, err
		}
		hash := s.hashFor(c, row.KeyHash)
		list.Keys = append(list.Keys, keyDetail{ID: hash, Hash: hash, Session: s.sessionFor(c, session)})
	}
	return list, nil
}

func (s *Server) keyPage(ctx context.Context, c *rest.Call) ([]store.Key, int64, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, 0, err
	}
	filter := store.KeyFilter{Prefix: c.Query("q"), API: c.Query("api_id")}
	if err := s.checkKeySearch(c, filter.Prefix); err != nil {
		return nil, 0, err
	}
	if api := c.Param("id"); api != "" {
		filter.API = api
	}
	if filter.API != "" {
		if filter.Policies, err = s.deps.Store.PoliciesNaming(ctx, c.Who.Org, filter.API); err != nil {
			return nil, 0, err
		}
	}
	rows, total, err := s.deps.Store.ListKeys(ctx, c.Who.Org, filter, page)
	return rows, rest.Pages(total, page), err
}

// legacyKeys counts keys by their legacy hash.
type legacyKeys struct {
	// Number of all keys that have a legacy hash.
	Keys int64 `json:"keys"`
	// Number of the keys by the name of their hash.
	// Example: {"murmur64": 12}
	ByHash map[string]int64 `json:"by_hash"`
	// Names of the hashes that this admin looks keys up by (setting keys.legacy_hashes).
	Allowed []string `json:"legacy_hashes"`
}

// countLegacyKeys counts the keys that a token with the same legacy hash opens.
func (s *Server) countLegacyKeys(ctx context.Context, c *rest.Call) (any, error) {
	counts, err := s.deps.Store.CountLegacyKeys(ctx, c.Who.Org)
	if err != nil {
		return nil, err
	}
	answer := legacyKeys{ByHash: counts, Allowed: []string{}}
	for _, n := range counts {
		answer.Keys += n
	}
	for _, a := range s.deps.KeyOptions.Hasher.Legacy {
		answer.Allowed = append(answer.Allowed, a.String())
	}
	return answer, nil
}

// keyLookup asks for the session of a key of any organisation.
type keyLookup struct {
	// Hash of the key, of any organisation.
	Hash string `json:"key_hash"`
}

// foundKey is a session as gateways need it.
type foundKey struct {
	// Hash of the key, as it was asked for.
	Hash string `json:"key_hash"`
	// Rights, limits and metadata of the key, as gateways store them.
	Session *definition.Session `json:"session"`
}

// lookupKey answers a gateway with the session of a key that its key store may have
// lost.
func (s *Server) lookupKey(ctx context.Context, c *rest.Call) (any, error) {
	var asked keyLookup
	if err := c.Decode(&asked); err != nil {
		return nil, err
	}
	if asked.Hash == "" || len(asked.Hash) > 4*rest.MaxText {
		return nil, rest.BadRequest("key_hash: must be the hash of a key")
	}
	session, err := s.deps.Store.SessionAnywhere(ctx, asked.Hash)
	if err != nil {
		return nil, rest.Missing(err, definition.KeyNotFound)
	}
	return foundKey{Hash: asked.Hash, Session: session}, nil
}
