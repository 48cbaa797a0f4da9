package clean

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// openAPI returns an OpenAPI description without the parts that are not for
// developers: servers, which are upstreams, and extensions, in which gateways and
// clouds keep upstream settings. Descriptions are rendered as HTML.
func openAPI(source string) (string, error) {
	t, err := parseTree(source)
	if err != nil {
		return "", err
	}
	s := &sweeper{second: t.get("swagger") != nil}
	if err := s.check(t); err != nil {
		return "", err
	}
	s.origins = originsOf(t)
	swept, err := s.object(t, spec)
	if err != nil {
		return "", err
	}
	// The version comes first, so that users who add servers see which it is.
	slices.SortStableFunc(swept.members, func(a, b member) int { return isVersion(b.name) - isVersion(a.name) })
	return swept.write()
}

func isVersion(name string) int {
	if name == "openapi" || name == "swagger" {
		return 1
	}
	return 0
}

// A sweeper cleans one description.
type sweeper struct {
	second  bool     // it is of version 2
	origins []string // of servers that it names
	trail   trail
}

// check reports whether a tree is an OpenAPI description.
func (s *sweeper) check(t *tree) error {
	switch version, text := t.get("openapi").(string); {
	case s.second:
		if t.get("swagger") != "2.0" {
			return problemf("swagger", `must be "2.0"`)
		}
	case !text || !strings.HasPrefix(version, "3."):
		return problemf("openapi", `must be a version such as "3.0.3" or "3.1.0", or swagger must be "2.0"`)
	}
	info, ok := t.get("info").(*tree)
	if !ok {
		return problemf("info", "must be an object with a title")
	}
	if title, ok := info.get("title").(string); !ok || strings.TrimSpace(title) == "" {
		return problemf("info.title", "must be what the API is called")
	}
	paths := t.get("paths")
	if _, ok := paths.(*tree); !ok && (s.second || paths != nil || t.get("webhooks") == nil && t.get("components") == nil) {
		return problemf("paths", "must be an object with the paths of the API")
	}
	return nil
}

// context is the role of an object, which determines what its members are.
type context uint8

const (
	spec  context = iota // an object of the specification
	named                // a map of objects of the specification, by names of the author
	paths                // likewise, with extensions
	data                 // values of the API itself
)

// below returns the context of the value of a specification object's member.
func (s *sweeper) below(name string, value any) context {
	_, isObject := value.(*tree)
	switch name {
	case "example", "default", "const", "enum", "value", "security", "required":
		return data
	case "examples":
		if isObject && !s.second {
			return named
		}
		return data
	case "paths", "responses", "webhooks", "pathItems":
		return paths
	case "properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "headers", "schemas", "callbacks",
		"securitySchemes", "securityDefinitions", "requestBodies", "links", "content", "encoding", "variables", "mapping", "scopes":
		return named
	case "parameters": // a map in components; a list in an operation
		if isObject {
			return named
		}
	}
	return spec
}

// hidden are members of the specification's objects that name upstreams, or other
// documents for programs to load.
var hidden = []string{"servers", "server", "host", "basePath", "schemes", "jsonSchemaDialect", "$schema", "$id"}

// addresses are members that pages render as links.
var addresses = []string{"url", "externalValue", "termsOfService", "openIdConnectUrl", "authorizationUrl", "tokenUrl", "refreshUrl"}

func (s *sweeper) object(t *tree, in context) (*tree, error) {
	swept := &tree{members: make([]member, 0, len(t.members))}
	at := make(map[string]int)
	for _, m := range t.members {
		extension := strings.HasPrefix(strings.ToLower(m.name), "x-")
		if extension && (in == spec || in == paths) || in == spec && slices.Contains(hidden, m.name) {
			continue
		}
		s.trail = append(s.trail, m.name)
		value, keep, err := s.member(m, in)
		if err != nil {
			return nil, err
		}
		s.trail = s.trail[:len(s.trail)-1]
		switch {
		case !keep:
		case in == data:
			swept.put(at, m.name, value)
		default:
			swept.put(at, inert(m.name), value)
		}
	}
	return swept, nil
}

// member cleans a member of an object; keep reports whether it is kept.
func (s *sweeper) member(m member, in context) (value any, keep bool, err error) {
	if in == data {
		value, err = s.value(m.value, data)
		return value, true, err
	}
	if in != spec {
		value, err = s.value(m.value, spec)
		return value, true, err
	}
	text, isText := m.value.(string)
	switch {
	case !isText:
		value, err = s.value(m.value, s.below(m.name, m.value))
		return value, true, err
	case m.name == "description":
		return s.description(text)
	case m.name == "$ref", m.name == "$dynamicRef":
		if !strings.HasPrefix(text, "#") {
			return nil, false, problemf(s.trail.String(), "must lead to a place in the same document, such as #/components/schemas/User, not to %q", clip(text))
		}
		return inert(text), true, nil
	case m.name == "operationRef":
		return inert(text), strings.HasPrefix(text, "#"), nil
	case m.name == "pattern":
		return text, true, nil
	case slices.Contains(addresses, m.name):
		return text, isLink(text) && s.hide(text) == text, nil
	case s.below(m.name, text) == data:
		return s.hide(text), true, nil
	}
	return inert(s.hide(text)), true, nil
}

func (s *sweeper) description(text string) (any, bool, error) {
	html, err := markdown(s.hide(text))
	if problem, ok := errors.AsType[*Problem](err); ok {
		problem.Path = s.trail.String()
	}
	return html, true, err
}

// value cleans a value that is not a text of the specification's objects.
func (s *sweeper) value(value any, in context) (any, error) {
	switch v := value.(type) {
	case *tree:
		return s.object(v, in)
	case []any:
		swept := make([]any, len(v))
		for i, item := range v {
			s.trail = append(s.trail, i)
			var err error
			if swept[i], err = s.value(item, in); err != nil {
				return nil, err
			}
			s.trail = s.trail[:len(s.trail)-1]
		}
		return swept, nil
	case string:
		if in == data {
			return s.hide(v), nil
		}
		return inert(s.hide(v)), nil
	}
	return value, nil
}

// hide replaces the addresses of servers in a text.
func (s *sweeper) hide(text string) string {
	for _, origin := range s.origins {
		text = HideOrigin(text, origin)
	}
	return text
}

// isLink reports whether a text is a safe link.
func isLink(text string) bool {
	u, err := url.Parse(text)
	if err != nil || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("\\<>\"`", r) }) {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https", "mailto", "":
		return true
	}
	return false
}

// maxOrigins is how many servers of one description are hidden in its texts.
const maxOrigins = 20

// originsOf returns the origins of the servers in a description, including those of
// single paths and operations.
func originsOf(t *tree) []string {
	var all []string
	add := func(text string) {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || strings.ContainsAny(u.Host, "{}") || len(all) >= maxOrigins {
			return
		}
		if origin := "http://" + strings.ToLower(u.Host); !slices.Contains(all, origin) {
			all = append(all, origin)
		}
	}
	if host, ok := t.get("host").(string); ok {
		add("http://" + host)
	}
	eachServer(t, add)
	return all
}

// eachServer calls add with the URL of each server in a value, those of the whole
// description first.
func eachServer(value any, add func(url string)) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			eachServer(item, add)
		}
	case *tree:
		servers, _ := v.get("servers").([]any)
		for _, server := range append(servers[:len(servers):len(servers)], v.get("server")) {
			if server, ok := server.(*tree); ok {
				text, _ := server.get("url").(string)
				add(text)
			}
		}
		for _, m := range v.members {
			eachServer(m.value, add)
		}
	}
}
