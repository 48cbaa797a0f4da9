package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

// rotation says how a key gets a successor.
type rotation struct {
	// How long the key stays valid beside its successor, such as 24h; 0s ends it at once.
	// Example: "24h"
	Grace string `json:"grace"`
}

// rotateKey creates a successor of the key that the path names.
func (s *Server) rotateKey(ctx context.Context, c *rest.Call) (any, error) {
	var wanted rotation
	if err := c.Decode(&wanted); err != nil {
		return nil, err
	}
	grace, err := time.ParseDuration(wanted.Grace)
	if err != nil {
		return nil, rest.BadRequest("grace: must be a time such as 24h, or 0s")
	}
	var made keys.Issued
	detail, err := s.changeKey(ctx, c, new(definition.Session), func(service *keys.Service, ref keys.Ref) (err error) {
		made, err = service.Rotate(ctx, ref, grace)
		return err
	})
	if err != nil {
		return nil, err
	}
	detail.ID, detail.Key = made.Key, made.Key
	return detail, nil
}

// endGrace ends the grace periods of the predecessors of the key that the path names.
func (s *Server) endGrace(ctx context.Context, c *rest.Call) (any, error) {
	return s.changeKey(ctx, c, new(definition.Session), func(service *keys.Service, ref keys.Ref) error {
		_, err := service.Retire(ctx, ref)
		return err
	})
}

// strengthening names a key by its legacy hash, and the hashes that replace it.
type strengthening struct {
	// Legacy hash under which the key is stored.
	Hash string `json:"key_hash"`
	// SHA-256 of the key in hexadecimal, in lower case; one or two, as a key may be hashed alone or
	// behind its organisation.
	Hashes []string `json:"sha256"`
}

// strengthenedKey says what became of the legacy hash of a key.
type strengthenedKey struct {
	// Whether the hash was replaced by this call; false: it was replaced before.
	Changed bool `json:"changed"`
}

// strengthenKey replaces the legacy hash of a key that a gateway was shown.
func (s *Server) strengthenKey(ctx context.Context, c *rest.Call) (any, error) {
	var wanted strengthening
	if err := c.Decode(&wanted); err != nil {
		return nil, err
	}
	if !credential.IsLegacy(wanted.Hash) {
		return nil, rest.BadRequest("key_hash: must be a legacy hash: 8, 16 or 32 hexadecimal digits in lower case")
	}
	if len(wanted.Hashes) == 0 || len(wanted.Hashes) > 2 || slices.ContainsFunc(wanted.Hashes, func(hash string) bool { return !isSHA256(hash) }) {
		return nil, rest.BadRequest("sha256: must be one or two hashes of 64 hexadecimal digits in lower case")
	}
	session, err := s.deps.Store.SessionAnywhere(ctx, wanted.Hash)
	if err != nil {
		return nil, rest.Missing(err, keyMissing)
	}
	c.Who.Org = session.OrgID
	service, err := s.service(ctx, c, session)
	if err != nil {
		return nil, err
	}
	changed, err := service.Strengthen(ctx, wanted.Hash, wanted.Hashes)
	if err != nil {
		return nil, keyFault(err)
	}
	if changed {
		s.log.Info("a key is now stored under SHA-256 instead of a legacy hash", "key", s.short(wanted.Hash), "by", c.Who.Name)
	}
	return strengthenedKey{Changed: changed}, nil
}

func isSHA256(hash string) bool {
	return len(hash) == len(credential.Masked("")) && strings.Trim(hash, "0123456789abcdef") == ""
}

// owner returns the session of a stored key and the row that holds it, which is that of
// its first key.
func (s *Server) owner(ctx context.Context, row store.Key) (*definition.Session, *store.Key, error) {
	session, err := store.SessionOf(&row)
	if err != nil || session.SuccessorOf() == "" {
		return session, &row, err
	}
	identity := session.SuccessorOf()
	first, err := s.deps.Store.KeyByHash(ctx, row.OrgID, identity)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, rest.NotFound(keyMissing)
	}
	if err != nil {
		return nil, nil, err
	}
	if session, err = store.SessionOf(&first); err != nil {
		return nil, nil, err
	}
	if _, ok := session.Credential(identity, row.KeyHash); !ok {
		return nil, nil, rest.NotFound(keyMissing)
	}
	return session, &first, nil
}
