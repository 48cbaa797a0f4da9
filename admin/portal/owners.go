package portal

import (
	"context"

	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store/requests"
)

// OwnKey returns the identity of the key that the path of a developer's call
// names, when it is the developer's.
func (p *Portal) OwnKey(ctx context.Context, c *rest.Call) (identity string, err error) {
	q := p.store.Read()
	identity, err = p.issued.HashOf(ctx, q, credentials.Owner{Org: c.Who.Org, Developer: c.Who.ID}, c.Param("key"))
	if err != nil {
		return "", err
	}
	if _, err := requests.KeyOf(ctx, q, c.Who.Org, c.Who.ID, identity); err != nil {
		return "", rest.Missing(err, "Could not retrieve portal object.")
	}
	return identity, nil
}
