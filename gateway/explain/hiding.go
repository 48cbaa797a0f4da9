package explain

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/usage"
)

// A hiding removes what may authenticate from the texts of one request.
type hiding struct {
	places  map[string]bool // names under which callers of the API authenticate, in lower case
	replace func(string) string
}

// newHiding finds the credentials of a request: what the stages took for one, and the
// values of all headers and cookies that may be one.
func newHiding(ex *pipeline.Exchange) *hiding {
	h := &hiding{places: authPlaces(ex.API.Definition)}
	var secrets []string
	add := func(least int, text string) {
		if len(text) >= least && !slices.Contains(secrets, text) {
			secrets = append(secrets, text)
		}
	}
	for at := ex; at != nil; at = at.Child {
		add(least, string(at.Token))
	}
	call := ex.Call
	for i := range call.Fields {
		f := &call.Fields[i]
		if !h.isSecret(string(call.NameOf(f))) {
			continue
		}
		value := string(call.ValueOf(f))
		add(shortest, value)
		for _, part := range strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ';' || r == ',' }) {
			add(shortest, part)
			if _, after, found := strings.Cut(part, "="); found {
				add(shortest, after)
			}
		}
		if scheme, rest, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "basic") {
			if pair, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest)); err == nil {
				_, password, _ := strings.Cut(string(pair), ":")
				add(least, password)
			}
		}
	}
	for pair := range strings.SplitSeq(string(call.Query), "&") {
		name, value, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(value); h.isSecret(unescaped(name)) && err == nil {
			add(shortest, value)
			add(shortest, plain)
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	h.replace = replacer(secrets)
	return h
}

// secretWords are words in the names of values that are masked, besides those of headers.
var secretWords = append([]string{
	"passwd", "passphrase", "pwd", "signature", "credential", "session", "jwt", "bearer", "private", "otp", "ssn", "iban", "cardnumber", "card_number", "cvv", "cvc",
}, secretNames...)

// isSecret reports whether the value of a header, parameter, argument or variable is
// masked, by its name.
func (h *hiding) isSecret(name string) bool {
	lower := strings.ToLower(name)
	switch lower {
	case "key", "sig", "pin", "pass", "auth", "api_key", "access_key":
		return true
	}
	return h.places[lower] || slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(lower, word) })
}

// text returns a text without credentials, as it can be stored.
func (h *hiding) text(of []byte) string { return h.replace(usage.Clean(string(of))) }

func unescaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// query masks the parameters of a query that may authenticate. Of GraphQL it masks what
// body does.
func (h *hiding) query(query string, isGraphQL bool) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		plain := unescaped(name)
		switch {
		case (h.isSecret(plain) || plain == "code") && value != "": // a code of OAuth 2.0
			pairs[i] = name + "=" + masked
		case isGraphQL && plain == "query":
			pairs[i] = name + "=" + url.QueryEscape(h.document(unescaped(value)))
		case isGraphQL && (plain == "variables" || plain == "extensions"):
			whole, ok := h.json([]byte(unescaped(value)))
			if !ok {
				whole = masked
			}
			pairs[i] = name + "=" + url.QueryEscape(whole)
		default:
			pairs[i] = h.text([]byte(pair))
		}
	}
	return usage.Clean(strings.Join(pairs, "&"))
}

// body returns the body of a GraphQL request with masked strings, or cut: it is too
// large, was not read, or has credentials that cannot be told from the rest.
func (h *hiding) body(ex *pipeline.Exchange) (text string, cut bool) {
	call := ex.Call
	if call.Stream != nil || len(call.Body) == 0 || len(call.Body) > usage.MaxSampleBody || ex.API.Definition.BasicAuth.InBody() {
		return "", true
	}
	understood := false
	kind, _, _ := bytes.Cut(call.Get(wire.NameContentType), []byte{';'})
	if strings.EqualFold(string(bytes.TrimSpace(kind)), "application/graphql") {
		text = usage.Clean(h.document(string(call.Body)))
	} else if text, understood = h.json(call.Body); !understood {
		return "", true
	}
	return text, len(text) > usage.MaxSampleBody
}

// json masks strings in JSON by the names of their members. Operations are masked as
// documents.
func (h *hiding) json(body []byte) (text string, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var whole any
	if dec.Decode(&whole) != nil || dec.More() {
		return "", false
	}
	var to bytes.Buffer
	enc := json.NewEncoder(&to)
	enc.SetEscapeHTML(false)
	if enc.Encode(h.value(whole, 0)) != nil {
		return "", false
	}
	return usage.Clean(strings.TrimSuffix(to.String(), "\n")), true
}

// deepest is how deep JSON is looked through; what lies below is masked.
const deepest = 50

func (h *hiding) value(v any, depth int) any {
	if depth > deepest {
		return masked
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			text, isText := member.(string)
			switch {
			case isText && name == "query" && depth <= 1:
				v[name] = h.document(text)
			case h.isSecret(name):
				v[name] = mask(member)
			default:
				v[name] = h.value(member, depth+1)
			}
		}
	case []any:
		for i := range v {
			v[i] = h.value(v[i], depth+1)
		}
	case string:
		return h.replace(v)
	}
	return v
}

// mask masks all strings and numbers of a value, whose kind stays.
func mask(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = mask(member)
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i])
		}
	case string:
		return masked
	case json.Number:
		return json.Number("0")
	}
	return v
}

// named finds the strings of a document with the name of the argument, input field or
// variable that they are for.
var named = regexp.MustCompile(`([_A-Za-z][_0-9A-Za-z]*)(\s*:\s*(?:[\[\]!_0-9A-Za-z\s]+=\s*)?)("""(?s:.*?)"""|"(?:[^"\\\n]|\\.)*")`)

// document masks strings in a GraphQL document by their names.
func (h *hiding) document(text string) string {
	return h.replace(named.ReplaceAllStringFunc(text, func(found string) string {
		part := named.FindStringSubmatch(found)
		if !h.isSecret(part[1]) {
			return found
		}
		return part[1] + part[2] + `"` + masked + `"`
	}))
}
