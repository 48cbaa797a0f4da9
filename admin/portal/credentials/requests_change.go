package credentials

import (
	"context"
	"fmt"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// update answers PUT and UPDATE.
func (s *Requests) update(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	r, err := readRequest(c)
	if err != nil {
		return nil, err
	}
	old, err := s.d.Store.KeyRequestByID(ctx, c.Who.Org, c.Param("id"))
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
	err = s.d.Keys.InTx(ctx, by, func(w *KeyTx) error {
		version, err = s.updateLocked(ctx, w, old.Version, row)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.SetVersion(version)
	return rest.Done(old.ID, nil), nil
}

// updatable refuses a change of a decided request, or of another version than have.
func updatable(row *store.KeyRequest, have int64) error {
	if _, err := nextState(row, moveChange); err != nil {
		return err
	}
	if have != 0 && have != row.Version {
		return &store.ConflictError{Kind: store.Stale, Current: row.Version}
	}
	return nil
}

// successor returns the request that replaces old. A secret that is left out stays, as it
// is never shown.
func (s *Requests) successor(ctx context.Context, old *store.KeyRequest, r *model.KeyRequest) (*store.KeyRequest, error) {
	if r.ID != "" && r.ID != old.ID {
		return nil, rest.BadRequest(fmt.Sprintf("id: must be %s, as in the path, or be left out", old.ID))
	}
	if r.ByUser == "" {
		r.ByUser = old.DeveloperID
	}
	if err := s.checkDeveloper(ctx, old.OrgID, r.ByUser); err != nil {
		return nil, err
	}
	a, err := s.resolve(ctx, old.OrgID, r)
	if err != nil {
		return nil, err
	}
	row, err := s.row(old.ID, old.OrgID, a)
	if err == nil && r.JWTSecret == "" && row.AuthType == Token && row.KeyHash == "" {
		row.SealedSecret = old.SealedSecret
	}
	return row, err
}

// updateLocked writes a change of a version of a request.
func (s *Requests) updateLocked(ctx context.Context, w *KeyTx, of int64, row *store.KeyRequest) (version int64, err error) {
	old, err := w.Tx.LockKeyRequest(ctx, w.By.Org, row.ID)
	if err != nil {
		return 0, rest.Missing(err, noRequest)
	}
	if err := updatable(&old, of); err != nil {
		return 0, err
	}
	if _, err := w.Tx.HoldRequester(ctx, w.By.Org, row.DeveloperID); err != nil {
		return 0, unknownDeveloper(err, row.DeveloperID)
	}
	updated, err := w.Tx.UpdateKeyRequest(ctx, w.By, &old, row)
	if err != nil {
		return 0, err
	}
	return updated.Version, s.emit(ctx, w.Tx, model.RequestUpdated, &updated)
}

// remove answers DELETE: operators delete any request, developers their own pending
// ones. Deleting a pending request rejects it.
func (s *Requests) remove(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	by := c.Author(c.Source())
	err = s.d.Keys.InTx(ctx, by, func(w *KeyTx) error {
		row, err := w.Tx.LockKeyRequest(ctx, by.Org, c.Param("id"))
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

func removable(row *store.KeyRequest, have int64) error {
	if _, err := nextState(row, moveDelete); err != nil {
		return err
	}
	if have != 0 && have != row.Version {
		return &store.ConflictError{Kind: store.Stale, Current: row.Version}
	}
	return nil
}

func (s *Requests) removeLocked(ctx context.Context, w *KeyTx, row *store.KeyRequest) error {
	if err := w.Tx.DeleteKeyRequest(ctx, w.By, row); err != nil {
		return err
	}
	if State(row.State) != Pending {
		return nil
	}
	row.State, row.Reason = string(Rejected), "deleted"
	return s.emit(ctx, w.Tx, model.RequestRejected, row)
}
