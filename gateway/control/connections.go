package control

import (
	"context"

	"github.com/valyala/fasthttp"
)

// Connections answers calls about the GraphQL connections that are open. Its methods take
// the query parameters of calls; their errors say what is wrong with these.
type Connections interface {
	// List returns one page of connections.
	List(query map[string]string) (page any, err error)

	// Get returns a connection with its operations.
	Get(id string) (connection any, found bool)

	// End ends a connection.
	End(id string, query map[string]string) (found bool, err error)

	// EndAll ends the connections of a key or an API, and returns how many there were.
	EndAll(query map[string]string) (n int, err error)
}

var (
	notWatched   = refuse(fasthttp.StatusNotFound, "This gateway does not list connections")
	noConnection = refuse(fasthttp.StatusNotFound, "This gateway has no open connection with this id")
)

// wrongParameter returns the error for a wrong query parameter.
func wrongParameter(err error) error {
	return refuse(fasthttp.StatusBadRequest, "Query parameter "+err.Error())
}

// listConnections shows the open connections, the newest first.
func (a *API) listConnections(_ context.Context, c *call) (any, error) {
	if a.deps.Connections == nil {
		return nil, notWatched
	}
	page, err := a.deps.Connections.List(c.query)
	if err != nil {
		return nil, wrongParameter(err)
	}
	return page, nil
}

// getConnection shows a connection with its operations.
func (a *API) getConnection(_ context.Context, c *call) (any, error) {
	if a.deps.Connections == nil {
		return nil, notWatched
	}
	if connection, found := a.deps.Connections.Get(c.id); found {
		return connection, nil
	}
	return nil, noConnection
}

// endConnection ends a connection.
func (a *API) endConnection(_ context.Context, c *call) (any, error) {
	if a.deps.Connections == nil {
		return nil, notWatched
	}
	switch found, err := a.deps.Connections.End(c.id, c.query); {
	case err != nil:
		return nil, wrongParameter(err)
	case !found:
		return nil, noConnection
	}
	return changed(c.id, deleted), nil
}

// endedConnections answers a call that ends several connections.
type endedConnections struct {
	Status string `json:"status"`
	Ended  int    `json:"ended"`
}

// endConnections ends the connections of a key or an API.
func (a *API) endConnections(_ context.Context, c *call) (any, error) {
	if a.deps.Connections == nil {
		return nil, notWatched
	}
	n, err := a.deps.Connections.EndAll(c.query)
	if err != nil {
		return nil, wrongParameter(err)
	}
	return endedConnections{"ok", n}, nil
}
