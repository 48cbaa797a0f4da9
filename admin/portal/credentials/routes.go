package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store/requests"
)

// Shown is a credential that a call made.
type Shown struct {
	ID       string `json:"key_id" doc:"names the key in later calls"`
	RawKey   string `json:"RawKey" doc:"the key, or the user's name; shown this once"`
	Password string `json:"Password" doc:"the user's; shown this once"`
}

// list is one page of a developer's keys.
type list struct {
	Data  []View `json:"Data"`
	Pages int64  `json:"Pages"`
}

const tag = "Developers' keys"

// Routes lists what is answered about developers' keys.
func (k *Keeper) Routes() []rest.Route {
	return append(k.operatorRoutes(), k.ownRoutes()...)
}

func (k *Keeper) operatorRoutes() []rest.Route {
	const path = "/api/portal/developers/{id}/keys"
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "List a developer's keys, with what is left of their quotas", Tag: tag, Role: rest.Viewer,
			Query: rest.Paging, Reply: list{}, Wrong: []int{400, 404}, Handle: k.listOf,
		},
		{
			Method: "POST", Path: path, Summary: "Make a key for a developer; the answer shows it this once", Tag: tag, Role: rest.Approver,
			Body: wanted{}, Reply: Shown{}, Wrong: []int{400, 404, 409, 413, 415}, Secret: true, Handle: k.create,
		},
		{
			Method: "PUT", Path: path + "/{key}", Summary: "Replace the policies of a developer's key; its used quota stays", Tag: tag, Role: rest.Approver,
			Body: wanted{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Handle: k.change,
		},
		{
			Method: "DELETE", Path: path + "/{key}", Summary: "Revoke a developer's key", Tag: tag, Role: rest.Approver,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: k.revoke,
		},
		{
			Method: "POST", Path: path + "/{key}/reset_quota", Summary: "Forget the used quota of a developer's key", Tag: tag, Role: rest.Approver,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: k.resetQuota,
		},
	}
}

func (k *Keeper) ownRoutes() []rest.Route {
	const path = "/api/portal/me/keys"
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "List one's own keys, with what is left of their quotas", Tag: tag, Role: rest.Developer,
			Query: rest.Paging, Reply: list{}, Wrong: []int{400}, Handle: k.listOwn,
		},
		{
			Method: "POST", Path: path + "/{key}/rotate", Summary: "Make a successor of one's own key, or another password of a user; shown this once", Tag: tag, Role: rest.Developer,
			Body: rotation{}, Reply: Shown{}, Wrong: []int{400, 404, 409, 413, 415}, Secret: true, Handle: k.rotate,
		},
		{
			Method: "DELETE", Path: path + "/{key}", Summary: "Revoke one's own key", Tag: tag, Role: rest.Developer,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: k.revoke,
		},
	}
}

// developerOf is whose keys a call is about: a developer's own, or those of the
// developer whom the path names.
func developerOf(c *rest.Call) string {
	if c.Who.Role == rest.Developer {
		return c.Who.ID
	}
	return c.Param("id")
}

const noDeveloper = "Could not retrieve portal object."

func (k *Keeper) listOf(ctx context.Context, c *rest.Call) (any, error) {
	found, err := requests.Requesters(ctx, k.d.Store, c.Who.Org, []string{c.Param("id")})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, rest.NotFound(noDeveloper)
	}
	return k.listOwn(ctx, c)
}

func (k *Keeper) listOwn(ctx context.Context, c *rest.Call) (any, error) {
	page, err := c.Page(false)
	if err != nil {
		return nil, err
	}
	views, total, err := k.Keys(ctx, c.Who.Org, developerOf(c), page)
	if err != nil {
		return nil, err
	}
	return list{Data: views, Pages: rest.Pages(total, page)}, nil
}

// wanted says what a key is to carry.
type wanted struct {
	Policies []string                   `json:"apply_policies"`
	Fields   map[string]json.RawMessage `json:"fields,omitempty" doc:"goes into the meta data of a new key"`
}

// MaxPolicies is how many policies a key is given at most.
const MaxPolicies = 50

