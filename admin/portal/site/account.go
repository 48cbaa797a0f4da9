package site

import (
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
)

func accountRoutes() []route {
	return []route{
		{"GET", "/signup", false, showSignUp},
		{"POST", "/signup", false, signUp},
		{"GET", "/verify", false, showVerify},
		{"POST", "/verify", false, verify},
		{"GET", "/login", false, showLogin},
		{"POST", "/login", false, signIn},
		{"POST", "/logout", false, signOut},
		{"GET", "/forgot", false, showForgot},
		{"POST", "/forgot", false, forgot},
		{"GET", "/reset", false, showReset},
		{"POST", "/reset", false, reset},
		{"GET", "/account", true, showAccount},
		{"POST", "/account", true, saveAccount},
		{"POST", "/account/password", true, changePassword},
		{"POST", "/account/sessions", true, endSessions},
		{"POST", "/account/delete", true, deleteAccount},
	}
}

// entryView is a page with one form that is sent before sign-in.
type entryView struct {
	Form   *form
	Next   string // page that follows
	Letter string // address that a letter was sent to; "" for none
	Key    string // token of a letter
	Old    bool   // the password is too old
}

func emailField() *field {
	return &field{Name: "email", Label: "Email address", Type: "email", Complete: "username", Required: true}
}

func passwordField(label, complete string) *field {
	return &field{Name: "password", Label: label, Type: "password", Complete: complete, Required: true}
}

// customFields returns the fields that the portal's configuration asks for.
func customFields(names []string) []*field {
	all := make([]*field, 0, len(names))
	for _, name := range names {
		all = append(all, &field{Name: "field." + name, Label: name, Required: true, Member: "fields[" + quoted(name) + "]"})
	}
	return all
}

func signUpForm(v *visit) *form {
	fields := []*field{emailField(), passwordField("Password", "new-password")}
	fields[1].Hint = "At least 6 characters."
	return newForm(append(fields, customFields(v.config.SignupFields)...)...)
}

func showSignUp(v *visit) error {
	if v.me != nil {
		return v.redirect("/")
	}
	return v.show(fasthttp.StatusOK, "signup", "Sign up", &entryView{Form: signUpForm(v)})
}

func signUp(v *visit) error {
	view := &entryView{Form: signUpForm(v)}
	view.Form.take(v)
	body := map[string]any{"email": v.value("email"), "password": v.value("password"), "fields": v.custom(v.config.SignupFields)}
	var answer rest.Envelope
	if err := v.post("/api/portal/signup", body, &answer); err != nil {
		return v.again(view, "signup", "Sign up", err)
	}
	if answer.AccessKey != "" {
		v.keepSession(answer.AccessKey)
		return v.redirect("/")
	}
	if answer.ID != "" { // signed up, and not signed in
		return v.redirect("/login?done=saved")
	}
	view.Letter = v.value("email")
	return v.show(fasthttp.StatusOK, "signup", "Check your mail", view)
}

// again shows a form once more with what was wrong.
func (v *visit) again(view *entryView, name, title string, err error) error {
	status, err := view.Form.refused(err)
	if err != nil {
		return err
	}
	return v.show(status, name, title, view)
}

// custom returns the values of the fields that the portal's configuration asks for.
func (v *visit) custom(names []string) map[string]string {
	values := make(map[string]string, len(names))
	for _, name := range names {
		values[name] = v.value("field." + name)
	}
	return values
}

func verifyView(token string) *entryView {
	return &entryView{Form: newForm(passwordField("Password", "current-password")), Key: token}
}

func showVerify(v *visit) error {
	token := v.query("token")
	if token == "" {
		return &fault{Status: fasthttp.StatusNotFound, Message: "The link is incomplete. Please copy the whole address out of the letter."}
	}
	return v.show(fasthttp.StatusOK, "verify", "Confirm your address", verifyView(token))
}

func verify(v *visit) error {
	view := verifyView(v.value("key"))
	var answer rest.Envelope
	if err := v.post("/api/portal/verify", map[string]any{"token": view.Key, "password": v.value("password")}, &answer); err != nil {
		return v.again(view, "verify", "Confirm your address", err)
	}
	if answer.AccessKey == "" {
		return v.redirect("/login?done=verified")
	}
	v.keepSession(answer.AccessKey)
	return v.redirect("/")
}

func loginForm(old bool) *form {
	fields := []*field{emailField(), passwordField("Password", "current-password")}
	if old {
		fields = append(fields, &field{Name: "new_password", Label: "New password", Type: "password", Complete: "new-password", Required: true, Hint: "The present one is too old."})
	}
	return newForm(fields...)
}

func showLogin(v *visit) error {
	next := nextPage(v.query("next"))
	if v.me != nil {
		return v.redirect(next)
	}
	return v.show(fasthttp.StatusOK, "login", "Sign in", &entryView{Form: loginForm(false), Next: next})
}

