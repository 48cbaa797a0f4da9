package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// Gateway is what a gateway last said of itself.
type Gateway = db.Gateway

// PutGateway records what a gateway says of itself, as of now. SeenAt is
// ignored.
func (s *Store) PutGateway(ctx context.Context, g Gateway) error {
	return translate(s.queries.PutGateway(ctx, db.PutGatewayParams{
		Name: g.Name, GroupName: g.GroupName, Build: g.Build, Revision: g.Revision, Error: g.Error, IP: g.IP,
	}))
}

// ListGateways returns up to 1,000 gateways that were heard of within a day, by
// name.
func (s *Store) ListGateways(ctx context.Context) ([]Gateway, error) {
	rows, err := s.queries.ListGateways(ctx)
	return rows, translate(err)
}

// DropGateways forgets gateways that were not heard of for a day.
func (s *Store) DropGateways(ctx context.Context) error {
	return translate(s.queries.DropGateways(ctx))
}
