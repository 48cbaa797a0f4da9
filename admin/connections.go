package admin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/sluicegate/sluice/admin/distribution"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/connections"
)

func (s *Server) connectionRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/connections", Summary: "List the open GraphQL connections of all gateways, the newest first", Tag: "Gateways", Role: rest.Viewer,
			Query: []string{"api_id", "key_hash", "gateway", "after", "page_size"}, Reply: connectionList{}, Wrong: []int{400}, Handle: s.listConnections,
		},
		{
			Method: "GET", Path: "/api/connections/{id}", Summary: "Get an open GraphQL connection with its operations", Tag: "Gateways", Role: rest.Viewer,
			Reply: connections.Connection{}, Wrong: []int{404}, Handle: s.getConnection,
		},
		{
			Method: "DELETE", Path: "/api/connections/{id}", Summary: "End a GraphQL connection", Tag: "Gateways", Role: rest.Editor,
			Query: []string{"code", "close_reason"}, Reply: rest.Envelope{}, Wrong: []int{400, 404}, Handle: s.endConnection,
		},
		{
			Method: "POST", Path: "/api/gateway/answers", Summary: "Hand over the answer to a question that an admin has asked", Tag: "Gateways", Role: rest.Gateway,
			Body: gatewayAnswer{}, Reply: rest.Envelope{}, Wrong: []int{400, 413, 415}, MaxBody: distribution.MaxAnswer, Handle: s.takeAnswer,
		},
	}
}

// gatewayAnswer is the answer of a gateway.
type gatewayAnswer struct {
	// Name of the question, from the header X-Sluice-Asked.
	Question string `json:"question"`
	// What the question asks for, in the form that belongs to it.
	Answer json.RawMessage `json:"answer"`
}

// takeAnswer passes the answer of a gateway on to the admin that asks.
func (s *Server) takeAnswer(ctx context.Context, c *rest.Call) (any, error) {
	var sent gatewayAnswer
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	if sent.Question == "" || len(sent.Question) > 100 || len(sent.Answer) == 0 {
		return nil, rest.BadRequest("question and answer are required")
	}
	if err := s.gateways.Answered(ctx, sent.Question, sent.Answer); err != nil {
		return nil, err
	}
	return rest.Done("Answer taken", nil), nil
}

// connectionList is one page of connections.
type connectionList struct {
	connections.Page
	// Names of the gateways that answered.
	Gateways []string `json:"gateways"`
	// Names of the gateways that did not answer in time: their connections are missing.
	Silent []string `json:"silent"`
}

var noConnection = rest.NotFound("No gateway has an open connection with this id")

// askGateways puts a question about connections to the gateways that serve.
func (s *Server) askGateways(ctx context.Context, q *connections.Question, enough func(*connections.Answer) bool) (all []connections.Answer, silent []string, err error) {
	return ask(ctx, s, question{q.String(), q.Gateway}, enough)
}

func (s *Server) listConnections(ctx context.Context, c *rest.Call) (any, error) {
	query := map[string]string{"page_size": c.Query("page_size"), "after": c.Query("after"), "api_id": c.Query("api_id")}
	f, err := connections.ParseFilter(query)
	if err != nil {
		return nil, rest.BadRequest(err.Error())
	}
	f.Org = c.Who.Org
	if f.Key, err = s.identityOf(ctx, f.Org, c.Query("key_hash")); err != nil {
		return nil, err
	}
	q := connections.Question{Verb: connections.VerbList, Filter: f, Gateway: c.Query("gateway")}
	list, err := s.lists.of(q.String(), func() (*connectionList, error) { return s.connectionsOf(ctx, &q) })
	if err != nil {
		return nil, err
	}
	shown := *list
	shown.Connections = slices.Clone(list.Connections)
	for i := range shown.Connections {
		shown.Connections[i].Key = s.hashFor(c, shown.Connections[i].Key)
	}
	return shown, nil
}

// identityOf returns the key that a hash as it is shown names. Those that are not stored,
// such as users of JSON Web Tokens, are named by their hash.
func (s *Server) identityOf(ctx context.Context, org, shown string) (string, error) {
	if shown == "" {
		return "", nil
	}
	row, err := s.deps.Store.KeyByHash(ctx, org, shown)
	if errors.Is(err, store.ErrNotFound) {
		row, err = s.deps.Store.MaskedKey(ctx, org, shown)
	}
	if errors.Is(err, store.ErrNotFound) {
		return shown, nil
	}
	return row.KeyHash, err
}

