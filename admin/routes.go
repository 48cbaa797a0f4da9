package admin

import (
	"encoding/json"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/shown"
	"github.com/sluicegate/sluice/internal/definition"
)

// routes lists every route.
func (s *Server) routes() []rest.Route {
	var all []rest.Route
	for _, group := range [][]rest.Route{
		s.apiRoutes(), s.schemaRoutes(), s.policyRoutes(), s.keyRoutes(), s.userRoutes(),
		s.configRoutes(), s.certificateRoutes(), s.explainRoutes(), s.applyRoutes(), s.gatewayRoutes(), s.portal.Routes(), s.usage.Routes(), s.openRoutes(),
	} {
		all = append(all, group...)
	}
	return all
}

func (s *Server) apiRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/apis", Summary: "List APIs", Tag: "APIs", Role: rest.Viewer, Gateway: true,
			Query: rest.Searching, Reply: apiList{}, Handle: s.listAPIs,
		},
		{
			Method: "GET", Path: "/api/apis/search", Summary: "Search APIs by name or id", Tag: "APIs", Role: rest.Viewer, Gateway: true,
			Query: rest.Searching, Reply: apiList{}, Handle: s.listAPIs,
		},
		{
			Method: "POST", Path: "/api/apis", Summary: "Create an API", Tag: "APIs", Role: rest.Editor, Gateway: true,
			Body: definition.API{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.createAPI,
		},
		{
			Method: "POST", Path: "/api/apis/validate", Summary: "Check a definition without saving it", Tag: "APIs", Role: rest.Viewer, Gateway: true,
			Body: definition.API{}, Reply: rest.Envelope{}, Wrong: []int{400, 413, 415}, Handle: s.validateAPI,
		},
		{
			Method: "GET", Path: "/api/apis/{id}", Summary: "Get an API's definition", Tag: "APIs", Role: rest.Viewer, Gateway: true,
			Reply: definition.API{}, Wrong: []int{404}, Handle: s.getAPI,
		},
		{
			Method: "PUT", Path: "/api/apis/{id}", Summary: "Replace an API's definition", Tag: "APIs", Role: rest.Editor, Gateway: true,
			Body: definition.API{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.updateAPI,
		},
		{
			Method: "DELETE", Path: "/api/apis/{id}", Summary: "Delete an API", Tag: "APIs", Role: rest.Editor, Gateway: true,
			Query: []string{"force"}, Reply: rest.Envelope{}, Wrong: []int{404, 409}, Match: true, Handle: s.deleteAPI,
		},
		{
			Method: "DELETE", Path: "/api/apis/{id}/cache", Summary: "Have every gateway forget the answers that it keeps for an API", Tag: "APIs", Role: rest.Editor, Gateway: true,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.forgetAnswers,
		},
	}
}

func (s *Server) policyRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/portal/policies", Summary: "List policies", Tag: "Policies", Role: rest.Viewer, Gateway: true,
			Query: append([]string{"active"}, rest.Searching...), Reply: policyList{}, Handle: s.listPolicies,
		},
		{
			Method: "GET", Path: "/api/portal/policies/search", Summary: "Search policies", Tag: "Policies", Role: rest.Viewer, Gateway: true,
			Query: append([]string{"policy_ids", "state", "api_id"}, rest.Searching...), Reply: policyList{}, Handle: s.listPolicies,
		},
		{
			Method: "POST", Path: "/api/portal/policies", Summary: "Create a policy", Tag: "Policies", Role: rest.Editor, Gateway: true,
			Body: definition.Policy{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.createPolicy,
		},
		{
			Method: "GET", Path: "/api/portal/policies/{id}", Summary: "Get a policy", Tag: "Policies", Role: rest.Viewer, Gateway: true,
			Reply: definition.Policy{}, Wrong: []int{404}, Handle: s.getPolicy,
		},
		{
			Method: "PUT", Path: "/api/portal/policies/{id}", Summary: "Replace a policy", Tag: "Policies", Role: rest.Editor, Gateway: true,
			Body: definition.Policy{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.updatePolicy,
		},
		{
			Method: "DELETE", Path: "/api/portal/policies/{id}", Summary: "Delete a policy", Tag: "Policies", Role: rest.Editor, Gateway: true,
			Reply: rest.Envelope{}, Wrong: []int{404, 409}, Match: true, Handle: s.deletePolicy,
		},
	}
}

