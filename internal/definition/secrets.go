package definition

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/jwt"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// The kinds of SecretRef.
const (
	SealedSecret = "secret" // {secret:NAME}, stored encrypted by the admin, for each organisation
	EnvSecret    = "env"    // {env:NAME}, a variable in the environment of the gateway
	FileSecret   = "file"   // {file:PATH}, a file of the gateway
)

// SecretEnvPrefix begins the names of variables that definitions may refer to, so that
// they cannot read others.
const SecretEnvPrefix = "SLUICE_SECRET_"

// Bounds of a secret that definitions refer to, in bytes. Explanations of requests could not
// mask shorter ones.
const (
	MinSecret = 4
	MaxSecret = 8 << 10 // as long as a header may be
)

const (
	maxSecretName = 128
	maxSecretPath = 1024
)

// A SecretRef is a reference to a secret in the text of a definition.
type SecretRef struct{ Kind, Name string }

// String returns the reference as definitions have it.
func (r SecretRef) String() string { return "{" + r.Kind + ":" + r.Name + "}" }

// valid reports whether a text with the reference is one. Others are literal text.
func (r SecretRef) valid() bool {
	switch r.Kind {
	case SealedSecret:
		return ValidSecretName(r.Name)
	case EnvSecret:
		rest, ok := strings.CutPrefix(r.Name, SecretEnvPrefix)
		return ok && rest != "" && rest != "FILE" && len(rest) <= maxSecretName && strings.Trim(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
	case FileSecret:
		return strings.HasPrefix(r.Name, "/") && len(r.Name) <= maxSecretPath && !hasControl(r.Name)
	}
	return false
}

// ValidSecretName reports whether a sealed secret can have a name: at most 128 letters,
// digits, "-", "_" and ".", the first of them a letter or a digit.
func ValidSecretName(name string) bool {
	return isID(name) && len(name) <= maxSecretName && isAlnum(name[0])
}

// eachRef calls do with the text before each reference, and the reference. It returns the
// text after the last one.
func eachRef(text string, do func(before string, ref SecretRef)) (rest string) {
	from := 0
	for at := 0; ; {
		open := strings.IndexByte(text[at:], '{')
		if open < 0 {
			return text[from:]
		}
		open += at
		end := strings.IndexByte(text[open:], '}')
		if end < 0 {
			return text[from:]
		}
		end += open
		kind, name, _ := strings.Cut(text[open+1:end], ":")
		if ref := (SecretRef{kind, name}); ref.valid() {
			do(text[from:open], ref)
			at, from = end+1, end+1
		} else {
			at = open + 1
		}
	}
}

// hasRef reports whether a text has a reference to a secret.
func hasRef(text string) bool {
	found := false
	eachRef(text, func(string, SecretRef) { found = true })
	return found
}

// A secretPlace is a text of a definition in which references count.
type secretPlace struct {
	path string
	text string
	set  func(text string)

	escape func(secret string) string // as a secret is written in the text; nil: as it is
	done   func()                     // called after set; nil: nothing
}

// refPlaces returns the texts with references that count, in no order.
func (a *API) refPlaces() (all []secretPlace) {
	if a.LiteralSecrets {
		return nil
	}
	a.eachPlace(func(p secretPlace) {
		if hasRef(p.text) {
			all = append(all, p)
		}
	})
	return all
}

// eachPlace calls do with every text in which references count: jwt_source, the values of
// headers of calls that gateways and admins make (to upstreams, for introspection, health
// checks and webhooks), the URLs of webhooks, and what streams and data graphs call message
// brokers and others with. Elsewhere they are literal text.
func (a *API) eachPlace(do func(secretPlace)) {
	one := func(path string, text *string) {
		do(secretPlace{path: path, text: *text, set: func(with string) { *text = with }})
	}
	each := func(path string, headers map[string]string) {
		for name, value := range headers {
			do(secretPlace{path: object.Entry(path, name), text: value, set: func(with string) { headers[name] = with }})
		}
	}
	if a.JWT != nil {
		one("jwt_source", &a.JWT.Source)
	}
	if a.Proxy.HealthCheck != nil {
		each("proxy.health_check.headers", a.Proxy.HealthCheck.Headers)
	}
	if a.GraphQL != nil && a.GraphQL.Proxy != nil {
		each("graphql.proxy.auth_headers", a.GraphQL.Proxy.AuthHeaders)
		each("graphql.proxy.request_headers", a.GraphQL.Proxy.RequestHeaders)
	}
	if a.GraphQL != nil && a.GraphQL.Engine != nil {
		engine := a.GraphQL.Engine
		for i := range engine.GlobalHeaders {
			one(object.Item("graphql.engine.global_headers", i)+".value", &engine.GlobalHeaders[i].Value)
		}
		for i := range engine.DataSources {
			at := object.Item("graphql.engine.data_sources", i) + ".config"
			each(at+".headers", engine.DataSources[i].Config.Headers)
			engine.DataSources[i].Config.brokerSecrets(at, do)
		}
	}
	if a.GraphQL != nil && a.GraphQL.Supergraph != nil {
		each("graphql.supergraph.global_headers", a.GraphQL.Supergraph.GlobalHeaders)
		for i := range a.GraphQL.Supergraph.Subgraphs {
			each(object.Item("graphql.supergraph.subgraphs", i)+".headers", a.GraphQL.Supergraph.Subgraphs[i].Headers)
		}
	}
	a.versionSecrets(each)
	a.eventSecrets(one, each)
	a.streamSecrets(do)
	if a.UptimeTests != nil {
		for i := range a.UptimeTests.List {
			each(object.Item("uptime_tests.check_list", i)+".headers", a.UptimeTests.List[i].Headers)
		}
	}
}

func (a *API) versionSecrets(each func(path string, headers map[string]string)) {
	if a.VersionData == nil {
		return
	}
	for name, v := range a.VersionData.Versions {
		if v == nil {
			continue
		}
		at := object.Entry("version_data.versions", name)
		each(at+".global_headers", v.GlobalHeaders)
		if v.ExtendedPaths == nil {
			continue
		}
		for i := range v.ExtendedPaths.RequestHeaders {
			each(object.Item(at+".extended_paths.transform_headers", i)+".add_headers", v.ExtendedPaths.RequestHeaders[i].Add)
		}
	}
}

func (a *API) eventSecrets(one func(path string, text *string), each func(path string, headers map[string]string)) {
	if a.EventHandlers == nil {
		return
	}
	for event, list := range a.EventHandlers.Events {
		for i := range list {
			at := object.Item(object.Entry("event_handlers.events", event), i) + ".handler_meta"
			one(at+".target_path", &list[i].Meta.Target)
			each(at+".header_map", list[i].Meta.Headers)
		}
	}
}

// refForm matches what was probably meant as a reference.
var refForm = regexp.MustCompile(`\{(?:secret|env|file):[^{}]*\}`)

// literalRefs reports texts that look like references to secrets and are none.
func (a *API) literalRefs() (found Problems) {
	if a.LiteralSecrets || !a.mayRefer {
		return nil
	}
	places := make(map[string]bool)
	a.eachPlace(func(p secretPlace) {
		places[plainPath.Replace(p.path)] = true
		rest := eachRef(p.text, func(before string, _ SecretRef) { found.addUnknownRefs(p.path, before) })
		found.addUnknownRefs(p.path, rest)
	})
	text, err := object.Marshal(a)
	var all any
	if err == nil && json.Unmarshal(text, &all) == nil {
		found.addMisplaced("", all, places)
	}
	slices.SortStableFunc(found, func(x, y Problem) int { return strings.Compare(x.Path, y.Path) })
	return found
}

// plainPath turns paths into those of addMisplaced.
var plainPath = strings.NewReplacer(`["`, ".", `"]`, "")

func (p *Problems) addUnknownRefs(path, text string) {
	for _, ref := range refForm.FindAllString(text, -1) {
		p.addf(path, "has %s, which is literal text and no reference to a secret; these are {secret:NAME}, {env:%sNAME} and {file:/PATH}", ref, SecretEnvPrefix)
	}
}

// addMisplaced reports references in a decoded value, except at some paths.
func (p *Problems) addMisplaced(path string, value any, except map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			p.addMisplaced(object.Member(path, name), member, except)
		}
	case []any:
		for i := range v {
			p.addMisplaced(object.Item(path, i), v[i], except)
		}
	case string:
		if !except[path] && hasRef(v) {
			p.addf(path, "refers to a secret, which is literal text here: references count in jwt_source, in headers of calls that are made, in URLs of webhooks, and in addresses and credentials of streams and message brokers")
		}
	}
}

