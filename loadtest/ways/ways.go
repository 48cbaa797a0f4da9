// Package ways measures what each way to say who calls, and each rule that a call
// passes, costs beside a token in a header: all as APIs of one gateway, so that
// nothing else differs.
package ways

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/loadtest/gate"
)

// A way is how a call comes in.
type way struct {
	name  string
	api   string
	query string
	lines []string // of the head
	bound float64  // of its CPU time, the token's being 1
	tls   *tls.Config
}

// Bounds of a way: what the features of a gateway may cost, and a token that has to
// be looked at.
const (
	bound    = 1.03
	jwtBound = 1.10
)

// What callers show.
const (
	policy   = "ways"
	user     = "bob"
	password = "secret"
	secret   = "a secret of the load test, of enough bytes"
)

// site is what a gateway was filled with.
type site struct {
	*gate.Gate
	key          string
	token        string      // a signed one
	plain, shown *tls.Config // of clients over TLS
}

// start runs a gateway with an API for each way.
func start(ctx context.Context, at gate.Site) (*site, error) {
	g, err := gate.New(at)
	if err != nil {
		return nil, err
	}
	s := &site{Gate: g}
	certificate := ""
	if s.plain, s.shown, certificate, err = g.Certify(); err != nil {
		return nil, err
	}
	apis := definitions(certificate)
	ids := make([]string, 0, len(apis))
	for id, members := range apis {
		if err := g.Save(g.Define(id, members)); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	g.Policy(policy, ids...)
	if err := s.enrol(ctx); err != nil {
		return nil, err
	}
	return s, g.Start(ctx, "plain")
}

// definitions are the members, by API, that make it what it is.
func definitions(certificate string) map[string]gate.Object {
	single := func(version gate.Object) gate.Object {
		return gate.Object{"enable_context_vars": true, "version_data": gate.Object{"not_versioned": true, "versions": gate.Object{"Default": version}}}
	}
	return map[string]gate.Object{
		"plain": nil,
		"places": {"auth_configs": gate.Object{"authToken": gate.Object{
			"use_param": true, "param_name": "api_key", "use_cookie": true, "cookie_name": "session",
		}}},
		"versions": {
			"definition":   gate.Object{"location": "header", "key": "X-Api-Version"},
			"version_data": gate.Object{"versions": gate.Object{"v1": gate.Object{"name": "v1"}, "v2": gate.Object{"name": "v2"}}},
		},
		"jwt": {
			"enable_jwt": true, "jwt_signing_method": "hmac", "jwt_source": base64.StdEncoding.EncodeToString([]byte(secret)),
			"jwt_default_policies": []string{policy},
		},
		"users": {"use_basic_auth": true},
		"vars": single(gate.Object{"name": "Default", "global_headers": gate.Object{
			"X-Client": "$svc_context.remote_addr", "X-Team": "$svc_meta.team", "X-Path": "$svc_context.path",
		}}),
		"cors": {"CORS": gate.Object{
			"enable": true, "allowed_origins": []string{"https://app.example"}, "allow_credentials": true,
		}},
		"addresses": {"enable_ip_whitelisting": true, "allowed_ips": []string{"203.0.113.0/24", "2001:db8::/32", "127.0.0.0/8"}},
		"kept":      {"cache_options": gate.Object{"enable_cache": true, "cache_timeout": 86400, "cache_all_safe_requests": true}},
		"mutual":    {"use_mutual_tls_auth": true, "client_certificates": []string{certificate}},
	}
}

// enrol makes a key, a user and a signed token, all with the same rights.
func (s *site) enrol(ctx context.Context) (err error) {
	session := func() *definition.Session {
		return &definition.Session{ApplyPolicies: []string{policy}, MetaData: map[string]json.RawMessage{"team": json.RawMessage(`"blue"`)}}
	}
	if s.key, err = s.Key(ctx, session()); err != nil {
		return err
	}
	stored, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return fmt.Errorf("hashing a password: %w", err)
	}
	known := session()
	known.BasicAuth = &definition.BasicAuth{Password: string(stored), HashType: "bcrypt"}
	if err := s.User(ctx, user, known); err != nil {
		return err
	}
	s.token = signed(fmt.Sprintf(`{"sub":"ann","iss":"loadtest","exp":%d}`, time.Now().Add(24*time.Hour).Unix()))
	return nil
}

// signed returns claims as a token with an HMAC.
func signed(claims string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// ways are all that are measured. Over TLS, what they are compared with is over TLS
// too.
func (s *site) ways() []way {
	token := "Authorization: " + s.key
	return []way{
		{name: "token in a header, again", api: "plain", lines: []string{token}},
		{name: "token in a query parameter", api: "places", query: "?api_key=" + s.key, bound: bound},
		{name: "token in a cookie", api: "places", lines: []string{"Cookie: a=1; session=" + s.key}, bound: bound},
		{name: "version by header", api: "versions", lines: []string{token, "X-Api-Version: v2"}, bound: bound},
		{name: "JWT, warm", api: "jwt", lines: []string{"Authorization: Bearer " + s.token}, bound: jwtBound},
		{name: "user and password, warm", api: "users", lines: []string{"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}, bound: bound},
		{name: "three headers from context variables", api: "vars", lines: []string{token}, bound: bound},
		{name: "CORS", api: "cors", lines: []string{token, "Origin: https://app.example"}, bound: bound},
		{name: "list of addresses", api: "addresses", lines: []string{token}, bound: bound},
		{name: "cache hit", api: "kept", lines: []string{token}, bound: bound},
		{name: "token over TLS, again", api: "plain", lines: []string{token}, tls: s.plain},
		{name: "mutual TLS and a token", api: "mutual", lines: []string{token}, tls: s.shown, bound: bound},
	}
}

// yardstick is what a way is compared with.
func (s *site) yardstick(over *tls.Config) way {
	w := way{name: "token in a header", api: "plain", lines: []string{"Authorization: " + s.key}}
	if over != nil {
		w.name, w.tls = "token over TLS", s.plain
	}
	return w
}