func (s *Server) keyRoutes() []rest.Route {
	lists := []string{"p", "page_size", "q", "api_id"}
	all := []rest.Route{
		{
			Method: "GET", Path: "/api/keys", Summary: "List keys by their hashes", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Query: lists, Reply: keyList{}, Handle: s.listKeys,
		},
		{
			Method: "GET", Path: "/api/apis/keys", Summary: "List keys by their hashes", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Query: lists, Reply: keyList{}, Handle: s.listKeys,
		},
		{
			Method: "GET", Path: "/api/apis/{id}/keys", Summary: "List the keys that may call an API", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Query: []string{"p", "page_size", "q"}, Reply: keyList{}, Handle: s.listKeys,
		},
		{
			Method: "GET", Path: "/api/keys/detailed", Summary: "List keys with their sessions", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Query: lists, Reply: detailedKeys{}, Handle: s.listDetailedKeys,
		},
		{
			Method: "POST", Path: "/api/gateway/keys/lookup", Summary: "Find a key's session for a gateway whose key store may have lost it", Tag: "Gateways", Role: rest.Gateway,
			Body: keyLookup{}, Reply: foundKey{}, Wrong: []int{400, 404, 413, 415}, Handle: s.lookupKey,
		},
		{
			Method: "POST", Path: "/api/keys", Summary: "Create a key; the answer shows it this once", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"suppress_reset"}, Body: definition.Session{}, Reply: keyDetail{}, Wrong: []int{400, 409, 413, 415}, Secret: true, Handle: s.createKey,
		},
		{
			Method: "POST", Path: "/api/keys/preview", Summary: "Show a session with its policies applied; nothing is stored", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Body: definition.Session{}, Reply: definition.Session{}, Wrong: []int{400, 413, 415}, Handle: s.previewKey,
		},
		{
			Method: "POST", Path: "/api/keys/{key}", Summary: "Create or replace a key that has a custom id", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"suppress_reset"}, Body: definition.Session{}, Reply: keyDetail{}, Wrong: []int{400, 409, 413, 415}, Secret: true, Handle: s.createKey,
		},
		{
			Method: "POST", Path: "/api/keys/{key}/reset_quota", Summary: "Forget a key's used quota", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"hashed"}, Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.resetKeyQuota,
		},
		{
			Method: "POST", Path: "/api/keys/{key}/rotate", Summary: "Make a successor of a key; both are one to counters, and the answer shows it this once", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"hashed"}, Body: rotation{}, Reply: keyDetail{}, Wrong: []int{400, 404, 413, 415}, Secret: true, Handle: s.rotateKey,
		},
		{
			Method: "DELETE", Path: "/api/keys/{key}/rotate", Summary: "End the grace of the keys before the newest", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"hashed"}, Reply: keyDetail{}, Wrong: []int{400, 404}, Handle: s.retireKeys,
		},
		{
			Method: "PUT", Path: "/api/keys/{key}/policies", Summary: "Replace a key's policies; its used quota stays", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"hashed"}, Body: keyPolicies{}, Reply: keyDetail{}, Wrong: []int{400, 404, 413, 415}, Handle: s.setKeyPolicies,
		},
	}
	for _, path := range []string{"/api/keys/{key}", "/api/apis/{id}/keys/{key}"} {
		all = append(all, s.oneKeyRoutes(path)...)
	}
	return all
}

// oneKeyRoutes are the routes on one key, which has two paths.
func (s *Server) oneKeyRoutes(path string) []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: path, Summary: "Get a key, with what is left of its quotas", Tag: "Keys", Role: rest.Viewer, Gateway: true,
			Query: []string{"hashed"}, Reply: keyDetail{}, Wrong: []int{404}, Handle: s.getKey,
		},
		{
			Method: "PUT", Path: path, Summary: "Replace a key's session", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"hashed", "suppress_reset"}, Body: definition.Session{}, Reply: keyDetail{}, Wrong: []int{400, 404, 413, 415}, Handle: s.updateKey,
		},
		{
			Method: "DELETE", Path: path, Summary: "Delete a key", Tag: "Keys", Role: rest.Editor, Gateway: true,
			Query: []string{"hashed"}, Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.deleteKey,
		},
	}
}

