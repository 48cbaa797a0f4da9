// Package origin is what a definition says about where calls may come from: the
// web origins whose pages may call an API, and the addresses that may.
package origin

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// Bounds of what is said about origins.
const (
	maxEntries = 1_000  // of one list
	maxOrigin  = 253    // bytes of an origin
	maxAge     = 86_400 // seconds that an answer to a preflight may be kept
)

// CORS says which web pages may call an API from a browser, by the Fetch
// standard.
type CORS struct {
	Enable             bool           `json:"enable,omitempty"`
	AllowedOrigins     []string       `json:"allowed_origins,omitempty"` // as https://app.example, with one * for part of a host or a port, or * alone; empty: *
	AllowedMethods     []string       `json:"allowed_methods,omitempty"` // empty: GET, HEAD and POST
	AllowedHeaders     []string       `json:"allowed_headers,omitempty"` // that pages may send; * is every one; empty: Origin, Accept, Content-Type and X-Requested-With
	ExposedHeaders     []string       `json:"exposed_headers,omitempty"` // that pages may read
	AllowCredentials   bool           `json:"allow_credentials,omitempty"`
	MaxAge             int            `json:"max_age,omitempty"`             // seconds that browsers may keep an answer to a preflight; 0: theirs
	OptionsPassthrough bool           `json:"options_passthrough,omitempty"` // preflights are the upstream's to answer, and ask for no key
	Unknown            object.Unknown `json:"-"`
}

// ParseCORS reads a definition's CORS member, and returns nil when that turns
// nothing on. Faults have paths below the member; beside them comes what could be
// read.
func ParseCORS(raw json.RawMessage) (*CORS, []object.Fault) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	c := new(CORS)
	faults := object.Decode(raw, c)
	if !c.Enable {
		return nil, faults
	}
	if len(faults) == 0 {
		faults = c.check()
	}
	c.fillIn()
	return c, faults
}

// fillIn puts in what holds where nothing is said.
func (c *CORS) fillIn() {
	if len(c.AllowedOrigins) == 0 {
		c.AllowedOrigins = []string{"*"}
	}
	if len(c.AllowedMethods) == 0 {
		c.AllowedMethods = []string{"GET", "HEAD", "POST"}
	}
	if len(c.AllowedHeaders) == 0 {
		c.AllowedHeaders = []string{"Origin", "Accept", "Content-Type", "X-Requested-With"}
	}
}

// AnyOrigin tells whether pages of every origin may call.
func (c *CORS) AnyOrigin() bool { return slices.Contains(c.AllowedOrigins, "*") }

func (c *CORS) check() []object.Fault {
	var f object.Faults
	f.Count("allowed_origins", len(c.AllowedOrigins), maxEntries)
	for i, o := range c.AllowedOrigins {
		f.Add(object.Item("allowed_origins", i), originFault(o, c.AllowCredentials))
	}
	if c.AllowCredentials && (len(c.AllowedOrigins) == 0 || c.AnyOrigin()) {
		f.Add("allow_credentials", `must not be true for every origin, or any page could act in its visitors' names: list the origins in allowed_origins, as in https://app.example or https://*.example`)
	}
	checkEach(&f, "allowed_methods", c.AllowedMethods, "a method in upper case, such as GET", isMethod)
	checkEach(&f, "allowed_headers", c.AllowedHeaders, "a header name, or * for all", isToken)
	checkEach(&f, "exposed_headers", c.ExposedHeaders, "a header name", isToken)
	if slices.Contains(c.ExposedHeaders, "*") && c.AllowCredentials {
		f.Add("exposed_headers", "must name the headers: * is no more than a name to browsers when allow_credentials is true")
	}
	if c.MaxAge < 0 || c.MaxAge > maxAge {
		f.Add("max_age", "must be from 0 to 86400 seconds; 0 leaves it to the browser")
	}
	return f
}

// originFault says what is wrong with an entry of allowed_origins.
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

// isScheme accepts what RFC 3986 calls a scheme.
func isScheme(s string) bool {
	for i, c := range []byte(s) {
		letter := c|0x20-'a' < 26
		if !letter && (i == 0 || c-'0' >= 10 && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

// isAuthority accepts a host and a port as origins have them, and a * in them.
func isAuthority(s string) bool {
	for _, c := range []byte(s) {
		if c|0x20-'a' >= 26 && c-'0' >= 10 && strings.IndexByte("-._:[]*", c) < 0 {
			return false
		}
	}
	return s != "" && s[0] != ':' && s[len(s)-1] != ':'
}

func isMethod(s string) bool { return isToken(s) && s == strings.ToUpper(s) }

// isToken accepts what RFC 9110 calls a token.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if c|0x20-'a' >= 26 && c-'0' >= 10 && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// checkEach notes each entry of a list that is not good.
func checkEach(f *object.Faults, path string, list []string, what string, good func(string) bool) {
	f.Count(path, len(list), maxEntries)
	for i, one := range list {
		if !good(one) {
			f.Add(object.Item(path, i), "must be "+what)
		}
	}
}
