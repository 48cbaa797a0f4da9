package credentials

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

// A lockedKey is a developer's key, locked together with the developer until the
// transaction ends.
type lockedKey struct {
	owned   *store.KeyOwnership
	session *definition.Session
}

// lockKey returns a key of a developer by its hash.
func (k *Keys) lockKey(ctx context.Context, w *KeyTx, developer, hash string) (*lockedKey, error) {
	if _, err := w.Tx.LockRequester(ctx, w.By.Org, developer); err != nil {
		return nil, rest.Missing(err, Missing)
	}
	row, err := w.Reader().DeveloperKey(ctx, w.By.Org, developer, hash)
	if err != nil {
		return nil, rest.Missing(err, Missing)
	}
	session, err := store.SessionOf(&row.Key)
	return &lockedKey{&row.Owner, session}, err
}

// ref returns the reference to the key with a hash.
func (k *Keys) ref(w *KeyTx, hash string) keys.Ref {
	// A key that is stored in clear is its own identity.
	return keys.Ref{ID: hash, Hashed: k.d.Options.Hasher.Algorithm != credential.None, Org: w.By.Org}
}

// serviceFor returns the rules of keys for a change of a key.
func (k *Keys) serviceFor(ctx context.Context, w *KeyTx, h *lockedKey) (*keys.Service, error) {
	policies, err := k.lockPolicies(ctx, w, h.session.Policies(), nil)
	if err != nil {
		return nil, err
	}
	return k.service(ctx, &keyStore{work: w}, policies)
}

// Change sets the policies of a developer's key and keeps its used quota. Policies that
// the key did not have must be active.
func (k *Keys) Change(ctx context.Context, w *KeyTx, developer, hash string, change func(have []string) []string) error {
	h, err := k.lockKey(ctx, w, developer, hash)
	if err != nil {
		return err
	}
	have := h.session.Policies()
	policies := change(slices.Clone(have))
	if len(policies) == 0 {
		return conflict("The key would be left without a policy; revoke it instead")
	}
	given := slices.DeleteFunc(slices.Clone(policies), func(id string) bool { return slices.Contains(have, id) })
	found, err := k.lockPolicies(ctx, w, append(slices.Clone(have), policies...), given)
	if err != nil {
		return err
	}
	service, err := k.service(ctx, &keyStore{work: w}, found)
	if err != nil {
		return err
	}
	if _, err := service.SetPolicies(ctx, k.ref(w, hash), policies); err != nil {
		return faultOf(err)
	}
	h.owned.Policies = policies
	return k.emit(ctx, w, model.KeyUpdated, h.owned)
}

// Rotate creates a successor of a developer's key, which stays valid for a grace
// period. A user gets a new password instead, which must have been made before: see
// NewPassword.
func (k *Keys) Rotate(ctx context.Context, w *KeyTx, developer, hash string, r Rotation) (Issued, error) {
	h, err := k.lockKey(ctx, w, developer, hash)
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
	return issued, k.emit(ctx, w, model.KeyRotated, h.owned)
}

// A Rotation configures Rotate.
type Rotation struct {
	Grace    time.Duration // how long the key stays valid beside its successor
	Password *Password     // for a user
}

func (k *Keys) rotateUser(ctx context.Context, service *keys.Service, ref keys.Ref, old *definition.Session, r Rotation) (model.Credential, error) {
	switch {
	case r.Grace != 0:
		return model.Credential{}, rest.BadRequest("grace: must be 0s, as a user has one password at a time")
	case r.Password == nil:
		return model.Credential{}, conflict("The key became a user's at the same moment, please try again")
	}
	session := old.Clone()
	session.BasicAuth = r.Password.stored()
	if _, err := service.Update(ctx, ref, session, true); err != nil {
		return model.Credential{}, err
	}
	return model.Credential{RawKey: old.Alias, Password: r.Password.plain}, nil
}

// ResetQuota resets the used quotas of a developer's key.
func (k *Keys) ResetQuota(ctx context.Context, w *KeyTx, developer, hash string) error {
	h, err := k.lockKey(ctx, w, developer, hash)
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

// Revoke deletes a developer's key.
func (k *Keys) Revoke(ctx context.Context, w *KeyTx, developer, hash string) error {
	h, err := k.lockKey(ctx, w, developer, hash)
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
	return k.emit(ctx, w, model.KeyRevoked, h.owned)
}

// RevokeAll deletes all keys of a developer within the caller's transaction. The caller
// delivers the hashes to the gateways after the commit.
func (k *Keys) RevokeAll(ctx context.Context, tx *store.Tx, by store.Author, developer string) (hashes []string, err error) {
	w := &KeyTx{Tx: tx, By: by}
	for {
		some, _, err := tx.Reader().DeveloperKeys(ctx, by.Org, developer, store.Page{Max: MaxKeys})
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
