package site

import (
	"net/url"

	"github.com/sluicegate/sluice/admin/portal/catalogue"
	"github.com/sluicegate/sluice/admin/portal/credentials"
)

// A request is a call of an API that code samples make.
type request struct {
	Method, URL string
	Auth        string // value of Authorization; "" for none
	Body        string // JSON; "" for none
}

// A sample is a request in one language.
type sample struct{ Language, Code string }

// authOf returns what a caller of an offered API sends in Authorization.
func authOf(o *catalogue.Offer) string {
	switch {
	case o.IsKeyless:
		return ""
	case o.AuthType == credentials.Basic:
		return "Basic BASE64_OF_USER_AND_PASSWORD"
	case o.AuthType == credentials.OAuth:
		return "Bearer ACCESS_TOKEN"
	}
	return "YOUR_KEY"
}

// origin returns scheme and host of the portal's own address.
func (s *Site) origin() string {
	u, err := url.Parse(s.deps.PublicURL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
