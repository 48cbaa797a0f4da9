package credentials

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/rights"
)

// A Caller is a developer's key, with what decides on its calls.
type Caller struct {
	Hash     string // under which the key is stored
	Session  *definition.Session
	Policies *definition.PolicySet // of the session
}

// Caller returns a developer's own key that may call an API. A key that has ended or is
// switched off is returned as well: a gateway refuses its calls and says why.
func (k *Keys) Caller(ctx context.Context, who Owner, id, api string) (*Caller, error) {
	read := k.d.Store.Reader()
	hash, err := k.HashOf(ctx, read, who, id)
	if err != nil {
		return nil, err
	}
	if hash == "" {
		return nil, rest.NotFound(Missing)
	}
	row, err := read.DeveloperKey(ctx, who.Org, who.Developer, hash)
	if err != nil {
		return nil, rest.Missing(err, Missing)
	}
	session, err := store.SessionOf(&row.Key)
	if err != nil {
		return nil, err
	}
	found, err := k.d.Store.FindPolicies(ctx, who.Org, session.Policies())
	if err != nil {
		return nil, err
	}
	set, err := policySet(found)
	if err != nil {
		return nil, err
	}
	may, err := rights.Effective(session, set)
	if err != nil {
		return nil, conflict("The key cannot be used at the moment")
	}
	if _, ok := may.For(api); !ok {
		return nil, rest.Refuse(fasthttp.StatusForbidden, "access denied: no plan of the key includes this API")
	}
	return &Caller{Hash: row.Owner.KeyHash, Session: session, Policies: set}, nil
}