// connectionsOf returns a page of the connections of all gateways.
func (s *Server) connectionsOf(ctx context.Context, q *connections.Question) (*connectionList, error) {
	all, silent, err := s.askGateways(ctx, q, func(*connections.Answer) bool { return false })
	if err != nil {
		return nil, err
	}
	list := &connectionList{Gateways: make([]string, 0, len(all)), Silent: append([]string{}, silent...)}
	var found []connections.Connection
	more, total := false, 0
	for _, a := range all {
		list.Gateways = append(list.Gateways, a.Gateway)
		if a.Page == nil {
			continue
		}
		total, more = total+a.Page.Total, more || a.Page.Next != ""
		for _, one := range a.Page.Connections {
			if one.Gateway = a.Gateway; one.Org == q.Org {
				found = append(found, one)
			}
		}
	}
	slices.Sort(list.Gateways)
	slices.SortFunc(found, func(a, b connections.Connection) int { return connections.Compare(&a, &b) })
	list.Page = connections.PageOf(found, total, q.Max)
	if list.Connections == nil {
		list.Connections = []connections.Connection{}
	}
	if more && list.Next == "" && len(list.Connections) > 0 {
		list.Next = list.Connections[len(list.Connections)-1].Cursor()
	}
	return list, nil
}

// find returns a connection of the caller's organisation, with its operations.
func (s *Server) find(ctx context.Context, c *rest.Call) (*connections.Connection, error) {
	id := c.Param("id")
	if !connections.IsID(id) {
		return nil, noConnection
	}
	q := connections.Question{Verb: connections.VerbGet, Filter: connections.Filter{Org: c.Who.Org}, ID: id}
	all, silent, err := s.askGateways(ctx, &q, func(a *connections.Answer) bool { return a.Connection != nil })
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if found := a.Connection; found != nil && found.Org == c.Who.Org {
			found.Gateway = a.Gateway
			return found, nil
		}
	}
	if len(silent) > 0 {
		return nil, rest.Unavailable("Not all gateways have answered in time; those that did have no open connection with this id")
	}
	return nil, noConnection
}

func (s *Server) getConnection(ctx context.Context, c *rest.Call) (any, error) {
	found, err := s.find(ctx, c)
	if err != nil {
		return nil, err
	}
	found.Key = s.hashFor(c, found.Key)
	return found, nil
}

// endConnection ends a connection and enters that into the audit log.
func (s *Server) endConnection(ctx context.Context, c *rest.Call) (any, error) {
	how, err := connections.ParseEnd(c.Query("code"), c.Query("close_reason"))
	if err != nil {
		return nil, rest.BadRequest(err.Error())
	}
	found, err := s.find(ctx, c)
	if err != nil {
		return nil, err
	}
	q := connections.Question{Verb: connections.VerbEnd, Filter: connections.Filter{Org: c.Who.Org}, ID: found.ID, Gateway: found.Gateway, How: how}
	all, silent, err := s.askGateways(ctx, &q, func(*connections.Answer) bool { return true })
	switch {
	case err != nil:
		return nil, err
	case len(silent) > 0:
		return nil, rest.Unavailable("The gateway that has the connection did not answer in time; it may have ended the connection nevertheless")
	case len(all) == 0 || !all[0].Ended:
		return nil, noConnection
	}
	s.lists.forget()
	entry := store.AuditEntry{Action: "ended", Kind: "connection", ID: found.ID}
	entry.After, err = json.Marshal(map[string]any{
		"api_id": found.API, "key": s.short(found.Key), "gateway": found.Gateway, "address": found.Address, "code": how.Code, "close_reason": how.Reason,
	})
	if err != nil {
		return nil, err
	}
	if err := s.deps.Store.InTx(ctx, func(tx *store.Tx) error { return tx.Audit(ctx, c.Author(c.Source()), entry) }); err != nil {
		return nil, err
	}
	return rest.Done("Connection ended", nil), nil
}
