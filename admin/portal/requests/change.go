package requests

import (
	"context"
	"fmt"

	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	kept "github.com/sluicegate/sluice/admin/store/requests"
)

// update answers PUT and UPDATE.
func (s *Service) update(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	r, err := read(c)
	if err != nil {
		return nil, err
	}
	old, err := kept.Get(ctx, s.d.Store, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, noRequest)
	}
	if err := updatable(&old, have); err != nil {
		return nil, err
	}
	row, err := s.successor(ctx, &old, r)
	if err != nil {
		return nil, err
	}
	by := c.Author(c.Source())
	var version int64
	err = s.d.Credentials.InTx(ctx, by, func(w *credentials.Work) error {
		version, err = s.updateLocked(ctx, w, old.Version, row)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.SetVersion(version)
	return rest.Done(old.ID, nil), nil
}

// updatable refuses a change of what was decided, or is not what the caller saw.
func updatable(row *kept.Request, have int64) error {
	if _, err := after(row, change); err != nil {
		return err
	}
	if have != 0 && have != row.Version {
		return &store.ConflictError{Kind: store.Stale, Current: row.Version}
	}
	return nil
}

// successor is what takes the place of a request. A secret that is left out stays,
// as it is never shown.
func (s *Service) successor(ctx context.Context, old *kept.Request, r *record.KeyRequest) (*kept.Request, error) {
	if r.ID != "" && r.ID != old.ID {
		return nil, rest.BadRequest(fmt.Sprintf("id: must be %s, as in the path, or be left out", old.ID))
	}
	if r.ByUser == "" {
		r.ByUser = old.DeveloperID
	}
	if err := s.checkDeveloper(ctx, old.OrgID, r.ByUser); err != nil {
		return nil, err
	}
	a, err := s.ask(ctx, old.OrgID, r)
	if err != nil {
		return nil, err
	}
	row, err := s.row(old.ID, old.OrgID, a)
	if err == nil && r.JWTSecret == "" && row.AuthType == credentials.Token && row.KeyHash == "" {
		row.SealedSecret = old.SealedSecret
	}
	return row, err
}

// updateLocked writes a change that was made of a version of a request.
func (s *Service) updateLocked(ctx context.Context, w *credentials.Work, of int64, row *kept.Request) (version int64, err error) {
	old, err := kept.Lock(ctx, w.Tx, w.By.Org, row.ID)
	if err != nil {
		return 0, rest.Missing(err, noRequest)
	}
	if err := updatable(&old, of); err != nil {
		return 0, err
	}
	if _, err := kept.HoldRequester(ctx, w.Tx, w.By.Org, row.DeveloperID); err != nil {
		return 0, unknownDeveloper(err, row.DeveloperID)
	}
	updated, err := kept.Update(ctx, w.Tx, w.By, &old, row)
	if err != nil {
		return 0, err
	}
	return updated.Version, s.emit(ctx, w.Tx, record.RequestUpdated, &updated)
}

// remove answers DELETE: of operators for any request, of developers for their own
// that nobody has decided on. Who deletes a pending request declines it.
func (s *Service) remove(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	by := c.Author(c.Source())
	err = s.d.Credentials.InTx(ctx, by, func(w *credentials.Work) error {
		row, err := kept.Lock(ctx, w.Tx, by.Org, c.Param("id"))
		if err != nil {
			return rest.Missing(err, noRequest)
		}
		own := c.Who.Role == rest.Developer
		if own && row.DeveloperID != c.Who.ID {
			return rest.NotFound(noRequest)
		}
		if own {
			err = updatable(&row, have)
		} else {
			err = removable(&row, have)
		}
		if err != nil {
			return err
		}
		return s.removeLocked(ctx, w, &row)
	})
	if err != nil {
		return nil, err
	}
	s.d.Log.Info("key request deleted", "request", c.Param("id"), "by", c.Who.Name)
	return rest.Done("Data deleted", nil), nil
}

func removable(row *kept.Request, have int64) error {
	if _, err := after(row, remove); err != nil {
		return err
	}
	if have != 0 && have != row.Version {
		return &store.ConflictError{Kind: store.Stale, Current: row.Version}
	}
	return nil
}

func (s *Service) removeLocked(ctx context.Context, w *credentials.Work, row *kept.Request) error {
	if err := kept.Delete(ctx, w.Tx, w.By, row); err != nil {
		return err
	}
	if State(row.State) != Pending {
		return nil
	}
	row.State, row.Reason = string(Rejected), "deleted"
	return s.emit(ctx, w.Tx, record.RequestRejected, row)
}
