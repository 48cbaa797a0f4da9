package control

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
)

const (
	apisPath     = "/api/apis"
	policiesPath = "/api/portal/policies"
)

// at returns the path of one object. An id is one escaped segment; "." and ".." are
// refused.
func at(collection, id string) (string, error) {
	if id == "" || id == "." || id == ".." {
		return "", ErrNotFound
	}
	return collection + "/" + url.PathEscape(id), nil
}

// SaveAPI implements Definitions. The admin has separate calls for creating and
// replacing; here a definition with a known id replaces the old one.
func (a *Admin) SaveAPI(ctx context.Context, api *definition.API, update bool) (string, error) {
	if api.ID != "" {
		path, err := at(apisPath, api.ID)
		if err != nil {
			return "", err
		}
		err = a.do(ctx, http.MethodPut, path, api, nil)
		if update || statusOf(err) != http.StatusNotFound {
			return api.ID, said(err, apiKind.name)
		}
	}
	var made reply
	if err := a.do(ctx, http.MethodPost, apisPath, api, &made); err != nil {
		return "", said(err, apiKind.name)
	}
	return made.ID, nil
}

// DeleteAPI implements Definitions. Policies that name the API stay unchanged.
func (a *Admin) DeleteAPI(ctx context.Context, id string) error {
	path, err := at(apisPath, id)
	if err != nil {
		return err
	}
	return said(a.do(ctx, http.MethodDelete, path+"?force=true", nil, nil), apiKind.name)
}

// SavePolicy implements Definitions.
func (a *Admin) SavePolicy(ctx context.Context, p *definition.Policy, update bool) error {
	path, err := at(policiesPath, p.Key())
	if err != nil {
		return err
	}
	err = a.do(ctx, http.MethodPut, path, p, nil)
	if !update && statusOf(err) == http.StatusNotFound {
		err = a.do(ctx, http.MethodPost, policiesPath, p, nil)
	}
	return said(err, policyKind.name)
}

// DeletePolicy implements Definitions.
func (a *Admin) DeletePolicy(ctx context.Context, id string) error {
	path, err := at(policiesPath, id)
	if err != nil {
		return err
	}
	return said(a.do(ctx, http.MethodDelete, path, nil, nil), policyKind.name)
}

// sorted returns the keys of a map in order.
func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
