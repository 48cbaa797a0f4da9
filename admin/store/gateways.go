package store

import (
	"context"

	"github.com/sluicegate/sluice/admin/store/db"
)

// Gateway is the status that a gateway reported last.
type Gateway = db.Gateway

// PutGateway stores the status of a gateway with the current time. SeenAt is ignored.
func (s *Store) PutGateway(ctx context.Context, g Gateway) error {
	return translate(s.queries.PutGateway(ctx, db.PutGatewayParams{
		Name: g.Name, GroupName: g.GroupName, Build: g.Build, Revision: g.Revision, Error: g.Error, IP: g.IP, Tags: g.Tags,
	}))
}

// ListGateways returns up to 1,000 gateways that reported within a day, by name.
func (s *Store) ListGateways(ctx context.Context) ([]Gateway, error) {
	rows, err := s.queries.ListGateways(ctx)
	return rows, translate(err)
}

// DropGateway deletes a gateway, or returns ErrNotFound.
func (s *Store) DropGateway(ctx context.Context, name string) error {
	n, err := s.queries.DropGateway(ctx, name)
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return translate(err)
}

// DropGateways deletes gateways that did not report for a day.
func (s *Store) DropGateways(ctx context.Context) error {
	return translate(s.queries.DropGateways(ctx))
}
