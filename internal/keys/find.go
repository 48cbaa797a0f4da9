package keys

import (
	"context"
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
		found, err := k.Store.Get(ctx, ref.ID)
		return k.owner(ctx, found, ref.ID, err)
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
				found = append(found, hash)
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
	if !strings.HasPrefix(hash, f.Prefix) || credential.IsOrg(hash) != credential.IsOrg(f.Prefix) {
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