// A SecretUse is a reference to a secret, and where it is.
type SecretUse struct {
	Path string
	Ref  SecretRef
}

// SecretUses returns the references to secrets that count, ordered by path.
func (a *API) SecretUses() (all []SecretUse) {
	for _, p := range a.refPlaces() {
		eachRef(p.text, func(_ string, ref SecretRef) { all = append(all, SecretUse{p.path, ref}) })
	}
	slices.SortStableFunc(all, func(x, y SecretUse) int { return strings.Compare(x.Path, y.Path) })
	return all
}

// SealedSecrets returns the names of the sealed secrets that a definition refers to, each
// once and in alphabetical order; never nil.
func (a *API) SealedSecrets() []string {
	names := []string{}
	for _, use := range a.SecretUses() {
		if use.Ref.Kind == SealedSecret {
			names = append(names, use.Ref.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// MayReferToSecrets reports whether a definition, as JSON, may have references to secrets.
// It is quick, and true for some that have none.
func MayReferToSecrets(text []byte) bool {
	for _, start := range [...]string{"{" + SealedSecret + ":", "{" + EnvSecret + ":", "{" + FileSecret + ":"} {
		if bytes.Contains(text, []byte(start)) {
			return true
		}
	}
	return false
}

// MayReferToSecrets is the function of that name for the text that ParseAPI read.
func (a *API) MayReferToSecrets() bool { return a.mayRefer }

// resolution is a definition with its references replaced.
type resolution struct {
	api     *API
	secrets []string
}

// WithSecrets returns a definition that InForce takes the secrets of. The error is
// *Problems, which name references and hold no secrets. The definition must not change
// afterwards.
func (a *API) WithSecrets(lookup func(SecretRef) (string, error)) (*API, error) {
	r := new(resolution)
	err := a.replaceRefs(r, lookup)
	if err != nil {
		return nil, err
	}
	with := *a
	with.resolved = r
	return &with, nil
}

// InForce returns the definition with secrets in place of references to them, which
// requests are served by. It must not be shown.
func (a *API) InForce() *API {
	if a.resolved == nil {
		return a
	}
	return a.resolved.api
}

// Secrets returns the secrets that InForce has in place of references.
func (a *API) Secrets() []string {
	if a == nil || a.resolved == nil {
		return nil
	}
	return a.resolved.secrets
}

func (a *API) replaceRefs(r *resolution, lookup func(SecretRef) (string, error)) error {
	with := a.Clone()
	var p Problems
	places := with.refPlaces()
	for _, place := range places {
		text, err := replaceSecrets(place.text, place.escape, func(ref SecretRef) (string, error) {
			secret, err := lookup(ref)
			r.secrets = append(r.secrets, secret)
			return secret, err
		})
		if err != nil {
			p.addf(place.path, "%s", err)
		}
		place.set(text)
	}
	for _, place := range places {
		if place.done != nil {
			place.done()
		}
	}
	if len(p) > 0 {
		slices.SortStableFunc(p, func(x, y Problem) int { return strings.Compare(x.Path, y.Path) })
		return &p
	}
	r.api, with.LiteralSecrets = with, true // a secret may look like a reference
	if err := with.Validate(); err != nil {
		return fmt.Errorf("with the secrets that it refers to: %w", err)
	}
	return nil
}

// ReplaceSecrets returns a text with secrets in place of references to them. The error names
// a reference, and holds no secret.
func ReplaceSecrets(text string, lookup func(SecretRef) (string, error)) (string, error) {
	return replaceSecrets(text, nil, lookup)
}

// replaceSecrets is ReplaceSecrets for a text in which secrets are written in their own way.
func replaceSecrets(text string, escape func(string) string, lookup func(SecretRef) (string, error)) (string, error) {
	var to strings.Builder
	var wrong error
	rest := eachRef(text, func(before string, ref SecretRef) {
		secret, err := lookup(ref)
		if err == nil {
			err = secretFault(secret)
		}
		if err != nil && wrong == nil {
			wrong = fmt.Errorf("%s: %w", ref, err)
		}
		if escape != nil {
			secret = escape(secret)
		}
		to.WriteString(before)
		to.WriteString(secret)
	})
	to.WriteString(rest)
	return to.String(), wrong
}

// secretFault returns why a secret cannot be used, without quoting it.
func secretFault(secret string) error {
	switch {
	case secret == "":
		return errors.New("is empty")
	case len(secret) < MinSecret:
		return fmt.Errorf("is shorter than %d bytes", MinSecret)
	case len(secret) > MaxSecret:
		return fmt.Errorf("is longer than %d bytes", MaxSecret)
	case strings.Contains(secret, "$svc_"):
		return errors.New("has $svc_, which begins a variable in headers")
	}
	return nil
}

// checkJWT checks the settings of tokens. What a reference in jwt_source stands for is
// checked where it is known.
func (a *API) checkJWT() error {
	settings := a.JWT
	if settings != nil && !a.LiteralSecrets && hasRef(settings.Source) {
		stand := *settings
		if stand.Source = "https://reference.invalid/"; stand.Method == jwt.HMAC {
			stand.Source = base64.StdEncoding.EncodeToString(make([]byte, maxSecretName))
		}
		settings = &stand
	}
	return asProblems(settings.Check()...)
}

// ErrNoSecret means that there is no such secret.
var ErrNoSecret = errors.New("does not exist")
