package admin

import (
	"encoding/json"

	"github.com/sluicegate/sluice/admin/openapi"
	"github.com/sluicegate/sluice/admin/shown"
	"github.com/sluicegate/sluice/internal/definition"
)

// A route is one method on one path: who may call it, what goes in and out, and
// what answers. Both spellings of the path, with and without a final slash, are
// served.
type route struct {
	method, path string
	summary, tag string

	role    role // the least that is needed; roleNone asks for nothing, not even a credential
	gateway bool // the role gateway may call it as well
	waits   bool // a long-poll

	query []string // parameters, documented in package openapi
	body  any      // zero value of what is sent; nil: nothing
	empty bool     // the body may be left out
	match bool     // If-Match is heeded
	reply any      // zero value of what is answered
	plain bool     // the answer is text
	wrong []int    // statuses of failures, beside those of every route

	handle handler
}

// name tells the route in logs and metrics.
func (r *route) name() string { return r.method + " " + r.path }

// allows tells whether a role may call the route.
func (r *route) allows(who role) bool {
	if who == roleGateway {
		return r.gateway || r.role == roleGateway
	}
	return r.role != roleGateway && who.rank() >= r.role.rank()
}

// describe writes the OpenAPI document of the routes.
func describe(routes []route, version string) ([]byte, error) {
	described := make([]openapi.Route, 0, len(routes))
	for _, r := range routes {
		d := openapi.Route{
			Method: r.method, Path: r.path, Summary: r.summary, Tag: r.tag, Query: r.query, Match: r.match,
			Body: r.body, Optional: r.empty, Reply: r.reply, Plain: r.plain, Failure: envelope{}, Wrong: r.wrong,
		}
		if r.role != roleNone {
			d.Access = "Needs the role " + string(r.role) + "."
			d.Wrong = append([]int{401, 403, 429, 503}, r.wrong...)
		}
		if r.gateway {
			d.Access += " Gateways may call it."
		}
		described = append(described, d)
	}
	return openapi.Describe(described, version)
}

// Parameters that several lists have.
var (
	paging       = []string{"p", "page_size"}
	searchAndAll = []string{"p", "page_size", "q", "sort"}
)

// routes lists every route.
func (s *Server) routes() []route {
	var all []route
	for _, group := range [][]route{
		s.apiRoutes(), s.schemaRoutes(), s.policyRoutes(), s.keyRoutes(), s.userRoutes(),
		s.configRoutes(), s.certificateRoutes(), s.explainRoutes(), s.applyRoutes(), s.gatewayRoutes(), s.openRoutes(),
	} {
		all = append(all, group...)
	}
	return all
}

func (s *Server) apiRoutes() []route {
	return []route{
		{
			method: "GET", path: "/api/apis", summary: "List APIs", tag: "APIs", role: roleViewer, gateway: true,
			query: searchAndAll, reply: apiList{}, handle: s.listAPIs,
		},
		{
			method: "GET", path: "/api/apis/search", summary: "Search APIs by name or id", tag: "APIs", role: roleViewer, gateway: true,
			query: searchAndAll, reply: apiList{}, handle: s.listAPIs,
		},
		{
			method: "POST", path: "/api/apis", summary: "Create an API", tag: "APIs", role: roleEditor, gateway: true,
			body: definition.API{}, reply: envelope{}, wrong: []int{400, 409, 413, 415}, handle: s.createAPI,
		},
		{
			method: "POST", path: "/api/apis/validate", summary: "Check a definition without saving it", tag: "APIs", role: roleViewer, gateway: true,
			body: definition.API{}, reply: envelope{}, wrong: []int{400, 413, 415}, handle: s.validateAPI,
		},
		{
			method: "GET", path: "/api/apis/{id}", summary: "Get an API's definition", tag: "APIs", role: roleViewer, gateway: true,
			reply: definition.API{}, wrong: []int{404}, handle: s.getAPI,
		},
		{
			method: "PUT", path: "/api/apis/{id}", summary: "Replace an API's definition", tag: "APIs", role: roleEditor, gateway: true,
			body: definition.API{}, reply: envelope{}, wrong: []int{400, 404, 409, 413, 415}, match: true, handle: s.updateAPI,
		},
		{
			method: "DELETE", path: "/api/apis/{id}", summary: "Delete an API", tag: "APIs", role: roleEditor, gateway: true,
			query: []string{"force"}, reply: envelope{}, wrong: []int{404, 409}, match: true, handle: s.deleteAPI,
		},
	}
}

