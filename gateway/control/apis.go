package control

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/valyala/fasthttp"
)

var apiKind = kind[*definition.API]{
	parse: definition.ParseAPI, name: "API Definition",
	malformed: refuse(fasthttp.StatusBadRequest, "Request malformed"),
}

var noAPI = refuse(fasthttp.StatusNotFound, "API not found")

func (a *API) listAPIs(context.Context, *call) (any, error) {
	apis := a.deps.Live.APIs()
	if apis == nil {
		apis = []*definition.API{}
	}
	return apis, nil
}

func (a *API) getAPI(_ context.Context, c *call) (any, error) {
	api := a.deps.Live.API(c.id)
	if api == nil {
		return nil, noAPI
	}
	return api, nil
}

func (a *API) createAPI(ctx context.Context, c *call) (any, error) {
	api, err := read(c, apiKind)
	if err != nil {
		return nil, err
	}
	id, err := a.deps.Definitions.SaveAPI(ctx, api, false)
	if err != nil {
		return nil, err
	}
	a.log.Info("API saved through the gateway API", "api", id, "action", added)
	return changed(id, added).warn(c.warnings), nil
}

func (a *API) updateAPI(ctx context.Context, c *call) (any, error) {
	api, err := read(c, apiKind)
	if err != nil {
		return nil, err
	}
	if api.ID != c.id {
		return nil, refuse(fasthttp.StatusBadRequest, "Request APIID does not match that in Definition! For Update operations these must match.")
	}
	if _, err := a.deps.Definitions.SaveAPI(ctx, api, true); err != nil {
		return nil, missing(err, noAPI)
	}
	a.log.Info("API saved through the gateway API", "api", c.id, "action", modified)
	return changed(c.id, modified).warn(c.warnings), nil
}

func (a *API) deleteAPI(ctx context.Context, c *call) (any, error) {
	if err := a.deps.Definitions.DeleteAPI(ctx, c.id); err != nil {
		return nil, missing(err, noAPI)
	}
	a.log.Info("API deleted through the gateway API", "api", c.id)
	return changed(c.id, deleted), nil
}

// missing replaces ErrNotFound by another error.
func missing(err error, say *Error) error {
	if errors.Is(err, ErrNotFound) {
		return say
	}
	return err
}

// version is an entry in the list of an API's versions.
type version struct {
	APIID     string `json:"api_id"`
	Name      string `json:"name"`
	Expires   string `json:"expires,omitempty"` // "YYYY-MM-DD HH:MM" in UTC; absent: never
	IsDefault bool   `json:"is_default"`
}

// defaultVersion is the only version of an API that has no versions.
const defaultVersion = "Default"

func (a *API) listVersions(_ context.Context, c *call) (any, error) {
	api := a.deps.Live.API(c.id)
	if api == nil {
		return nil, noAPI
	}
	if !api.Versioned() {
		return []version{{APIID: api.ID, Name: defaultVersion, IsDefault: true}}, nil
	}
	list := make([]version, 0, len(api.VersionData.Versions))
	for name, v := range api.VersionData.Versions {
		list = append(list, version{APIID: api.ID, Name: name, Expires: v.Expires, IsDefault: name == api.VersionData.DefaultVersion})
	}
	slices.SortFunc(list, func(x, y version) int { return strings.Compare(x.Name, y.Name) })
	return list, nil
}
