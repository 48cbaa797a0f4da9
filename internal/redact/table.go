package redact

import (
	"encoding/base64"
	"strings"
)

// secretMembers are the members, in lower case, whose content is never shown, wherever
// they are.
var secretMembers = map[string]bool{
	"password": true, "secret": true, "hmac_string": true, "jwt_source": true,
	"jwt_data": true, "oauth_keys": true, "auth_headers": true, "header_map": true, "access_key": true,
	"private_key": true, "token": true, "passphrase": true,
	"api_key": true, "apikey": true, "sso_key": true, "nonce": true, "pwhistory": true,
	// Headers with credentials, wherever a definition sets them.
	"authorization": true, "proxy-authorization": true, "cookie": true,
	"x-api-key": true, "api-key": true, "x-auth-token": true, "x-access-token": true,
}

// secretEndings are the ends of names, in lower case, of members that are secret too.
var secretEndings = []string{"_secret", "_password", "_passphrase", "_private_key", "_api_key", "_access_token"}

// How a value is masked.
type kind int

const (
	open     kind = iota
	whole         // every text of it
	address       // the user, the password and the query of a URL
	hostOnly      // everything of a URL but its host
	named         // members with a name that may be of a secret
	line          // the value of a header line
	fact          // the value of a header, in an explanation
)

// secretPlaces are parts of definitions, policies and sessions that may hold credentials.
// A place is the end of a path: "*" is any member, "[]" any element.
var secretPlaces = []struct {
	place string
	how   kind
}{
	// Headers that the gateway sends to upstreams.
	{"global_headers.*", whole},
	{"transform_headers.[].add_headers.*", whole},
	{"health_check.headers.*", whole},
	{"check_list.[].headers.*", whole},
	{"subgraphs.[].headers.*", whole},
	{"check_list.[].body", whole},
	// The path of a webhook is often its credential.
	{"target_path", hostOnly},
	{"event_options.*.webhook", hostOnly},
	// URLs with a user or a query.
	{"target_url", address},
	{"target_list.[]", address},
	{"target_list.[].url", address},
	{"check_list.[]", address},
	{"check_list.[].url", address},
	{"override_target", address},
	{"subgraphs.[].url", address},
	{"rewrite_to", address},
	{"jwt_jwks_uris.[].url", address},
	// What $svc_meta variables stand for.
	{"meta_data", named},
	// Headers in explanations of requests.
	{"facts.[]", fact},
	{"upstream.added.[]", line},
}

// places are the secretPlaces by their last name, "*" and "[]" included.
var places = func() map[string][]placeRule {
	all := make(map[string][]placeRule)
	for _, p := range secretPlaces {
		segments := strings.Split(p.place, ".")
		last := segments[len(segments)-1]
		all[last] = append(all[last], placeRule{segments, p.how})
	}
	return all
}()

type placeRule struct {
	segments []string
	how      kind
}

// kindOf returns how the value at a path is masked. Elements of arrays are "[]" in paths.
func kindOf(path []string) kind {
	if len(path) == 0 {
		return open
	}
	last := path[len(path)-1]
	if last != element && IsSecret(last) {
		return whole
	}
	for _, name := range [...]string{last, "*"} {
		for _, rule := range places[name] {
			if rule.matches(path) {
				return rule.how
			}
		}
	}
	return open
}

// element stands for an element of an array in a path.
const element = "[]"

// matches reports whether a path ends with the place.
func (r placeRule) matches(path []string) bool {
	if len(path) < len(r.segments) {
		return false
	}
	path = path[len(path)-len(r.segments):]
	for i, segment := range r.segments {
		if segment != path[i] && (segment != "*" || path[i] == element) {
			return false
		}
	}
	return true
}

// IsSecret reports whether members or headers of a name are secret.
func IsSecret(name string) bool {
	lower := strings.ToLower(name)
	if secretMembers[lower] {
		return true
	}
	for _, ending := range secretEndings {
		if strings.HasSuffix(lower, ending) {
			return true
		}
	}
	return false
}

// IsPublic reports whether a text is known not to be secret although its member is: a
// public key, a certificate, or the URL of a key set in jwt_source.
func IsPublic(name, text string) bool {
	if !strings.EqualFold(name, "jwt_source") {
		return false
	}
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
		text = string(decoded)
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") {
		return Address(text) == text
	}
	return strings.HasPrefix(text, "-----BEGIN PUBLIC KEY-----") || strings.HasPrefix(text, "-----BEGIN CERTIFICATE-----") ||
		strings.HasPrefix(text, "-----BEGIN RSA PUBLIC KEY-----")
}
