package definition

import (
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

const (
	maxCORSEntries = 1_000  // of one list
	maxOrigin      = 253    // bytes of an origin
	maxPreflight   = 86_400 // seconds that browsers may keep the answer to a preflight
)

// CORS says which web pages may call an API from a browser (Fetch standard).
type CORS struct {
	// Whether the gateway sends CORS headers.
	Enable bool `json:"enable,omitempty"`
	// Origins such as https://app.example, with one * for part of a host or a port, or * alone; at most 1000. Default: *.
	// Example: ["https://app.example", "https://*.partner.example"]
	AllowedOrigins []string `json:"allowed_origins,omitempty"`
	// Methods that pages may use, in upper case. Default: GET, HEAD and POST.
	// Example: ["GET", "POST", "DELETE"]
	AllowedMethods []string `json:"allowed_methods,omitempty"`
	// Headers that pages may send; * is every header. Default: Origin, Accept, Content-Type and X-Requested-With.
	// Example: ["Authorization", "Content-Type"]
	AllowedHeaders []string `json:"allowed_headers,omitempty"`
	// Response headers that pages may read.
	// Example: ["X-Request-Id"]
	ExposedHeaders []string `json:"exposed_headers,omitempty"`
	// Whether pages may send cookies and other credentials. Needs allowed_origins that name hosts.
	AllowCredentials bool `json:"allow_credentials,omitempty"`
	// Seconds that browsers may keep the answer to a preflight, 0 to 86400. Default: the browser's.
	// Example: 600
	MaxAge int `json:"max_age,omitempty"`
	// Whether the upstream answers preflights, which then need no key.
	OptionsPassthrough bool    `json:"options_passthrough,omitempty"`
	Unknown            Unknown `json:"-"`
}

// On reports whether the gateway sends CORS headers. c may be nil.
func (c *CORS) On() bool { return c != nil && c.Enable }

// Origins returns the allowed origins, with the default.
func (c *CORS) Origins() []string { return orDefault(c.AllowedOrigins, "*") }

// Methods returns the allowed methods, with the default.
func (c *CORS) Methods() []string { return orDefault(c.AllowedMethods, "GET", "HEAD", "POST") }

// Headers returns the allowed request headers, with the default.
func (c *CORS) Headers() []string {
	return orDefault(c.AllowedHeaders, "Origin", "Accept", "Content-Type", "X-Requested-With")
}

func orDefault(list []string, otherwise ...string) []string {
	if len(list) == 0 {
		return otherwise
	}
	return list
}

// check returns what is wrong, with paths below CORS.
func (c *CORS) check() (f object.Faults) {
	if !c.On() {
		return nil
	}
	f.Count("allowed_origins", len(c.AllowedOrigins), maxCORSEntries)
	for i, o := range c.AllowedOrigins {
		f.Add(object.Item("allowed_origins", i), originFault(o, c.AllowCredentials))
	}
	if c.AllowCredentials && slices.Contains(c.Origins(), "*") {
		f.Add("allow_credentials", `must not be true for every origin, or any page could act in its visitors' names: list the origins in allowed_origins, as in https://app.example or https://*.example`)
	}
	checkEach(&f, "allowed_methods", c.AllowedMethods, "a method in upper case, such as GET", isUpperToken)
	checkEach(&f, "allowed_headers", c.AllowedHeaders, "a header name, or * for all", isToken)
	checkEach(&f, "exposed_headers", c.ExposedHeaders, "a header name", isToken)
	if slices.Contains(c.ExposedHeaders, "*") && c.AllowCredentials {
		f.Add("exposed_headers", "must name the headers: * is no more than a name to browsers when allow_credentials is true")
	}
	if c.MaxAge < 0 || c.MaxAge > maxPreflight {
		f.Addf("max_age", "must be from 0 to %d seconds; 0 leaves it to the browser", maxPreflight)
	}
	return f
}

// originFault returns what is wrong with an entry of allowed_origins, or "".
func originFault(text string, credentials bool) string {
	const example = "must be an origin such as https://app.example or http://localhost:3000, without a path; one * may stand for a part of the host or for the port"
	switch {
	case text == "*":
		return ""
	case text == "null" && credentials:
		return `must not be "null" with allow_credentials: every sandboxed page has that origin`
	case text == "null":
		return ""
	case len(text) > maxOrigin || strings.Count(text, "*") > 1:
		return example
	}
	scheme, authority, ok := strings.Cut(text, "://")
	if !ok || !isScheme(scheme) || !isAuthority(authority) {
		return example
	}
	if authority == "*" && credentials {
		return "must not be every host with allow_credentials; name the domain, as in https://*.example"
	}
	return ""
}

// isScheme reports whether s is a scheme (RFC 3986 section 3.1).
func isScheme(s string) bool {
	for i, c := range []byte(s) {
		letter := c|0x20-'a' < 26
		if !letter && (i == 0 || c-'0' >= 10 && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

// isAuthority reports whether s is the host and port of an origin, * included.
func isAuthority(s string) bool {
	for _, c := range []byte(s) {
		if !isAlnum(c) && strings.IndexByte("-._:[]*", c) < 0 {
			return false
		}
	}
	return s != "" && s[0] != ':' && s[len(s)-1] != ':'
}

func isUpperToken(s string) bool { return isToken(s) && s == strings.ToUpper(s) }

// checkEach reports each entry of a list that is not good.
func checkEach(f *object.Faults, path string, list []string, what string, good func(string) bool) {
	f.Count(path, len(list), maxCORSEntries)
	for i, one := range list {
		if !good(one) {
			f.Add(object.Item(path, i), "must be "+what)
		}
	}
}
