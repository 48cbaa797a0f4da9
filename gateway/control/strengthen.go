package control

import (
	"context"
	"errors"
	"net/http"

	"github.com/sluicegate/sluice/internal/keys"
)

// strengthened is what the admin is asked for when a key was used that is stored under a
// legacy hash.
type strengthened struct {
	Hash   string   `json:"key_hash"`
	Hashes []string `json:"sha256"`
}

// Strengthen asks the admin to let SHA-256 hashes take the place of a legacy hash. It
// reports whether there was something to do.
func (a *Admin) Strengthen(ctx context.Context, identity string, hashes []string) (bool, error) {
	var done struct {
		Changed bool `json:"changed"`
	}
	err := a.doKey(ctx, http.MethodPost, "/api/gateway/keys/strengthen", &strengthened{identity, hashes}, &done)
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusConflict {
		return false, keys.ErrChanged
	}
	return done.Changed, err
}
