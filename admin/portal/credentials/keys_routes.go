package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// Shown is a credential that a call issued.
type Shown struct {
	// Id of the key, which names it in later calls.
	ID string `json:"key_id"`
	// The key, or the name of a user, shown this once.
	RawKey string `json:"RawKey"`
	// Password of a user, shown this once; empty: the credential is a key.
	Password string `json:"Password"`
}

// developerKeyList is one page of a developer's keys.
type developerKeyList struct {
	// Keys of the page, oldest first.
	Data []View `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

const keysTag = "Developers' keys"

// Routes lists the routes of developers' keys.
func (k *Keys) Routes() []rest.Route {
	return append(k.operatorRoutes(), k.ownRoutes()...)
}

func (k *Keys) operatorRoutes() []rest.Route {
	const path = "/api/portal/developers/{id}/keys"
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "List a developer's keys, with what is left of their quotas", Tag: keysTag, Role: rest.Viewer,
			Query: rest.Paging, Reply: developerKeyList{}, Wrong: []int{400, 404}, Handle: k.listOf,
		},
		{
			Method: "POST", Path: path, Summary: "Make a key for a developer; the answer shows it this once", Tag: keysTag, Role: rest.Approver,
			Body: keyFields{}, Reply: Shown{}, Wrong: []int{400, 404, 409, 413, 415}, Secret: true, Handle: k.create,
		},
		{
			Method: "PUT", Path: path + "/{key}", Summary: "Replace the policies of a developer's key; its used quota stays", Tag: keysTag, Role: rest.Approver,
			Body: keyFields{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Handle: k.change,
		},
		{
			Method: "DELETE", Path: path + "/{key}", Summary: "Revoke a developer's key", Tag: keysTag, Role: rest.Approver,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: k.revoke,
		},
		{
			Method: "POST", Path: path + "/{key}/reset_quota", Summary: "Forget the used quota of a developer's key", Tag: keysTag, Role: rest.Approver,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: k.resetQuota,
		},
	}
}

func (k *Keys) ownRoutes() []rest.Route {
	const path = "/api/portal/me/keys"
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "List one's own keys, with what is left of their quotas", Tag: keysTag, Role: rest.Developer,
			Query: rest.Paging, Reply: developerKeyList{}, Wrong: []int{400}, Handle: k.listOwn,
		},
		{
			Method: "POST", Path: path + "/{key}/rotate", Summary: "Make a successor of one's own key, or another password of a user; shown this once", Tag: keysTag, Role: rest.Developer,
			Body: rotation{}, Reply: Shown{}, Wrong: []int{400, 404, 409, 413, 415}, Secret: true, Handle: k.rotate,
		},
		{
			Method: "DELETE", Path: path + "/{key}", Summary: "Revoke one's own key", Tag: keysTag, Role: rest.Developer,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: k.revoke,
		},
	}
}

// developerIn returns the id of the developer that a call is about: the caller, or the
// one in the path.
func developerIn(c *rest.Call) string {
	if c.Who.Role == rest.Developer {
		return c.Who.ID
	}
	return c.Param("id")
}

const noDeveloper = "Could not retrieve portal object."

func (k *Keys) listOf(ctx context.Context, c *rest.Call) (any, error) {
	found, err := k.d.Store.Requesters(ctx, c.Who.Org, []string{c.Param("id")})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, rest.NotFound(noDeveloper)
	}
	return k.listOwn(ctx, c)
}

func (k *Keys) listOwn(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	views, total, err := k.Keys(ctx, c.Who.Org, developerIn(c), page)
	if err != nil {
		return nil, err
	}
	return developerKeyList{Data: views, Pages: rest.Pages(total, page)}, nil
}

// keyFields is the body of a call that creates or changes a key.
type keyFields struct {
	// Ids of the policies that the key is to have.
	// Example: ["starter"]
	Policies []string `json:"apply_policies"`
	// Fields that go into the metadata of a new key, by name.
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
}

// MaxPolicies bounds the policies of a key.
const MaxPolicies = 50

// readWanted reads what a key is to carry.
func readWanted(c *rest.Call) (*keyFields, error) {
	in := new(keyFields)
	if err := c.Decode(in); err != nil {
		return nil, err
	}
	if len(in.Policies) == 0 {
		return nil, rest.BadRequest("apply_policies: must name at least one policy")
	}
	if err := CheckNames("apply_policies", in.Policies); err != nil {
		return nil, err
	}
	return in, CheckFields(in.Fields)
}

// CheckNames refuses lists of policies that are too long or have duplicates.
func CheckNames(path string, ids []string) error {
	if len(ids) > MaxPolicies {
		return rest.BadRequest(fmt.Sprintf("%s: names %d policies; at most %d are allowed", path, len(ids), MaxPolicies))
	}
	for i, id := range ids {
		if id == "" || slices.Contains(ids[:i], id) {
			return rest.BadRequest(fmt.Sprintf("%s[%d]: must be the id of a policy, each once, not %.40q", path, i, id))
		}
	}
	return nil
}

func (k *Keys) create(ctx context.Context, c *rest.Call) (any, error) {
	in, err := readWanted(c)
	if err != nil {
		return nil, err
	}
	var made Issued
	err = k.InTx(ctx, c.Author(c.Source()), func(w *KeyTx) error {
		developer, err := w.Tx.LockRequester(ctx, w.By.Org, c.Param("id"))
		if err != nil {
			return rest.Missing(err, noDeveloper)
		}
		made, err = k.Issue(ctx, w, &Grant{Developer: developer, Policies: in.Policies, MetaData: in.Fields})
		return err
	})
	if err != nil {
		return nil, err
	}
	k.d.Log.Info("developer's key created", "key", shortHash(k.PublicID(made.Hash)), "by", c.Who.Name)
	return k.shown(&made), nil
}

func (k *Keys) shown(made *Issued) Shown {
	return Shown{ID: k.PublicID(made.Hash), RawKey: made.RawKey, Password: made.Password}
}

// withKey changes the key that the path names.
func (k *Keys) withKey(ctx context.Context, c *rest.Call, change func(w *KeyTx, developer, hash string) error) error {
	developer, changed := developerIn(c), ""
	err := k.InTx(ctx, c.Author(c.Source()), func(w *KeyTx) error {
		hash, err := k.HashOf(ctx, w.Reader(), Owner{w.By.Org, developer}, c.Param("key"))
		if err != nil {
			return err
		}
		changed = hash
		return change(w, developer, hash)
	})
	if err == nil {
		k.d.Log.Info("developer's key changed", "key", shortHash(k.PublicID(changed)), "by", c.Who.Name, "route", c.Route.Name())
	}
	return err
}

func (k *Keys) change(ctx context.Context, c *rest.Call) (any, error) {
	in, err := readWanted(c)
	if err != nil {
		return nil, err
	}
	if len(in.Fields) > 0 {
		return nil, rest.BadRequest("fields: are those of a new key; leave them out")
	}
	err = k.withKey(ctx, c, func(w *KeyTx, developer, hash string) error {
		return k.Change(ctx, w, developer, hash, func([]string) []string { return in.Policies })
	})
	if err != nil {
		return nil, err
	}
	return rest.Done("Data updated", nil), nil
}

func (k *Keys) revoke(ctx context.Context, c *rest.Call) (any, error) {
	err := k.withKey(ctx, c, func(w *KeyTx, developer, hash string) error { return k.Revoke(ctx, w, developer, hash) })
	if err != nil {
		return nil, err
	}
	return rest.Done("Data deleted", nil), nil
}

func (k *Keys) resetQuota(ctx context.Context, c *rest.Call) (any, error) {
	err := k.withKey(ctx, c, func(w *KeyTx, developer, hash string) error { return k.ResetQuota(ctx, w, developer, hash) })
	if err != nil {
		return nil, err
	}
	return rest.Done("Quota reset", nil), nil
}

// rotation is the body of a call that rotates a key.
type rotation struct {
	// How long the key stays valid beside its successor, such as 24h; 0s ends it at once.
	// Example: "24h"
	Grace string `json:"grace"`
}

func (k *Keys) rotate(ctx context.Context, c *rest.Call) (any, error) {
	var in rotation
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	var r Rotation
	var err error
	if r.Grace, err = time.ParseDuration(in.Grace); err != nil {
		return nil, rest.BadRequest("grace: must be a time such as 24h, or 0s")
	}
	if r.Password, err = k.passwordFor(ctx, c); err != nil {
		return nil, err
	}
	var made Issued
	err = k.withKey(ctx, c, func(w *KeyTx, developer, hash string) (err error) {
		made, err = k.Rotate(ctx, w, developer, hash, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return k.shown(&made), nil
}

// passwordFor makes a password if the key in the path is a user. It does so before the
// transaction, as hashing is too slow while the row is locked.
func (k *Keys) passwordFor(ctx context.Context, c *rest.Call) (*Password, error) {
	read, who := k.d.Store.Reader(), Owner{c.Who.Org, c.Who.ID}
	hash, err := k.HashOf(ctx, read, who, c.Param("key"))
	if err != nil {
		return nil, err
	}
	row, err := read.DeveloperKey(ctx, who.Org, who.Developer, hash)
	if err != nil {
		return nil, rest.Missing(err, Missing)
	}
	session, err := store.SessionOf(&row.Key)
	if err != nil || !session.HasPassword() {
		return nil, err
	}
	return k.NewPassword(ctx)
}
