package control

import (
	"errors"
	"net/http"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
)

// keyWords are the messages of a call for errors about keys.
type keyWords struct {
	missing string // no such key
	refused string // for incompatible policies or missing rights; "": the reason is the message
	status  int    // of refused
	verb    string // begins messages, as in "Failed to <verb> key"
	other   *Error // for every other error; nil: an internal one
}

// The messages by kind of call.
var (
	creating = keyWords{missing: "Key not found", status: http.StatusInternalServerError, verb: "create"}
	naming   = keyWords{
		missing: "Key not found", status: http.StatusInternalServerError, verb: "create",
		refused: "Failed to create key, ensure security settings are correct.",
	}
	looking  = keyWords{missing: "Key not found", status: http.StatusInternalServerError, verb: "read"}
	updating = keyWords{missing: "Key is not found", status: http.StatusBadRequest, verb: "update"}
	swapping = keyWords{missing: "Key not found", status: http.StatusBadRequest, verb: "update"}
	deleting = keyWords{
		missing: "There is no such key found", status: http.StatusInternalServerError, verb: "delete",
		other: refuse(http.StatusBadRequest, "Failed to remove the key"),
	}
)

// fault converts an error of Keys.
func (w *keyWords) fault(err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if problems, ok := errors.AsType[*definition.Problems](err); ok {
		return invalid(keyKind.name, *problems)
	}
	if policy, ok := errors.AsType[*keys.PolicyError](err); ok {
		return w.refuse(w.status, "Failed to "+w.verb+" key - "+policy.Error(), "apply_policies", policy)
	}
	if custom, ok := errors.AsType[*keys.CustomError](err); ok {
		return refuse(http.StatusBadRequest, "Failed to create key, "+custom.Error())
	}
	if rotation, ok := errors.AsType[*keys.RotationError](err); ok {
		return refuse(http.StatusBadRequest, "Key cannot be rotated: "+rotation.Error())
	}
	switch {
	case errors.Is(err, keys.ErrNotFound):
		return refuse(http.StatusNotFound, w.missing)
	case errors.Is(err, keys.ErrMaster):
		return w.refuse(http.StatusBadRequest, "Failed to "+w.verb+" key, keys must have at least one Access Rights record set.", "access_rights", err)
	case errors.Is(err, keys.ErrNotHashed):
		return refuse(http.StatusBadRequest, "Key requested by hash but key hashing is not enabled")
	case errors.Is(err, keys.ErrExists):
		return refuse(http.StatusConflict, "There is such a key already")
	case errors.Is(err, keys.ErrChanged):
		return refuse(http.StatusConflict, "The key was rotated at the same moment, please try again")
	case errors.Is(err, keystore.ErrUnavailable):
		return unavailable("The key store is not available; try again", err)
	case errors.Is(err, keys.ErrBusy):
		return unavailable("Too many passwords are being hashed; try again", err)
	case errors.Is(err, counter.ErrUnavailable):
		return unavailable("The counter store is not available; try again", err)
	case w.other != nil:
		return &Error{Status: w.other.Status, Message: w.other.Message, Cause: err}
	}
	return err
}

// refuse returns the error for a session that cannot be a key's. With a fixed message,
// the reason becomes a problem.
func (w *keyWords) refuse(status int, message, path string, reason error) *Error {
	if w.refused == "" {
		return refuse(status, message)
	}
	return &Error{
		Status: w.status, Message: w.refused,
		Problems: []definition.Problem{{Path: path, Message: reason.Error()}},
	}
}
