package developers

import (
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
)

// Routes lists the routes of developers.
func (s *Service) Routes() []rest.Route {
	all := s.operatorRoutes()
	all = append(all, s.publicRoutes()...)
	return append(all, s.ownRoutes()...)
}

// operatorRoutes are the routes of operators.
func (s *Service) operatorRoutes() []rest.Route {
	const tag = "Developers"
	return []rest.Route{
		{
			Method: "GET", Path: "/api/portal/developers", Summary: "List developers by email or created_at; q is the beginning of an address", Tag: tag, Role: rest.Viewer,
			Query: append([]string{"view", "inactive"}, rest.Searching...), Reply: developerList{}, Rows: developerRows{}, Open: true, Wrong: []int{400}, Handle: s.list,
		},
		{
			Method: "POST", Path: "/api/portal/developers", Summary: "Create a developer whose address needs no verification", Tag: tag, Role: rest.Approver,
			Body: newDeveloper{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.create,
		},
		{
			Method: "POST", Path: "/api/portal/developers/verify_credentials", Summary: "Tell whether a developer could log in", Tag: tag, Role: rest.Approver,
			Body: developerCredentials{}, Reply: rest.Envelope{}, Wrong: []int{400, 413, 415}, Handle: s.verifyCredentials,
		},
		{
			Method: "POST", Path: "/api/portal/developers/password/{id}", Summary: "Give a developer another password; all their sessions end", Tag: tag, Role: rest.Approver,
			Body: developerPassword{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Handle: s.choosePassword,
		},
		{
			Method: "GET", Path: "/api/portal/developers/{id}", Summary: "Get a developer", Tag: tag, Role: rest.Viewer,
			Reply: model.Developer{}, Open: true, Wrong: []int{404}, Handle: s.get,
		},
		{
			Method: "PUT", Path: "/api/portal/developers/{id}", Summary: "Replace what people may change of a developer; one who becomes inactive is logged out, and keeps the keys", Tag: tag, Role: rest.Approver,
			Body: model.Developer{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 409, 413, 415}, Match: true, Handle: s.update,
		},
		{
			Method: "DELETE", Path: "/api/portal/developers/{id}", Summary: "Delete a developer with their keys and requests", Tag: tag, Role: rest.Approver,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.remove,
		},
	}
}

// publicRoutes are the routes without a credential.
func (s *Service) publicRoutes() []rest.Route {
	const tag = "Portal"
	return []rest.Route{
		{
			Method: "POST", Path: "/api/portal/signup", Summary: "Sign up", Tag: tag, Role: rest.Anyone, Query: []string{"org_id"},
			Body: signUp{}, Reply: rest.Envelope{}, Wrong: []int{400, 403, 409, 413, 415, 429, 503}, Secret: true, Handle: s.signUp,
		},
		{
			Method: "POST", Path: "/api/portal/verify", Summary: "Complete a sign-up with the letter's token and the password, and log in", Tag: tag, Role: rest.Anyone,
			Body: signUpVerification{}, Reply: rest.Envelope{}, Wrong: []int{400, 401, 404, 413, 415, 429, 503}, Secret: true, Handle: s.confirm,
		},
		{
			Method: "POST", Path: "/api/portal/login", Summary: "Log in; the answer's access_key is the session's credential", Tag: tag, Role: rest.Anyone, Query: []string{"org_id"},
			Body: developerLogin{}, Reply: rest.Envelope{}, Wrong: []int{400, 401, 403, 409, 413, 415, 429, 503}, Secret: true, Handle: s.login,
		},
		{
			Method: "POST", Path: "/api/portal/password/forgot", Summary: "Ask for a letter to choose another password; the answer is the same without such an account", Tag: tag, Role: rest.Anyone,
			Query: []string{"org_id"}, Body: forgottenPassword{}, Reply: rest.Envelope{}, Wrong: []int{400, 413, 415, 429, 503}, Handle: s.forgot,
		},
		{
			Method: "POST", Path: "/api/portal/password/reset", Summary: "Choose another password with the letter's token; all sessions end", Tag: tag, Role: rest.Anyone,
			Body: passwordReset{}, Reply: rest.Envelope{}, Wrong: []int{400, 404, 413, 415, 429, 503}, Handle: s.reset,
		},
	}
}

// ownRoutes are the routes of developers who are logged in.
func (s *Service) ownRoutes() []rest.Route {
	const tag = "Portal"
	return []rest.Route{
		{
			Method: "POST", Path: "/api/portal/logout", Summary: "End this session", Tag: tag, Role: rest.Developer,
			Reply: rest.Envelope{}, Handle: s.logout,
		},
		{
			Method: "GET", Path: "/api/portal/me", Summary: "Get the developer who calls", Tag: tag, Role: rest.Developer,
			Reply: model.Developer{}, Handle: s.getMe,
		},
		{
			Method: "PUT", Path: "/api/portal/me", Summary: "Replace the fields that sign-up asks for", Tag: tag, Role: rest.Developer,
			Body: model.Developer{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Match: true, Handle: s.updateMe,
		},
		{
			Method: "DELETE", Path: "/api/portal/me", Summary: "Delete the account of who calls, with keys and requests", Tag: tag, Role: rest.Developer,
			Body: ownPassword{}, Reply: rest.Envelope{}, Wrong: []int{400, 413, 415}, Handle: s.removeMe,
		},
		{
			Method: "POST", Path: "/api/portal/me/password", Summary: "Change the password; all other sessions end", Tag: tag, Role: rest.Developer,
			Body: passwordChange{}, Reply: rest.Envelope{}, Wrong: []int{400, 409, 413, 415}, Handle: s.changePassword,
		},
		{
			Method: "GET", Path: "/api/portal/me/sessions", Summary: "List the sessions of who calls, newest first", Tag: tag, Role: rest.Developer,
			Reply: developerSessions{}, Handle: s.listSessions,
		},
		{
			Method: "DELETE", Path: "/api/portal/me/sessions", Summary: "End all other sessions", Tag: tag, Role: rest.Developer,
			Reply: rest.Envelope{}, Handle: s.endOtherSessions,
		},
		{
			Method: "DELETE", Path: "/api/portal/me/sessions/{id}", Summary: "End a session", Tag: tag, Role: rest.Developer,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.endSession,
		},
	}
}