func (s *Server) policyRoutes() []route {
	return []route{
		{
			method: "GET", path: "/api/portal/policies", summary: "List policies", tag: "Policies", role: roleViewer, gateway: true,
			query: append([]string{"active"}, searchAndAll...), reply: policyList{}, handle: s.listPolicies,
		},
		{
			method: "GET", path: "/api/portal/policies/search", summary: "Search policies", tag: "Policies", role: roleViewer, gateway: true,
			query: append([]string{"policy_ids", "state", "api_id"}, searchAndAll...), reply: policyList{}, handle: s.listPolicies,
		},
		{
			method: "POST", path: "/api/portal/policies", summary: "Create a policy", tag: "Policies", role: roleEditor, gateway: true,
			body: definition.Policy{}, reply: envelope{}, wrong: []int{400, 409, 413, 415}, handle: s.createPolicy,
		},
		{
			method: "GET", path: "/api/portal/policies/{id}", summary: "Get a policy", tag: "Policies", role: roleViewer, gateway: true,
			reply: definition.Policy{}, wrong: []int{404}, handle: s.getPolicy,
		},
		{
			method: "PUT", path: "/api/portal/policies/{id}", summary: "Replace a policy", tag: "Policies", role: roleEditor, gateway: true,
			body: definition.Policy{}, reply: envelope{}, wrong: []int{400, 404, 409, 413, 415}, match: true, handle: s.updatePolicy,
		},
		{
			method: "DELETE", path: "/api/portal/policies/{id}", summary: "Delete a policy", tag: "Policies", role: roleEditor, gateway: true,
			reply: envelope{}, wrong: []int{404, 409}, match: true, handle: s.deletePolicy,
		},
	}
}

