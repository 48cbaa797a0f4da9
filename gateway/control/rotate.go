package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keys"
)

// rotation is the request body that rotates a key.
type rotation struct {
	Grace string `json:"grace"`
	grace time.Duration
}

var rotationKind = kind[rotation]{
	parse: parseRotation, name: "Request",
	malformed: refuse(fasthttp.StatusBadRequest, "Request malformed"),
}

func parseRotation(body []byte) (r rotation, err error) {
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	if err = dec.Decode(&r); err == nil && dec.More() {
		err = errors.New("something follows the object")
	}
	if err == nil {
		r.grace, err = time.ParseDuration(r.Grace)
	}
	if err != nil {
		return r, errors.New(`must be {"grace": "24h"}, with a time or 0s: ` + strings.TrimPrefix(err.Error(), "json: "))
	}
	return r, nil
}

// rotateKey answers with the successor of a key, which is not shown again, and the hash
// that identifies both.
func (a *API) rotateKey(ctx context.Context, c *call) (any, error) {
	ref, err := c.ref()
	if err != nil {
		return nil, err
	}
	wanted, err := read(c, rotationKind)
	if err != nil {
		return nil, err
	}
	issued, err := a.deps.Keys.Rotate(ctx, ref, wanted.grace)
	if err != nil {
		return nil, looking.fault(err)
	}
	a.raise(event.TokenUpdated, issued)
	return &change{Key: issued.Key, Status: "ok", Action: rotated, KeyHash: issued.Hash}, nil
}

// retireKeys ends the keys before the newest one.
func (a *API) retireKeys(ctx context.Context, c *call) (any, error) {
	ref, err := c.ref()
	if err != nil {
		return nil, err
	}
	issued, err := a.deps.Keys.Retire(ctx, ref)
	if err != nil {
		return nil, looking.fault(err)
	}
	a.raise(event.TokenUpdated, issued)
	return changed(c.id, modified), nil
}

// Rotate implements Keys.
func (a *Admin) Rotate(ctx context.Context, ref keys.Ref, grace time.Duration) (keys.Issued, error) {
	path, err := keyPath(ref, "/rotate")
	if err != nil {
		return keys.Issued{}, err
	}
	var made keyDetail
	if err := a.doRotation(ctx, http.MethodPost, path, &rotation{Grace: grace.String()}, &made); err != nil {
		return keys.Issued{}, err
	}
	return a.issuedBy(keys.Ref{ID: made.Key}, made.Hash), nil
}

// Retire implements Keys.
func (a *Admin) Retire(ctx context.Context, ref keys.Ref) (keys.Issued, error) {
	path, err := keyPath(ref, "/rotate")
	if err != nil {
		return keys.Issued{}, err
	}
	var now keyDetail
	err = a.doRotation(ctx, http.MethodDelete, path, nil, &now)
	return a.issuedBy(ref, now.Hash), err
}

// doRotation is doKey for calls that the admin may refuse because a key cannot be
// rotated.
func (a *Admin) doRotation(ctx context.Context, method, path string, body, into any) error {
	err := a.doKey(ctx, method, path, body, into)
	if e, ok := errors.AsType[*Error](err); ok {
		if reason, ok := strings.CutPrefix(e.Message, "Key cannot be rotated: "); ok {
			return &keys.RotationError{Reason: reason}
		}
	}
	return err
}
