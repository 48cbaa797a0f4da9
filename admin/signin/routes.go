package signin

import "github.com/sluicegate/sluice/admin/rest"

// Routes lists the routes of the package.
func (s *Service) Routes() []rest.Route {
	const tag = "Sign-in"
	return []rest.Route{
		{
			Method: "POST", Path: "/api/session", Summary: "Sign in with email and password, an access key, or the token of a link; the answer sets the session's cookie", Tag: tag, Role: rest.Anyone,
			Body: credentials{}, Reply: session{}, Secret: true, Wrong: []int{400, 401, 403, 413, 415, 429, 503}, Handle: s.signIn,
		},
		{
			Method: "GET", Path: "/api/session", Summary: "Get the session of the call", Tag: tag, Role: rest.Viewer,
			Reply: session{}, Secret: true, Wrong: []int{404}, Handle: s.getSession,
		},
		{
			Method: "DELETE", Path: "/api/session", Summary: "Sign out: end the session of the call", Tag: tag, Role: rest.Viewer,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.signOut,
		},
		{
			Method: "GET", Path: "/api/session/all", Summary: "List the caller's sessions, newest first", Tag: tag, Role: rest.Viewer,
			Reply: sessionList{}, Handle: s.listSessions,
		},
		{
			Method: "DELETE", Path: "/api/session/{id}", Summary: "End one of the caller's sessions", Tag: tag, Role: rest.Viewer,
			Reply: rest.Envelope{}, Wrong: []int{404}, Handle: s.endSession,
		},
		{
			Method: "POST", Path: "/api/users/login", Summary: "Sign in with address and password, as POST /api/session", Tag: tag, Role: rest.Anyone,
			Body: login{}, Reply: session{}, Secret: true, Wrong: []int{400, 401, 403, 413, 415, 429, 503}, Handle: s.login,
		},
		{
			Method: "POST", Path: "/api/users/forgot", Summary: "Ask for a letter with a link that signs in once, within an hour; the answer is the same whether the address is a user's or not", Tag: tag, Role: rest.Anyone,
			Body: forgotten{}, Reply: rest.Envelope{}, Wrong: []int{400, 403, 409, 413, 415, 429, 503}, Handle: s.forgot,
		},
		{
			Method: "POST", Path: "/api/users/me/actions/reset", Summary: "Change the caller's password; all other sessions end, and that of the call gets another cookie and X-CSRF-Token", Tag: tag, Role: rest.Viewer,
			Body: passwordChange{}, Reply: rest.Envelope{}, Secret: true, Wrong: []int{400, 404, 409, 413, 415}, Handle: s.changePassword,
		},
		{
			Method: "POST", Path: "/api/users/{id}/actions/reset", Summary: "Give a user another password; all their sessions end", Tag: tag, Role: rest.Admin,
			Body: passwordChange{}, Reply: rest.Envelope{}, Secret: true, Wrong: []int{400, 404, 409, 413, 415}, Handle: s.resetPassword,
		},
		{
			Method: "POST", Path: "/api/users/me/actions/enter", Summary: "Make a link that signs the caller in once, within ten minutes", Tag: tag, Role: rest.Viewer,
			Reply: Link{}, Secret: true, Wrong: []int{400, 404}, Handle: s.enterMe,
		},
		{
			Method: "POST", Path: "/api/users/{id}/actions/enter", Summary: "Make a link that signs a user in once, within ten minutes", Tag: tag, Role: rest.Admin,
			Reply: Link{}, Secret: true, Wrong: []int{400, 404}, Handle: s.enter,
		},
		{
			Method: "POST", Path: "/api/users/{id}/actions/invite", Summary: "Make another invitation: a link that signs a user in once, within 72 hours", Tag: tag, Role: rest.Admin,
			Body: invitation{}, Empty: true, Reply: Link{}, Secret: true, Wrong: []int{400, 404, 413, 415, 503}, Handle: s.invite,
		},
	}
}