func (s *Server) keyRoutes() []route {
	lists := []string{"p", "page_size", "q", "api_id"}
	all := []route{
		{
			method: "GET", path: "/api/keys", summary: "List keys by their hashes", tag: "Keys", role: roleViewer, gateway: true,
			query: lists, reply: keyList{}, handle: s.listKeys,
		},
		{
			method: "GET", path: "/api/apis/keys", summary: "List keys by their hashes", tag: "Keys", role: roleViewer, gateway: true,
			query: lists, reply: keyList{}, handle: s.listKeys,
		},
		{
			method: "GET", path: "/api/apis/{id}/keys", summary: "List the keys that may call an API", tag: "Keys", role: roleViewer, gateway: true,
			query: []string{"p", "page_size", "q"}, reply: keyList{}, handle: s.listKeys,
		},
		{
			method: "GET", path: "/api/keys/detailed", summary: "List keys with their sessions", tag: "Keys", role: roleViewer, gateway: true,
			query: lists, reply: detailedKeys{}, handle: s.listDetailedKeys,
		},
		{
			method: "POST", path: "/api/gateway/keys/lookup", summary: "Find a key's session for a gateway whose key store may have lost it", tag: "Gateways", role: roleGateway,
			body: keyLookup{}, reply: foundKey{}, wrong: []int{400, 404, 413, 415}, handle: s.lookupKey,
		},
		{
			method: "POST", path: "/api/keys", summary: "Create a key; the answer shows it this once", tag: "Keys", role: roleEditor, gateway: true,
			query: []string{"suppress_reset"}, body: definition.Session{}, reply: keyDetail{}, wrong: []int{400, 409, 413, 415}, handle: s.createKey,
		},
		{
			method: "POST", path: "/api/keys/preview", summary: "Show a session with its policies applied; nothing is stored", tag: "Keys", role: roleViewer, gateway: true,
			body: definition.Session{}, reply: definition.Session{}, wrong: []int{400, 413, 415}, handle: s.previewKey,
		},
		{
			method: "POST", path: "/api/keys/{key}", summary: "Create or replace a key that has a custom id", tag: "Keys", role: roleEditor, gateway: true,
			query: []string{"suppress_reset"}, body: definition.Session{}, reply: keyDetail{}, wrong: []int{400, 409, 413, 415}, handle: s.createKey,
		},
		{
			method: "POST", path: "/api/keys/{key}/reset_quota", summary: "Forget a key's used quota", tag: "Keys", role: roleEditor, gateway: true,
			query: []string{"hashed"}, reply: envelope{}, wrong: []int{404}, handle: s.resetKeyQuota,
		},
		{
			method: "POST", path: "/api/keys/{key}/rotate", summary: "Make a successor of a key; both are one to counters, and the answer shows it this once", tag: "Keys", role: roleEditor, gateway: true,
			query: []string{"hashed"}, body: rotation{}, reply: keyDetail{}, wrong: []int{400, 404, 413, 415}, handle: s.rotateKey,
		},
		{
			method: "DELETE", path: "/api/keys/{key}/rotate", summary: "End the grace of the keys before the newest", tag: "Keys", role: roleEditor, gateway: true,
			query: []string{"hashed"}, reply: keyDetail{}, wrong: []int{400, 404}, handle: s.retireKeys,
		},
		{
			method: "PUT", path: "/api/keys/{key}/policies", summary: "Replace a key's policies; its used quota stays", tag: "Keys", role: roleEditor, gateway: true,
			query: []string{"hashed"}, body: keyPolicies{}, reply: keyDetail{}, wrong: []int{400, 404, 413, 415}, handle: s.setKeyPolicies,
		},
	}
	for _, path := range []string{"/api/keys/{key}", "/api/apis/{id}/keys/{key}"} {
		all = append(all, s.oneKeyRoutes(path)...)
	}
	return all
}

// oneKeyRoutes are the routes on one key, which has two paths.
func (s *Server) oneKeyRoutes(path string) []route {
	return []route{
		{
			method: "GET", path: path, summary: "Get a key, with what is left of its quotas", tag: "Keys", role: roleViewer, gateway: true,
			query: []string{"hashed"}, reply: keyDetail{}, wrong: []int{404}, handle: s.getKey,
		},
		{
			method: "PUT", path: path, summary: "Replace a key's session", tag: "Keys", role: roleEditor, gateway: true,
			query: []string{"hashed", "suppress_reset"}, body: definition.Session{}, reply: keyDetail{}, wrong: []int{400, 404, 413, 415}, handle: s.updateKey,
		},
		{
			method: "DELETE", path: path, summary: "Delete a key", tag: "Keys", role: roleEditor, gateway: true,
			query: []string{"hashed"}, reply: envelope{}, wrong: []int{404}, handle: s.deleteKey,
		},
	}
}

