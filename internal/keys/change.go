package keys

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

// Update replaces the session of a key by s, which it does not change. Some members
// are kept: the creation time, the expiry if it is in the future and that of s in the
// past, and a password or secret that s leaves out. With suppressReset the quota
// counters and stamps of the key are kept too.
func (k *Service) Update(ctx context.Context, ref Ref, s *definition.Session, suppressReset bool) (Issued, error) {
	old, hash, err := k.find(ctx, ref)
	if err != nil {
		return Issued{}, err
	}
	session, may, err := k.acceptAs(hash, s, old)
	if err != nil {
		return Issued{}, err
	}
	if !ref.Hashed && !old.HasPassword() {
		if err := k.checkUser(ref.ID, session); err != nil {
			return Issued{}, err
		}
	}
	if err := k.hashPassword(ctx, session); err != nil {
		return Issued{}, err
	}
	session.DateCreated = old.DateCreated
	if session.Expires > 0 && session.Expires < k.Now().Unix() {
		session.Expires = old.Expires
	}
	if err := checkClient(session, old); err != nil {
		return Issued{}, err
	}
	if err := keepSecrets(session, old); err != nil {
		return Issued{}, err
	}
	session.SetCredentials(old.Clone().Credentials())
	c := Change{Hash: hash, Session: session, Reset: k.stamp(hash, session, old, suppressReset, may), Found: old}
	if err := k.Store.Commit(ctx, c); err != nil {
		return Issued{}, err
	}
	return k.named(ref, hash), nil
}

// keepSecrets keeps the stored secrets that the session leaves out, as they are never
// returned.
func keepSecrets(session, old *definition.Session) error {
	if old.BasicAuth != nil && !session.HasPassword() {
		session.BasicAuth = old.Clone().BasicAuth
	}
	if old.TokenSecret() != "" && session.TokenSecret() == "" {
		if session.Extra == nil {
			session.Extra = new(definition.Extra)
		}
		session.Extra.JWT = old.Clone().Extra.JWT
	}
	if old.OAuthClient() != "" {
		return keepClient(session, old)
	}
	if session.HasPassword() && session.TokenSecret() != "" {
		return problem("jwt_data.secret", "and a password cannot be of one key: a user has no tokens; make another key")
	}
	return nil
}

// keepPeriods copies the stamps of quota periods.
func keepPeriods(session, old *definition.Session) {
	session.QuotaRenews, session.QuotaRemaining = old.QuotaRenews, old.QuotaRemaining
	for id, e := range session.AccessRights {
		if before := old.AccessRights[id]; e.Limit != nil && before != nil && before.Limit != nil {
			e.Limit.QuotaRenews, e.Limit.QuotaRemaining = before.Limit.QuotaRenews, before.Limit.QuotaRemaining
		}
	}
}

// SetPolicies replaces the policies of a key and keeps its used quota.
func (k *Service) SetPolicies(ctx context.Context, ref Ref, policies []string) (Issued, error) {
	old, hash, err := k.find(ctx, ref)
	if err != nil {
		return Issued{}, err
	}
	wanted := old.Clone()
	wanted.ApplyPolicies, wanted.ApplyPolicyID = slices.Clone(policies), ""
	session, _, err := k.acceptAs(hash, wanted, old)
	if err != nil {
		return Issued{}, err
	}
	session.LastUpdated = stampAfter(old.LastUpdated, k.Now())
	if err := k.Store.Commit(ctx, Change{Hash: hash, Session: session, Found: old}); err != nil {
		return Issued{}, err
	}
	return k.named(ref, hash), nil
}

// Delete removes a key and its quota counters.
func (k *Service) Delete(ctx context.Context, ref Ref) (Issued, error) {
	old, hash, err := k.find(ctx, ref)
	if err != nil {
		return Issued{}, err
	}
	if err := k.Store.Commit(ctx, Change{Hash: hash, Reset: k.counters(hash, old), Gone: further(hash, old)}); err != nil {
		return Issued{}, err
	}
	return k.named(ref, hash), nil
}

// ResetQuota resets the used quotas of a key. Its rate is unchanged.
func (k *Service) ResetQuota(ctx context.Context, ref Ref) (Issued, error) {
	old, hash, err := k.find(ctx, ref)
	if err != nil {
		return Issued{}, err
	}
	session := old.Clone()
	open(session, k.Now())
	if err := k.Store.Commit(ctx, Change{Hash: hash, Session: session, Reset: k.counters(hash, old), Found: old}); err != nil {
		return Issued{}, err
	}
	return k.named(ref, hash), nil
}

// named returns the key as the caller named it.
func (k *Service) named(ref Ref, hash string) Issued {
	if ref.Hashed {
		return Issued{Hash: k.Options.Hasher.Listed(hash)}
	}
	return k.issued(ref.ID, hash)
}

// stampAfter returns the time in unix seconds, but always a different one than before:
// a key that is changed twice in a second begins a fresh rate each time.
func stampAfter(before string, now time.Time) string {
	stamp := now.Unix()
	if last, err := strconv.ParseInt(before, 10, 64); err == nil && last >= stamp {
		stamp = last + 1
	}
	return strconv.FormatInt(stamp, 10)
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
