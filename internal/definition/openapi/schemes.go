package openapi

import (
	"encoding/json"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// A mode is an auth mode.
type mode struct {
	config    string // its entry in auth_configs; also the name of its scheme where no other is known
	member    string // of the definition, that turns it on
	component string // its scheme in components.securitySchemes where there is none
}

const tokenConfig = "authToken"

var modes = []mode{
	{tokenConfig, "use_standard_auth", `{"type":"apiKey","in":"header","name":"Authorization"}`},
	{"jwt", "enable_jwt", `{"type":"http","scheme":"bearer","bearerFormat":"JWT"}`},
	{"basic", "use_basic_auth", `{"type":"http","scheme":"basic"}`},
	{"oauth", "use_oauth2", `{"type":"oauth2","flows":{}}`},
}

// modeOf returns the auth mode of a scheme in components.securitySchemes, nil for a kind
// that there is no mode of.
func modeOf(component json.RawMessage) *mode {
	var said struct{ Type, Scheme string }
	_ = json.Unmarshal(component, &said) // what is no scheme has no kind
	switch {
	case said.Type == "apiKey":
		return &modes[0]
	case said.Type == "http" && said.Scheme == "bearer":
		return &modes[1]
	case said.Type == "http" && said.Scheme == "basic":
		return &modes[2]
	case said.Type == "oauth2":
		return &modes[3]
	}
	return nil
}

// components returns the schemes in components.securitySchemes.
func (d *Document) components() map[string]json.RawMessage {
	return object.Members(object.Members(d.top["components"])["securitySchemes"])
}

// authenticate moves how clients authenticate to the definition. Without a word about it
// they need a key.
func (d *Document) authenticate(to tree) {
	const at = extension + "." + authentication
	said := get(d.gateway, authentication)
	auth, isObject := said.(tree)
	switch {
	case said != nil && !isObject:
		d.add(at, "must be an object")
		return
	case auth["enabled"] == false:
		to["use_keyless"] = true // the object stays as it is, switched off
		return
	case auth["enabled"] != nil && auth["enabled"] != true:
		d.add(at+".enabled", "must be true or false")
	}
	delete(auth, "enabled")
	given, isObject := auth["securitySchemes"].(tree)
	if auth["securitySchemes"] != nil && !isObject {
		d.add(at+".securitySchemes", "must be an object: settings by the name of a scheme in components.securitySchemes")
	}
	components := d.components()
	for _, name := range object.SortedKeys(given) {
		path := member(at+".securitySchemes", name)
		scheme, isObject := given[name].(tree)
		switch {
		case !isObject:
			d.add(path, "must be an object")
		case scheme["enabled"] == false: // it stays as it is
		default:
			d.useScheme(to, scheme, place{path, name, components[name]})
			if len(scheme) == 0 {
				delete(given, name)
			}
		}
	}
	if len(d.schemes) == 0 {
		to["use_standard_auth"] = true
	}
	if isObject && len(given) == 0 {
		delete(auth, "securitySchemes")
	}
	if len(auth) == 0 {
		take(d.gateway, authentication)
	}
}

// A place is where an authentication scheme is, and its entry in components, if it has one.
type place struct {
	path, name string
	component  json.RawMessage
}

// useScheme turns on the auth mode of a scheme.
func (d *Document) useScheme(to, scheme tree, at place) {
	m := modeOf(at.component)
	switch {
	case at.component == nil:
		d.add(at.path, "has no scheme of that name in components.securitySchemes")
		return
	case m == nil:
		d.add(at.path, "names a scheme of a kind that is not supported; these are apiKey, http with basic or bearer, and oauth2")
		return
	case d.schemes[m.config] != "":
		d.add(at.path, "is of the same kind as %s; one of a kind can be used", d.schemes[m.config])
		return
	}
	d.schemes[m.config] = at.path
	delete(scheme, "enabled")
	to[m.member] = true
	entry, _ := get(to, "auth_configs."+m.config).(tree)
	if entry == nil {
		entry = tree{}
		set(to, "auth_configs."+m.config, entry)
	}
	entry["name"] = at.name
	if m.config == tokenConfig {
		locate(entry, at.component)
	}
	switch on := take(scheme, "header.enabled"); on {
	case nil:
	case true:
		delete(entry, "disable_header")
	case false:
		entry["disable_header"] = true
	default:
		d.add(at.path+".header.enabled", "must be true or false")
	}
	known := []string{"header.enabled"}
	move(scheme, entry, schemeFields)
	for _, f := range schemeFields {
		known = append(known, f.document)
	}
	if m.config == "jwt" {
		move(scheme, to, tokenFields)
		for _, f := range tokenFields {
			known = append(known, f.document)
		}
	}
	rest(&d.problems, at.path, scheme, known)
}

// locate sets where a key is found to what its scheme in components says.
func locate(entry tree, component json.RawMessage) {
	var said struct{ In, Name string }
	_ = json.Unmarshal(component, &said) // an object, or it had no kind
	switch said.In {
	case "query":
		entry["disable_header"], entry["use_param"] = true, true
		entry["param_name"] = said.Name
	case "cookie":
		entry["disable_header"], entry["use_cookie"] = true, true
		entry["cookie_name"] = said.Name
	default:
		if said.Name != "" {
			entry["auth_header_name"] = said.Name
		}
	}
}
