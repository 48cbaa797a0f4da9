package keys

import (
	"context"
	"slices"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
)

// Strengthen ends the validity of a legacy hash: from now on only a token with one of the
// SHA-256 hashes opens the key that is stored under it. The identity stays the same in the
// names of counters and in logs, as after a rotation. It reports whether there was
// something to do. The error is ErrNotFound if no key is valid under the legacy hash.
func (k *Service) Strengthen(ctx context.Context, identity string, hashes []string) (bool, error) {
	old, err := k.Store.Get(ctx, identity)
	if err != nil {
		return false, err
	}
	if !credential.IsLegacy(identity) || old.CredentialKind() != definition.KeyCredential || old.SuccessorOf() != "" {
		return false, ErrNotFound
	}
	now, changed := k.Now().Unix(), false
	for _, hash := range hashes {
		all := slices.Clone(keysOf(identity, old))
		legacy := slices.IndexFunc(all, func(c definition.Credential) bool { return c.Hash == identity })
		if slices.ContainsFunc(all, func(c definition.Credential) bool { return c.Hash == hash }) {
			continue
		}
		if legacy < 0 || len(all) >= maxKeys || !changed && isOver(all[legacy], now) {
			return changed, ErrNotFound
		}
		strong := definition.Credential{Hash: hash, Retires: all[legacy].Retires}
		if changed {
			strong.Retires = all[legacy+1].Retires // that of the first hash
		}
		all[legacy].Retires = now
		session := old.Clone()
		session.SetCredentials(slices.Insert(all, legacy+1, strong))
		if err := k.Store.Commit(ctx, Change{Hash: identity, Session: session, Successor: hash, Found: old}); err != nil {
			return changed, err
		}
		old, changed = session, true
	}
	return changed, nil
}

// isOver reports whether a key is no longer valid.
func isOver(c definition.Credential, now int64) bool { return c.Retires != 0 && c.Retires <= now }
