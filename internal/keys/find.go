package keys

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// find returns the session that ref names and its hash, or ErrNotFound.
func (k *Service) find(ctx context.Context, ref Ref) (*definition.Session, string, error) {
	h := k.Options.Hasher
	if ref.Hashed {
		if h.Algorithm == credential.None {
			return nil, "", ErrNotHashed
		}
		hash, err := k.Identity(ctx, ref.ID)
		if err != nil {
			return nil, "", err
		}
		found, err := k.Store.Get(ctx, hash)
		return k.owner(ctx, found, hash, err)
	}
	if credential.IsOrg(ref.ID) {
		found, err := k.Store.Get(ctx, ref.ID)
		return found, ref.ID, err
	}
	if !credential.Check(h.Prefix, []byte(ref.ID)) {
		return nil, "", ErrNotFound
	}
	orgs := []string{ref.Org}
	if ref.Org == "" && k.Orgs != nil {
		orgs = append(orgs, k.Orgs()...)
	}
	var tried []string
	for _, org := range orgs {
		for _, hash := range k.candidates(ref, org) {
			if slices.Contains(tried, hash) {
				continue
			}
			tried = append(tried, hash)
			found, err := k.Store.Get(ctx, hash)
			if err == nil || !isAbsent(err) {
				return k.owner(ctx, found, hash, err)
			}
		}
	}
	return nil, "", ErrNotFound
}

// Identity returns the identity of a key that is named by a hash: the hash itself or, if
// no key has it, the legacy hash that it stands for where that may not be shown.
func (k *Service) Identity(ctx context.Context, hash string) (string, error) {
	if len(hash) != 2*sha256.Size {
		return hash, nil
	}
	if _, err := k.Store.Get(ctx, hash); !isAbsent(err) {
		return hash, err
	}
	legacy, err := k.legacy(ctx)
	if i := slices.IndexFunc(legacy, func(one string) bool { return credential.Masked(one) == hash }); i >= 0 {
		return legacy[i], nil
	}
	return hash, err
}

// legacy returns the identities in the store that are legacy hashes.
func (k *Service) legacy(ctx context.Context) (all []string, err error) {
	if k.Legacy != nil {
		return k.Legacy(ctx)
	}
	for cursor := ""; ; {
		page, next, err := k.Store.List(ctx, cursor, findPage)
		if err != nil {
			return nil, err
		}
		for _, hash := range page {
			if credential.IsLegacy(hash) {
				all = append(all, hash)
			}
		}
		if next == "" {
			return all, nil
		}
		cursor = next
	}
}

// candidates returns the identities under which a key may be stored that is not named
// by its hash.
func (k *Service) candidates(ref Ref, org string) (all []string) {
	h, name := k.Options.Hasher, []byte(ref.ID)
	if !ref.User {
		return h.Candidates(name, org)
	}
	for i := 0; ; i++ {
		identity, ok := h.UserCandidate(nil, name, org, i)
		if !ok {
			return all
		}
		all = append(all, string(identity))
	}
}

// List returns about count hashes, and the cursor of the next page.
func (k *Service) List(ctx context.Context, cursor string, count int) (hashes []string, next string, err error) {
	return k.Store.List(ctx, cursor, count)
}

// A Filter selects keys. Empty members do not restrict.
type Filter struct {
	Prefix string // of the hash; organisations are found by that of their identities only
	API    string // that the key may call
	Org    string // that the key belongs to
}

const findPage = 1000

// Find returns the hashes of all keys that match the filter, in order. It lists every
// key, or with API reads every session, which takes long with many keys.
func (k *Service) Find(ctx context.Context, f Filter) ([]string, error) {
	var found []string
	for cursor := ""; ; {
		page, next, err := k.Store.List(ctx, cursor, findPage)
		if err != nil {
			return nil, err
		}
		for _, hash := range page {
			fits, err := k.fits(ctx, hash, f)
			if err != nil {
				return nil, err
			}
			if fits {
				found = append(found, k.Options.Hasher.Listed(hash))
			}
		}
		if next == "" {
			slices.Sort(found)
			return slices.Compact(found), nil
		}
		cursor = next
	}
}

func (k *Service) fits(ctx context.Context, hash string, f Filter) (bool, error) {
	if !strings.HasPrefix(k.Options.Hasher.Listed(hash), f.Prefix) || credential.IsOrg(hash) != credential.IsOrg(f.Prefix) {
		return false, nil
	}
	if f.API == "" && f.Org == "" {
		return true, nil
	}
	session, err := k.Store.Get(ctx, hash)
	if err != nil {
		if isAbsent(err) {
			err = nil // it was deleted after it was listed
		}
		return false, err
	}
	if f.Org != "" && session.OrgID != f.Org {
		return false, nil
	}
	if f.API == "" {
		return true, nil
	}
	may, err := rights.Effective(session, k.Policies())
	if err != nil {
		return false, nil // a key that cannot be used can call nothing
	}
	_, calls := may.For(f.API)
	return calls, nil
}
