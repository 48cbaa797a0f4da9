package credentials

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/requests"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

// A held key is a developer's, locked together with the developer until the
// transaction ends.
type held struct {
	owned   *requests.Owned
	session *definition.Session
}

// hold finds a key of a developer by its hash.
func (k *Keeper) hold(ctx context.Context, w *Work, developer, hash string) (*held, error) {
	if _, err := requests.LockRequester(ctx, w.Tx, w.By.Org, developer); err != nil {
		return nil, rest.Missing(err, Missing)
	}
	row, err := requests.KeyOf(ctx, w.Queries, w.By.Org, developer, hash)
	if err != nil {
		return nil, rest.Missing(err, Missing)
	}
	session, err := sessionOf(&row.Key)
	return &held{&row.Owner, session}, err
}

// ref names a key that is stored under a hash.
func (k *Keeper) ref(w *Work, hash string) keys.Ref {
	// A key that is stored in clear is its own identity.
	return keys.Ref{ID: hash, Hashed: k.d.Options.Hasher.Algorithm != credential.None, Org: w.By.Org}
}

// serviceFor returns the rules of keys for one that is changed.
func (k *Keeper) serviceFor(ctx context.Context, w *Work, h *held) (*keys.Service, error) {
	policies, err := k.wanted(ctx, w, h.session.Policies(), nil)
	if err != nil {
		return nil, err
	}
	return k.service(ctx, &ledger{work: w}, policies)
}

// Change gives a developer's key other policies, in that order, and leaves its used
// quota. Those that are new to it must be in force.
func (k *Keeper) Change(ctx context.Context, w *Work, developer, hash string, change func(have []string) []string) error {
	h, err := k.hold(ctx, w, developer, hash)
	if err != nil {
		return err
	}
	have := h.session.Policies()
	policies := change(slices.Clone(have))
	if len(policies) == 0 {
		return conflict("The key would be left without a policy; revoke it instead")
	}
	given := slices.DeleteFunc(slices.Clone(policies), func(id string) bool { return slices.Contains(have, id) })
	found, err := k.wanted(ctx, w, append(slices.Clone(have), policies...), given)
	if err != nil {
		return err
	}
	service, err := k.service(ctx, &ledger{work: w}, found)
	if err != nil {
		return err
	}
	if _, err := service.SetPolicies(ctx, k.ref(w, hash), policies); err != nil {
		return faultOf(err)
	}
	h.owned.Policies = policies
	return k.emit(ctx, w, record.KeyUpdated, h.owned)
}

// Rotate makes a successor of a developer's key, which stays valid beside it for a
// time. A user gets another password in its place, which must have been made
// beforehand: see NewPassword.
func (k *Keeper) Rotate(ctx context.Context, w *Work, developer, hash string, r Rotation) (Issued, error) {
	h, err := k.hold(ctx, w, developer, hash)
	if err != nil {
		return Issued{}, err
	}
	service, err := k.serviceFor(ctx, w, h)
	if err != nil {
		return Issued{}, err
	}
	issued := Issued{Hash: hash}
	if h.session.HasPassword() {
		issued.Credential, err = k.rotateUser(ctx, service, k.ref(w, hash), h.session, r)
	} else {
		var made keys.Issued
		made, err = service.Rotate(ctx, k.ref(w, hash), r.Grace)
		issued.RawKey = made.Key
	}
	if err != nil {
		return Issued{}, faultOf(err)
	}
	return issued, k.emit(ctx, w, record.KeyRotated, h.owned)
}

// A Rotation says how a key gets a successor.
type Rotation struct {
	Grace    time.Duration // how long the key stays valid beside its successor
	Password *Password     // for a user
}

func (k *Keeper) rotateUser(ctx context.Context, service *keys.Service, ref keys.Ref, old *definition.Session, r Rotation) (record.Credential, error) {
	switch {
	case r.Grace != 0:
		return record.Credential{}, rest.BadRequest("grace: must be 0s, as a user has one password at a time")
	case r.Password == nil:
		return record.Credential{}, conflict("The key became a user's at the same moment, please try again")
	}
	session := old.Clone()
	session.BasicAuth = r.Password.stored()
	if _, err := service.Update(ctx, ref, session, true); err != nil {
		return record.Credential{}, err
	}
	return record.Credential{RawKey: old.Alias, Password: r.Password.plain}, nil
}

// ResetQuota forgets the used quotas of a developer's key.
func (k *Keeper) ResetQuota(ctx context.Context, w *Work, developer, hash string) error {
	h, err := k.hold(ctx, w, developer, hash)
	if err != nil {
		return err
	}
	service, err := k.serviceFor(ctx, w, h)
	if err != nil {
		return err
	}
	_, err = service.ResetQuota(ctx, k.ref(w, hash))
	return faultOf(err)
}

// Revoke ends a developer's key, at once.
func (k *Keeper) Revoke(ctx context.Context, w *Work, developer, hash string) error {
	h, err := k.hold(ctx, w, developer, hash)
	if err != nil {
		return err
	}
	service, err := k.serviceFor(ctx, w, h)
	if err != nil {
		return err
	}
	if _, err := service.Delete(ctx, k.ref(w, hash)); err != nil {
		return faultOf(err)
	}
	return k.emit(ctx, w, record.KeyRevoked, h.owned)
}

// RevokeAll ends all keys of a developer within a caller's transaction. Once that
// has happened, the caller lets the gateways know of the hashes.
func (k *Keeper) RevokeAll(ctx context.Context, tx *store.Tx, by store.Author, developer string) (hashes []string, err error) {
	w := &Work{Tx: tx, By: by}
	for {
		some, _, err := requests.KeysOf(ctx, tx.Queries, by.Org, developer, store.Page{Max: MaxKeys})
		if err != nil || len(some) == 0 {
			return w.touched, err
		}
		for i := range some {
			err := k.Revoke(ctx, w, developer, some[i].Owner.KeyHash)
			if fault, ok := errors.AsType[*rest.Fault](err); ok {
				return nil, errors.New("revoking a developer's key: " + fault.Message)
			}
			if err != nil {
				return nil, err
			}
		}
	}
}