func signIn(v *visit) error {
	view := &entryView{Form: loginForm(false), Next: nextPage(v.value("next"))}
	body := map[string]any{"email": v.value("email"), "password": v.value("password")}
	if fresh := v.value("new_password"); fresh != "" {
		body["new_password"] = fresh
	}
	var answer rest.Envelope
	err := v.post("/api/portal/login", body, &answer)
	if err == nil {
		v.keepSession(answer.AccessKey)
		return v.redirect(view.Next)
	}
	if f, ok := errors.AsType[*fault](err); ok && f.Status == fasthttp.StatusForbidden && !v.config.DisableLogin {
		view.Form, view.Old = loginForm(true), true
	}
	view.Form.take(v)
	return v.again(view, "login", "Sign in", err)
}

func signOut(v *visit) error {
	if v.session != "" {
		if err := v.post("/api/portal/logout", nil, nil); err != nil {
			return err
		}
	}
	v.forgetSession()
	return v.redirect("/login?done=out")
}

func showForgot(v *visit) error {
	return v.show(fasthttp.StatusOK, "forgot", "Forgotten password", &entryView{Form: newForm(emailField())})
}

func forgot(v *visit) error {
	view := &entryView{Form: newForm(emailField())}
	view.Form.take(v)
	if err := v.post("/api/portal/password/forgot", map[string]any{"email": v.value("email")}, nil); err != nil {
		return v.again(view, "forgot", "Forgotten password", err)
	}
	view.Letter = v.value("email")
	return v.show(fasthttp.StatusOK, "forgot", "Check your mail", view)
}

func resetView(token string) *entryView {
	view := &entryView{Form: newForm(passwordField("New password", "new-password")), Key: token}
	view.Form.Fields["password"].Hint = "At least 6 characters, and none of your last five passwords."
	return view
}

func showReset(v *visit) error {
	token := v.query("token")
	if token == "" {
		return &fault{Status: fasthttp.StatusNotFound, Message: "The link is incomplete. Please copy the whole address out of the letter."}
	}
	return v.show(fasthttp.StatusOK, "reset", "Set a new password", resetView(token))
}

func reset(v *visit) error {
	view := resetView(v.value("key"))
	if err := v.post("/api/portal/password/reset", map[string]any{"token": view.Key, "password": v.value("password")}, nil); err != nil {
		return v.again(view, "reset", "Set a new password", err)
	}
	return v.redirect("/login?done=reset")
}

// accountView is the page of one's own account.
type accountView struct {
	Profile, Password, Delete *form
	Sessions                  []ownSession
}

// ownSession is a session of the visitor.
type ownSession struct {
	ID        string `json:"id"`
	IP        string `json:"ip"`
	UserAgent string `json:"user_agent"`
	Began     string `json:"began"`
	UsedAt    string `json:"used_at"`
	Current   bool   `json:"current"`
}

func (v *visit) accountView() (*accountView, error) {
	view := &accountView{
		Profile: newForm(customFields(v.config.SignupFields)...),
		Password: newForm(
			&field{Name: "current", Label: "Present password", Type: "password", Complete: "current-password", Required: true, Member: "current_password"},
			passwordField("New password", "new-password"),
		),
		Delete: newForm(passwordField("Password", "current-password")),
	}
	for _, f := range view.Profile.Order {
		f.Value = v.me.Fields[f.Label]
	}
	var sessions struct{ Data []ownSession }
	err := v.get("/api/portal/me/sessions", &sessions)
	view.Sessions = sessions.Data
	return view, err
}

func showAccount(v *visit) error {
	view, err := v.accountView()
	if err != nil {
		return err
	}
	return v.show(fasthttp.StatusOK, "account", "Account", view)
}

// changeAccount makes a change of the account; a refusal is shown in one of its forms.
func (v *visit) changeAccount(c call, done string, in func(*accountView) *form) error {
	_, err := v.call(c)
	if err == nil {
		return v.redirect("/account?done=" + done)
	}
	view, broken := v.accountView()
	if broken != nil {
		return err
	}
	f := in(view)
	f.take(v)
	status, err := f.refused(err)
	if err != nil {
		return err
	}
	return v.show(status, "account", "Account", view)
}

func saveAccount(v *visit) error {
	body := model.Developer{Fields: v.custom(v.config.SignupFields)}
	written, err := model.Write(&body)
	if err != nil {
		return err
	}
	return v.changeAccount(call{method: fasthttp.MethodPut, path: "/api/portal/me", body: written}, "saved", func(a *accountView) *form { return a.Profile })
}

func changePassword(v *visit) error {
	body := map[string]string{"current_password": v.value("current"), "password": v.value("password")}
	return v.changeAccount(call{method: fasthttp.MethodPost, path: "/api/portal/me/password", body: body}, "password", func(a *accountView) *form { return a.Password })
}

func endSessions(v *visit) error {
	path := "/api/portal/me/sessions"
	if id := v.value("id"); id != "" {
		path += "/" + escape(id)
	}
	if _, err := v.call(call{method: fasthttp.MethodDelete, path: path}); err != nil {
		return err
	}
	return v.redirect("/account?done=ended")
}

func deleteAccount(v *visit) error {
	_, err := v.call(call{method: fasthttp.MethodDelete, path: "/api/portal/me", body: map[string]string{"password": v.value("password")}})
	if err == nil {
		v.forgetSession()
		return v.redirect("/?done=account")
	}
	view, broken := v.accountView()
	if broken != nil {
		return err
	}
	status, err := view.Delete.refused(err)
	if err != nil {
		return err
	}
	return v.show(status, "account", "Account", view)
}
