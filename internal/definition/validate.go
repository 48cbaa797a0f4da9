package definition

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/http1"
)

const idMessage = `must consist of letters, digits, "-", "_" and ".", begin with none of the dots, and have at most 128 characters`

// Validate returns everything that is wrong with a definition, and every feature
// that it asks for and that this release does not have. The error is *Problems.
func (a *API) Validate() error {
	var p Problems
	p.checkID("api_id", a.ID)
	if strings.HasSuffix(a.ID, "-oas") {
		p.addf("api_id", `must not end in "-oas": a file of that name is the companion of another definition`)
	}
	p.checkID("org_id", a.OrgID)
	p.checkText("name", a.Name)
	p.checkDomain(a.Domain)
	p.checkTexts("tags", a.Tags)
	p.checkAuth(a)
	p.checkListen(a)
	if a.Proxy.TargetURL != "" || !a.HasStreams() && !a.IsDataGraph() && !a.IsSupergraph() {
		p.checkWith("proxy.target_url", checkTarget(a.Proxy.TargetURL))
	}
	p.checkUpstreams(a)
	p.join("cache_options", asProblems(a.CacheOptions.check()...))
	p.checkTransport(a.Proxy.Transport)
	p.checkVersions(a)
	if r := a.GlobalRateLimit; r != nil && !r.Disabled {
		p.checkRate("global_rate_limit", r.Rate, r.Per)
	}
	for _, host := range object.SortedKeys(a.UpstreamCertificates) {
		if a.UpstreamCertificates[host] == "" {
			p.addf(object.Entry("upstream_certificates", host), "must be a certificate id or the path of a PEM file")
		}
	}
	for i, entry := range a.ClientCertificates {
		p.checkWith(object.Item("client_certificates", i), checkCertificate(entry))
	}
	if a.EnableJWT {
		p.join("", a.checkJWT())
	}
	p.join("basic_auth", asProblems(a.BasicAuth.check()...))
	p.join("CORS", asProblems(a.CORS.check()...))
	var addresses object.Faults
	a.readAddresses(&addresses)
	p.join("", asProblems(addresses...))
	p.join("event_handlers", asProblems(a.EventHandlers.check()...))
	p.checkStreams(a)
	p.checkObject(documentMember, a.OpenAPIDocument())
	p.checkGraphQL(a.GraphQL)
	p.checkGraph(a)
	p.checkFeatures(a)
	return p.err()
}

// checkWith adds a problem; "" is none.
func (p *Problems) checkWith(path, wrong string) {
	if wrong != "" {
		p.addf(path, "%s", wrong)
	}
}

func (p *Problems) checkID(path, id string) {
	if id != "" && !isID(id) {
		p.addf(path, idMessage)
	}
}

// ValidID reports whether id can be that of an API, a policy or an organisation. A
// valid one is safe as a file name.
func ValidID(id string) bool { return isID(id) }

// isID reports whether id can be part of a file name, a path and a counter's name
// as it stands.
func isID(id string) bool {
	if id == "" || len(id) > maxID || id[0] == '.' {
		return false
	}
	for _, c := range []byte(id) {
		if !isAlnum(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func (p *Problems) checkText(path, text string) {
	if len(text) > maxText {
		p.addf(path, "has %d bytes; at most %d are allowed", len(text), maxText)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		p.addf(path, "must not hold control characters")
	}
}

func (p *Problems) checkTexts(path string, texts []string) {
	p.checkCount(path, len(texts), maxTags)
	for i, t := range texts {
		p.checkText(object.Item(path, i), t)
	}
}

func (p *Problems) checkCount(path string, n, most int) {
	if n > most {
		p.addf(path, "has %d entries; at most %d are allowed", n, most)
	}
}

// checkHeader accepts what RFC 9110 calls a token; "" is the default.
func (p *Problems) checkHeader(path, name string) {
	if name != "" && !isToken(name) {
		p.addf(path, "must be a header name, such as Authorization or X-Api-Key")
	}
}

func isToken(s string) bool { return http1.IsToken(s) }

func (p *Problems) checkDomain(domain string) {
	switch {
	case domain == "" || isHost(domain):
	case strings.ContainsAny(domain, "/?#@"):
		p.addf("domain", "must be a host name alone, without scheme or path")
	case strings.Contains(domain, ":"):
		p.addf("domain", "must be a host name without a port; an IPv6 address stands in brackets")
	default:
		p.addf("domain", "must be a host name of at most 253 letters, digits, dots and dashes; international names are written in their xn-- form")
	}
}

func (p *Problems) checkTransport(t *Transport) {
	if t == nil {
		return
	}
	const path = "proxy.transport."
	p.checkSeconds(path+"dial_timeout", t.DialTimeout)
	p.checkSeconds(path+"response_timeout", t.ResponseTimeout)
	if t.MaxConns < 0 {
		p.addf(path+"max_conns", "must not be negative; 0 is the gateway's default")
	}
	if t.MinVersion != "" && t.MinVersion != "1.2" && t.MinVersion != "1.3" {
		p.addf(path+"ssl_min_version", `must be "1.2" or "1.3"`)
	}
	if (t.CertificateFile == "") != (t.KeyFile == "") {
		p.addf(path+"ssl_certificate_file", "and ssl_key_file must both be set, or neither")
	}
	if t.ServerName != "" && !isHost(t.ServerName) {
		p.addf(path+"ssl_server_name", "must be a host name")
	}
}

func (p *Problems) checkSeconds(path string, seconds float64) {
	const day = 86400
	if seconds < 0 || seconds > day || math.IsNaN(seconds) {
		p.addf(path, "must be from 0 to %d seconds; 0 is the gateway's default", day)
	}
}

func (p *Problems) checkVersions(a *API) {
	p.checkSelector(a)
	d := a.VersionData
	if d == nil {
		return
	}
	const path = "version_data.versions"
	p.checkCount(path, len(d.Versions), maxVersions)
	for _, name := range object.SortedKeys(d.Versions) {
		v, at := d.Versions[name], object.Entry(path, name)
		if v == nil {
			p.addf(at, "must be an object")
			continue
		}
		p.checkVersion(at, v)
		p.checkGlobalHeaders(at, v)
		p.checkExtended(at+".extended_paths", v.Extended())
	}
}

// checkExtended checks the rules for single paths that are in use, but for the
// lists that decide whether calls pass, which checkVersion checks.
func (p *Problems) checkExtended(at string, e *ExtendedPaths) {
	p.checkPersistedOperations(at, e)
	var f object.Faults
	e.checkRates(&f)
	e.checkCalls(&f)
	e.checkCache(&f)
	e.checkTransforms(&f)
	p.join(at, asProblems(f...))
}

// checkSwitch checks an object that a boolean member turns on.
func (p *Problems) checkSwitch(path string, raw json.RawMessage, name string) {
	if !p.checkObject(path, raw) {
		return
	}
	if on := part(raw, name); len(on) > 0 && !isNull(on) && object.TypeName(on[0]) != "a boolean" {
		p.addf(object.Member(path, name), "must be true or false, not %s", object.TypeName(on[0]))
	}
}

// checkObject accepts an object, null, or nothing.
func (p *Problems) checkObject(path string, raw json.RawMessage) bool {
	if len(raw) > 0 && raw[0] != '{' && !isNull(raw) {
		p.addf(path, "must be an object, not %s", object.TypeName(raw[0]))
		return false
	}
	return true
}