// readWanted reads what a key is to carry.
func readWanted(c *rest.Call) (*wanted, error) {
	in := new(wanted)
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

// CheckNames refuses lists of policies that are too long or name one twice.
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

func (k *Keeper) create(ctx context.Context, c *rest.Call) (any, error) {
	in, err := readWanted(c)
	if err != nil {
		return nil, err
	}
	var made Issued
	err = k.InTx(ctx, c.Author(c.Source()), func(w *Work) error {
		developer, err := requests.LockRequester(ctx, w.Tx, w.By.Org, c.Param("id"))
		if err != nil {
			return rest.Missing(err, noDeveloper)
		}
		made, err = k.Issue(ctx, w, &Grant{Developer: developer, Policies: in.Policies, MetaData: in.Fields})
		return err
	})
	if err != nil {
		return nil, err
	}
	k.d.Log.Info("developer's key created", "key", short(k.PublicID(made.Hash)), "by", c.Who.Name)
	return k.shown(&made), nil
}

func (k *Keeper) shown(made *Issued) Shown {
	return Shown{ID: k.PublicID(made.Hash), RawKey: made.RawKey, Password: made.Password}
}

// withKey runs a change of the key that the path names.
func (k *Keeper) withKey(ctx context.Context, c *rest.Call, change func(w *Work, developer, hash string) error) error {
	developer, changed := developerOf(c), ""
	err := k.InTx(ctx, c.Author(c.Source()), func(w *Work) error {
		hash, err := k.HashOf(ctx, w.Queries, Owner{w.By.Org, developer}, c.Param("key"))
		if err != nil {
			return err
		}
		changed = hash
		return change(w, developer, hash)
	})
	if err == nil {
		k.d.Log.Info("developer's key changed", "key", short(k.PublicID(changed)), "by", c.Who.Name, "route", c.Route.Name())
	}
	return err
}

func (k *Keeper) change(ctx context.Context, c *rest.Call) (any, error) {
	in, err := readWanted(c)
	if err != nil {
		return nil, err
	}
	if len(in.Fields) > 0 {
		return nil, rest.BadRequest("fields: are those of a new key; leave them out")
	}
	err = k.withKey(ctx, c, func(w *Work, developer, hash string) error {
		return k.Change(ctx, w, developer, hash, func([]string) []string { return in.Policies })
	})
	if err != nil {
		return nil, err
	}
	return rest.Done("Data updated", nil), nil
}

func (k *Keeper) revoke(ctx context.Context, c *rest.Call) (any, error) {
	err := k.withKey(ctx, c, func(w *Work, developer, hash string) error { return k.Revoke(ctx, w, developer, hash) })
	if err != nil {
		return nil, err
	}
	return rest.Done("Data deleted", nil), nil
}

func (k *Keeper) resetQuota(ctx context.Context, c *rest.Call) (any, error) {
	err := k.withKey(ctx, c, func(w *Work, developer, hash string) error { return k.ResetQuota(ctx, w, developer, hash) })
	if err != nil {
		return nil, err
	}
	return rest.Done("Quota reset", nil), nil
}

// rotation says how a key gets a successor.
type rotation struct {
	Grace string `json:"grace" doc:"how long the key stays valid beside its successor, such as 24h; 0s ends it at once"`
}

func (k *Keeper) rotate(ctx context.Context, c *rest.Call) (any, error) {
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
	err = k.withKey(ctx, c, func(w *Work, developer, hash string) (err error) {
		made, err = k.Rotate(ctx, w, developer, hash, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return k.shown(&made), nil
}

// passwordFor makes a password when the key that the path names is a user: that
// takes too long to do it while others wait for the row.
func (k *Keeper) passwordFor(ctx context.Context, c *rest.Call) (*Password, error) {
	read, who := k.d.Store.Read(), Owner{c.Who.Org, c.Who.ID}
	hash, err := k.HashOf(ctx, read, who, c.Param("key"))
	if err != nil {
		return nil, err
	}
	row, err := requests.KeyOf(ctx, read, who.Org, who.Developer, hash)
	if err != nil {
		return nil, rest.Missing(err, Missing)
	}
	session, err := sessionOf(&row.Key)
	if err != nil || !session.HasPassword() {
		return nil, err
	}
	return k.NewPassword(ctx)
}