func (s *Server) userRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/users", Summary: "List users", Tag: "Users", Role: rest.Admin,
			Query: []string{"p", "page_size", "q"}, Reply: userList{}, Handle: s.listUsers,
		},
		{
			Method: "GET", Path: "/api/users/me", Summary: "Get the user who calls", Tag: "Users", Role: rest.Viewer,
			Reply: user{}, Handle: s.getMe,
		},
		{
			Method: "POST", Path: "/api/users", Summary: "Create a user; the answer shows the access key this once", Tag: "Users", Role: rest.Admin,
			Body: user{}, Reply: rest.Envelope{}, Wrong: []int{400, 413, 415}, Secret: true, Handle: s.createUser,
		},
		{
			Method: "GET", Path: "/api/users/{id}", Summary: "Get a user", Tag: "Users", Role: rest.Admin,
			Reply: user{}, Wrong: []int{404}, Handle: s.getUser,
		},
		{
			Method: "PUT", Path: "/api/users/{id}", Summary: "Replace a user's names, address, role and state", Tag: "Users", Role: rest.Admin,
			Body: user{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.updateUser,
		},
		{
			Method: "DELETE", Path: "/api/users/{id}", Summary: "Delete a user", Tag: "Users", Role: rest.Admin,
			Reply: rest.Envelope{}, Wrong: []int{404, 409}, Handle: s.deleteUser,
		},
		{
			Method: "PUT", Path: "/api/users/{id}/actions/key/reset", Summary: "Give a user another access key, shown this once", Tag: "Users", Role: rest.Admin,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.resetUserKey,
		},
	}
}

func (s *Server) configRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/config", Summary: "Which revision is in force, and how many gateways serve it", Tag: "Configuration", Role: rest.Viewer, Gateway: true,
			Reply: configState{}, Handle: s.getConfig,
		},
		{
			Method: "GET", Path: "/api/config/revisions", Summary: "List revisions, newest first", Tag: "Configuration", Role: rest.Viewer,
			Query: rest.Paging, Reply: revisionList{}, Handle: s.listRevisions,
		},
		{
			Method: "GET", Path: "/api/config/revisions/{n}", Summary: "Get a revision with the whole configuration as of then", Tag: "Configuration", Role: rest.Viewer,
			Reply: shown.Revision{}, Wrong: []int{404}, Handle: s.getRevision,
		},
		{
			Method: "GET", Path: "/api/config/revisions/{n}/diff", Summary: "Compare a revision with the one before, or another", Tag: "Configuration", Role: rest.Viewer,
			Query: []string{"against"}, Reply: revisionDiff{}, Wrong: []int{400, 404}, Handle: s.diffRevision,
		},
		{
			Method: "POST", Path: "/api/config/revisions/{n}/rollback", Summary: "Make the configuration what it was at a revision", Tag: "Configuration", Role: rest.Admin,
			Body: rollbackReason{}, Empty: true, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Handle: s.rollback,
		},
		{
			Method: "GET", Path: "/api/audit", Summary: "List the audit log, newest first", Tag: "Configuration", Role: rest.Admin,
			Query: append([]string{"object_kind", "object_id", "actor"}, rest.Paging...), Reply: auditList{}, Handle: s.listAudit,
		},
	}
}

func (s *Server) gatewayRoutes() []rest.Route {
	return []rest.Route{
		{
			Method: "GET", Path: "/api/gateways", Summary: "List gateways and what they serve", Tag: "Gateways", Role: rest.Viewer,
			Reply: gatewayList{}, Handle: s.listGateways,
		},
		{
			Method: "GET", Path: "/api/gateway/bundle", Summary: "Get everything that a gateway serves, once it differs from If-None-Match", Tag: "Gateways", Role: rest.Gateway, Waits: true,
			Query: []string{"wait"}, Reply: definition.Bundle{}, Wrong: []int{304, 400}, Handle: s.getBundle,
		},
		{
			Method: "POST", Path: "/api/gateway/reload", Summary: "Have every gateway take its configuration anew", Tag: "Gateways", Role: rest.Editor, Gateway: true,
			Reply: rest.Envelope{}, Handle: s.reload,
		},
	}
}

func (s *Server) openRoutes() []rest.Route {
	return []rest.Route{
		{Method: "GET", Path: "/healthz", Summary: "The process lives", Tag: "Health", Reply: health{}, Handle: s.getHealth},
		{Method: "GET", Path: "/readyz", Summary: "The process can do its work", Tag: "Health", Reply: health{}, Handle: s.getReady},
		{
			Method: "GET", Path: "/api/openapi.json", Summary: "This description", Tag: "Health",
			Reply: json.RawMessage{}, Handle: s.getDescription,
		},
	}
}
