package catalogue

import (
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// Limits on what a configuration and an entry hold; sizes are bytes.
const (
	maxFields  = 50
	maxName    = 200
	maxAddress = 254
	maxURL     = 2048
	maxSummary = 2 << 10
	maxText    = 32 << 10
	maxValue   = 4 << 10
)

// reserved are the fields that each sign-up has.
var reserved = []string{"email", "password"}

// checkConfiguration collects the faults of a configuration at a path.
func checkConfiguration(f *object.Faults, at string, c *model.Configuration) {
	checkNames(f, object.Member(at, "signup_fields"), c.SignupFields, reserved)
	checkNames(f, object.Member(at, "key_request_fields"), c.KeyRequestFields, nil)
	checkRedirect(f, at, c)
	if c.OAuthUsageLimit < -1 {
		f.Addf(object.Member(at, "oauth_usage_limit"), "must be -1 (no limit) or more, not %d", c.OAuthUsageLimit)
	}
	f.Add(object.Member(at, "email"), addressProblem(c.Email))
	checkMail(f, object.Member(at, "mail_options"), &c.MailOptions)
	checkEvents(f, object.Member(at, "event_options"), &c.Events)
}

// checkNames collects the faults of names of form fields.
func checkNames(f *object.Faults, path string, names, taken []string) {
	f.Count(path, len(names), maxFields)
	for i, name := range names {
		at := object.Item(path, i)
		switch {
		case name == "" || strings.TrimSpace(name) != name || !rest.Printable(name) || len(name) > 64:
			f.Add(at, "must be the name of a field: printable text of at most 64 bytes without space around it")
		case slices.Contains(taken, strings.ToLower(name)):
			f.Addf(at, "must not be %q: every sign-up has that anyway", name)
		case slices.Index(names, name) < i:
			f.Addf(at, "%q is there already", name)
		}
		if i > maxFields {
			return
		}
	}
}

// checkRedirect collects faults of redirect targets. They are restricted so that the portal
// is not an open redirect.
func checkRedirect(f *object.Faults, at string, c *model.Configuration) {
	path := object.Member(at, "redirect_hosts")
	f.Count(path, len(c.RedirectHosts), maxFields)
	for i, host := range c.RedirectHosts {
		if u, err := url.Parse("//" + host); err != nil || host == "" || len(host) > maxAddress || u.Host != host || u.Hostname() == "" {
			f.Add(object.Item(path, i), "must be a host such as example.com or example.com:8443, without scheme and path")
		}
	}
	path = object.Member(at, "redirect_to")
	if c.RedirectTo == "" {
		if c.RedirectOnKeyRequest {
			f.Add(path, "must be set where redirect_on_key_request is true")
		}
		return
	}
	f.Add(path, redirectProblem(c.RedirectTo, c.RedirectHosts))
}

// redirectProblem returns the problem of a redirect target, or "".
func redirectProblem(target string, hosts []string) string {
	const rule = "must be a path of the portal's site that begins with one slash, or an http or https URL"
	// Browsers treat a backslash as a slash, and drop tabs and line ends.
	u, err := url.Parse(target)
	if err != nil || len(target) > maxURL || !rest.Printable(target) || strings.ContainsAny(target, `\ `) {
		return rule + ", of at most 2048 bytes and without spaces and backslashes"
	}
	if strings.HasPrefix(target, "/") {
		if u.Host != "" || strings.HasPrefix(target, "//") {
			return rule
		}
		return ""
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return rule + " without user information"
	}
	if !slices.ContainsFunc(hosts, func(host string) bool { return strings.EqualFold(host, u.Host) }) {
		return "names the host " + u.Host + ", which redirect_hosts does not list"
	}
	return ""
}

func checkMail(f *object.Faults, at string, m *model.MailOptions) {
	f.Add(object.Member(at, "mail_from_name"), lineProblem(m.FromName, maxName))
	f.Add(object.Member(at, "mail_from_email"), addressProblem(m.FromEmail))
	at = object.Member(at, "email_copy")
	for _, letter := range []struct {
		name string
		copy *model.MailCopy
	}{{"welcome_email", &m.Copy.Welcome}, {"key_email", &m.Copy.Key}, {"reset_password_email", &m.Copy.ResetPassword}} {
		path := object.Member(at, letter.name)
		f.Add(object.Member(path, "subject"), lineProblem(letter.copy.Subject, maxName))
		f.Add(object.Member(path, "body"), textProblem(letter.copy.Body, maxText))
		f.Add(object.Member(path, "sign_off"), textProblem(letter.copy.SignOff, maxSummary))
		for _, part := range []struct{ name, text string }{{"subject", letter.copy.Subject}, {"body", letter.copy.Body}, {"sign_off", letter.copy.SignOff}} {
			if err := model.CheckText(part.text); err != nil {
				f.Add(object.Member(path, part.name), err.Error())
			}
		}
	}
}

func checkEvents(f *object.Faults, at string, o *model.EventOptions) {
	for _, kind := range []struct {
		name   string
		target *model.EventTarget
	}{{"api_event", &o.API}, {"key_event", &o.Key}, {"key_request_event", &o.KeyRequest}} {
		path := object.Member(at, kind.name)
		f.Add(object.Member(path, "webhook"), hookProblem(kind.target.Webhook))
		f.Add(object.Member(path, "email"), addressProblem(kind.target.Email))
	}
}

func hookProblem(target string) string {
	if target == "" {
		return ""
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || len(target) > maxURL || !rest.Printable(target) {
		return "must be an http or https URL of at most 2048 bytes without user information, or empty"
	}
	return ""
}

func addressProblem(text string) string {
	if text == "" {
		return ""
	}
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || len(text) > maxAddress || !rest.Printable(text) {
		return "must be an address such as ann@example.com, or empty"
	}
	return ""
}

// lineProblem returns the problem of a text that must be one line of at most n bytes.
func lineProblem(text string, n int) string {
	if len(text) > n {
		return object.SizeMessage(len(text), n)
	}
	if !rest.Printable(text) {
		return "must be one line of printable text"
	}
	return ""
}

// textProblem returns the problem of a text that must have at most n bytes.
func textProblem(text string, n int) string {
	if len(text) > n {
		return object.SizeMessage(len(text), n)
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "must be text without the character U+0000"
	}
	return ""
}

// problemsOf returns the error that lists the faults; nil for none.
func problemsOf(f object.Faults) error {
	if len(f) == 0 {
		return nil
	}
	all := make(definition.Problems, 0, len(f))
	for _, one := range f {
		all = append(all, definition.Problem{Path: one.Path, Message: one.Message})
	}
	return &all
}