func (s *Server) userRoutes() []route {
	return []route{
		{
			method: "GET", path: "/api/users", summary: "List users", tag: "Users", role: roleAdmin,
			query: []string{"p", "page_size", "q"}, reply: userList{}, handle: s.listUsers,
		},
		{
			method: "GET", path: "/api/users/me", summary: "Get the user who calls", tag: "Users", role: roleViewer,
			reply: user{}, handle: s.getMe,
		},
		{
			method: "POST", path: "/api/users", summary: "Create a user; the answer shows the access key this once", tag: "Users", role: roleAdmin,
			body: user{}, reply: envelope{}, wrong: []int{400, 413, 415}, handle: s.createUser,
		},
		{
			method: "GET", path: "/api/users/{id}", summary: "Get a user", tag: "Users", role: roleAdmin,
			reply: user{}, wrong: []int{404}, handle: s.getUser,
		},
		{
			method: "PUT", path: "/api/users/{id}", summary: "Replace a user's names, address, role and state", tag: "Users", role: roleAdmin,
			body: user{}, reply: envelope{}, wrong: []int{400, 404, 409, 413, 415}, match: true, handle: s.updateUser,
		},
		{
			method: "DELETE", path: "/api/users/{id}", summary: "Delete a user", tag: "Users", role: roleAdmin,
			reply: envelope{}, wrong: []int{404, 409}, handle: s.deleteUser,
		},
		{
			method: "PUT", path: "/api/users/{id}/actions/key/reset", summary: "Give a user another access key, shown this once", tag: "Users", role: roleAdmin,
			reply: envelope{}, wrong: []int{404}, handle: s.resetUserKey,
		},
	}
}

func (s *Server) configRoutes() []route {
	return []route{
		{
			method: "GET", path: "/api/config", summary: "Which revision is in force, and how many gateways serve it", tag: "Configuration", role: roleViewer, gateway: true,
			reply: configState{}, handle: s.getConfig,
		},
		{
			method: "GET", path: "/api/config/revisions", summary: "List revisions, newest first", tag: "Configuration", role: roleViewer,
			query: paging, reply: revisionList{}, handle: s.listRevisions,
		},
		{
			method: "GET", path: "/api/config/revisions/{n}", summary: "Get a revision with the whole configuration as of then", tag: "Configuration", role: roleViewer,
			reply: shown.Revision{}, wrong: []int{404}, handle: s.getRevision,
		},
		{
			method: "GET", path: "/api/config/revisions/{n}/diff", summary: "Compare a revision with the one before, or another", tag: "Configuration", role: roleViewer,
			query: []string{"against"}, reply: revisionDiff{}, wrong: []int{400, 404}, handle: s.diffRevision,
		},
		{
			method: "POST", path: "/api/config/revisions/{n}/rollback", summary: "Make the configuration what it was at a revision", tag: "Configuration", role: roleAdmin,
			body: rollbackReason{}, empty: true, reply: envelope{}, wrong: []int{400, 404, 409, 413, 415}, handle: s.rollback,
		},
		{
			method: "GET", path: "/api/audit", summary: "List the audit log, newest first", tag: "Configuration", role: roleAdmin,
			query: append([]string{"object_kind", "object_id", "actor"}, paging...), reply: auditList{}, handle: s.listAudit,
		},
	}
}

func (s *Server) gatewayRoutes() []route {
	return []route{
		{
			method: "GET", path: "/api/gateways", summary: "List gateways and what they serve", tag: "Gateways", role: roleViewer,
			reply: gatewayList{}, handle: s.listGateways,
		},
		{
			method: "GET", path: "/api/gateway/bundle", summary: "Get everything that a gateway serves, once it differs from If-None-Match", tag: "Gateways", role: roleGateway, waits: true,
			query: []string{"wait"}, reply: definition.Bundle{}, wrong: []int{304, 400}, handle: s.getBundle,
		},
		{
			method: "POST", path: "/api/gateway/reload", summary: "Have every gateway take its configuration anew", tag: "Gateways", role: roleEditor, gateway: true,
			reply: envelope{}, handle: s.reload,
		},
	}
}

func (s *Server) openRoutes() []route {
	return []route{
		{method: "GET", path: "/healthz", summary: "The process lives", tag: "Health", reply: health{}, handle: s.getHealth},
		{method: "GET", path: "/readyz", summary: "The process can do its work", tag: "Health", reply: health{}, handle: s.getReady},
		{
			method: "GET", path: "/api/openapi.json", summary: "This description", tag: "Health",
			reply: json.RawMessage{}, handle: s.getDescription,
		},
	}
}
