package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

const noSecret = "Secret does not exist"

func (s *Server) secretRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/secrets", Summary: "List the secrets that definitions can refer to; values are never shown", Tag: "Secrets", Role: rest.Editor,
			Reply: secretList{}, Handle: s.listSecrets,
		},
		{
			Method: "PUT", Path: "/api/secrets/{name}", Summary: "Set a secret, which gateways then use at once", Tag: "Secrets", Role: rest.Editor,
			Body: secretValue{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.putSecret,
		},
		{
			Method: "DELETE", Path: "/api/secrets/{name}", Summary: "Delete a secret that no API refers to", Tag: "Secrets", Role: rest.Editor,
			Reply: rest.Envelope{}, Wrong: []int{404, 409}, Handle: s.deleteSecret,
		},
	}
}

// secretValue is the body of a call that sets a secret.
type secretValue struct {
	// Secret of 4 to 8192 bytes, which definitions refer to by {secret:NAME}. It is encrypted at rest
	// and never shown.
	Value string `json:"value"`
}

// listedSecret is a secret in a list.
type listedSecret struct {
	// Name by which definitions refer to the secret: {secret:NAME}.
	Name string `json:"name"`
	// Time at which the secret was first set.
	CreatedAt time.Time `json:"created_at"`
	// Time at which it was last set.
	UpdatedAt time.Time `json:"updated_at"`
	// E-mail address or name of the caller who set it last.
	UpdatedBy string `json:"updated_by"`
	// APIs that refer to the secret.
	UsedBy []secretUser `json:"used_by"`
}

// secretUser is an API that refers to a secret.
type secretUser struct {
	// Id of the API.
	ID string `json:"api_id"`
	// Name of the API.
	Name string `json:"name"`
}

// secretList is every secret of an organisation.
type secretList struct {
	// All secrets of the organisation, without their values.
	Secrets []listedSecret `json:"secrets"`
}

func (s *Server) listSecrets(ctx context.Context, c *rest.Call) (any, error) {
	rows, users, err := s.deps.Store.ListSecrets(ctx, c.Who.Org)
	if err != nil {
		return nil, err
	}
	list := &secretList{Secrets: make([]listedSecret, 0, len(rows))}
	for _, row := range rows {
		one := listedSecret{Name: row.Name, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, UpdatedBy: row.UpdatedBy, UsedBy: []secretUser{}}
		for i := range users {
			if slices.Contains(users[i].Secrets, row.Name) {
				one.UsedBy = append(one.UsedBy, secretUser{users[i].ID, users[i].Name})
			}
		}
		list.Secrets = append(list.Secrets, one)
	}
	return list, nil
}

func (s *Server) putSecret(ctx context.Context, c *rest.Call) (any, error) {
	name := c.Param("name")
	if !definition.ValidSecretName(name) {
		return nil, rest.BadRequest(`name: must consist of letters, digits, "-", "_" and ".", begin with a letter or a digit, and have at most 128 characters`)
	}
	var given secretValue
	if err := c.Decode(&given); err != nil {
		return nil, err
	}
	switch {
	case given.Value == "":
		return nil, rest.BadRequest("value: must not be empty; DELETE deletes a secret")
	case len(given.Value) < definition.MinSecret || len(given.Value) > definition.MaxSecret:
		return nil, rest.BadRequest(fmt.Sprintf("value: has %d bytes; %d to %d are allowed", len(given.Value), definition.MinSecret, definition.MaxSecret))
	case strings.Contains(given.Value, "\x00"):
		return nil, rest.BadRequest("value: must not hold the character U+0000")
	}
	sealed, err := s.deps.MasterKey.Seal([]byte(given.Value), store.SecretPlace(c.Who.Org, name))
	if err != nil {
		return nil, err
	}
	isNew := false
	err = s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		isNew, err = change.PutSecret(ctx, name, sealed)
		return err
	})
	if err != nil {
		return nil, err
	}
	if isNew {
		c.AnswerWith(fasthttp.StatusCreated)
	}
	answer := rest.Done("Secret set", nil)
	answer.ID = name
	return answer, nil
}

func (s *Server) deleteSecret(ctx context.Context, c *rest.Call) (any, error) {
	err := s.publish(ctx, c, func(ctx context.Context, change *store.Change) error {
		return change.DeleteSecret(ctx, c.Param("name"))
	})
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok && conflict.Kind == store.InUse {
		f := rest.Refuse(fasthttp.StatusConflict, "APIs refer to this secret; change them first: "+strings.Join(conflict.With, ", "))
		f.Errors = conflict.With
		return nil, f
	}
	if err != nil {
		return nil, rest.Missing(err, noSecret)
	}
	return rest.Done("Secret deleted", nil), nil
}

// openSecret decrypts a secret of a definition.
func (s *Server) openSecret(of store.SecretName, sealed []byte) (string, error) {
	value, err := s.deps.MasterKey.Open(sealed, store.SecretPlace(of.Org, of.Name))
	if err != nil {
		return "", fmt.Errorf("admin.master_key: the secret %q of organisation %s cannot be opened; set the key that it was sealed with, or set the secret again: %w", of.Name, of.Org, err)
	}
	return string(value), nil
}

// Secret returns the secret of an organisation that a definition refers to, for what the
// admin itself does with it.
func (s *Server) Secret(ctx context.Context, org string, ref definition.SecretRef) (string, error) {
	if ref.Kind != definition.SealedSecret {
		return "", errors.New("is read by gateways alone, and not by the admin; use a sealed secret, {secret:NAME}")
	}
	sealed, err := s.deps.Store.SealedSecret(ctx, org, ref.Name)
	if errors.Is(err, store.ErrNotFound) {
		return "", definition.ErrNoSecret
	}
	if err != nil {
		return "", err
	}
	return s.openSecret(store.SecretName{Org: org, Name: ref.Name}, sealed)
}
