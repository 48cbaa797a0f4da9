package control

import (
	"context"

	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/valyala/fasthttp"
)

// Limits on one page of a report on field usage.
const (
	usualFields = 100
	mostFields  = 500
	usualKeys   = 20
	mostKeys    = 1000
	mostPages   = 1_000_000
)

var (
	notGraphQL = refuse(fasthttp.StatusNotFound, "The API is no GraphQL API")
	notCounted = refuse(fasthttp.StatusNotFound, "This gateway does not count which fields are read")
)

// fieldUsage shows which fields of a GraphQL API were read through this gateway,
// and by which keys.
func (a *API) fieldUsage(_ context.Context, c *call) (any, error) {
	api := a.deps.Live.API(c.id)
	switch {
	case api == nil:
		return nil, noAPI
	case !api.IsGraphQL():
		return nil, notGraphQL
	case a.deps.Usage == nil:
		return nil, notCounted
	}
	f, err := c.usageFilter()
	if err != nil {
		return nil, err
	}
	return a.deps.Usage.Fields(c.id, f), nil
}

// usageFilter reads what a report is to have. Pages count from 1.
func (c *call) usageFilter() (f usage.FieldFilter, err error) {
	page, err := c.number("p", 1, 1, mostPages)
	if err != nil {
		return f, err
	}
	if f.Max, err = c.number("page_size", usualFields, 1, mostFields); err != nil {
		return f, err
	}
	if f.Keys, err = c.number("keys", usualKeys, 0, mostKeys); err != nil {
		return f, err
	}
	f.Type, f.Field, f.Skip = c.query["type"], c.query["field"], (page-1)*f.Max
	if key, ok := c.query["key"]; ok {
		f.Key = &key
	}
	return f, nil
}
