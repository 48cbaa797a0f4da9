package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// Render returns the document of a stored definition: what it was made of, with what the
// definition says today.
func Render(stored []byte) (json.RawMessage, error) {
	t, err := parseTree(stored)
	if err != nil {
		return nil, fmt.Errorf("reading a stored definition: %w", err)
	}
	raw := object.Members(stored)
	top := object.Members(raw[kept])
	if top == nil {
		top = make(map[string]json.RawMessage)
	}
	gateway, err := parseTree(top[extension])
	if err != nil {
		gateway = tree{}
	}
	if set(t, "active", t["active"] != false); get(t, "proxy.strip_listen_path") == nil {
		set(t, "proxy.strip_listen_path", false)
	}
	show(t, gateway, fields)
	for _, path := range switched {
		showSwitch(t, gateway, path)
	}
	if top["components"], err = showAuthentication(t, gateway, top["components"]); err != nil {
		return nil, err
	}
	if top[extension], err = write(gateway); err != nil {
		return nil, err
	}
	if raw[streaming] != nil {
		top[streaming] = raw[streaming]
	}
	if err := complete(top, t); err != nil {
		return nil, err
	}
	return writeTop(top)
}

// showSwitch switches an object of x-svc-api-gateway on if the definition has what it is
// about.
func showSwitch(t, gateway tree, path string) {
	for _, f := range fields {
		if _, below := within(f.document, path); below && means(get(t, f.definition)) {
			set(gateway, path+".enabled", true)
		}
	}
}

// complete adds the members that every document has.
func complete(top map[string]json.RawMessage, t tree) error {
	title, _ := t["name"].(string)
	if title == "" {
		title, _ = t["api_id"].(string)
	}
	info, err := write(map[string]string{"title": title, "version": "1"})
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"openapi": `"3.0.3"`, "info": string(info), "paths": "{}"} {
		if top[name] == nil {
			top[name] = json.RawMessage(value)
		}
	}
	return nil
}

// showAuthentication writes how clients authenticate to x-svc-api-gateway, and returns the
// components with a scheme for each auth mode that is on.
func showAuthentication(t, gateway tree, components json.RawMessage) (json.RawMessage, error) {
	if t["use_keyless"] == true {
		set(gateway, authentication+".enabled", false)
		return components, nil
	}
	set(gateway, authentication+".enabled", true)
	on := t["enable_jwt"] == true || t["use_basic_auth"] == true || t["use_oauth2"] == true
	if t["use_standard_auth"] == nil && !on {
		t["use_standard_auth"] = true
	}
	if old := t["auth"]; old != nil && get(t, "auth_configs."+tokenConfig) == nil {
		set(t, "auth_configs."+tokenConfig, old)
	}
	auth, _ := get(gateway, authentication).(tree)
	shown, _ := auth["securitySchemes"].(tree)
	if shown == nil {
		shown = tree{}
	}
	named := object.Members(object.Members(components)["securitySchemes"])
	all := make(map[string]json.RawMessage, len(named)+1)
	for _, name := range object.SortedKeys(named) {
		all[name] = named[name]
	}
	for i := range modes {
		if t[modes[i].member] == true {
			showScheme(t, shown, all, &modes[i])
		}
	}
	auth["securitySchemes"] = shown
	if len(all) == len(named) {
		return components, nil
	}
	return withSchemes(components, all)
}

// showScheme adds the scheme of an auth mode.
func showScheme(t, shown tree, components map[string]json.RawMessage, m *mode) {
	entry, _ := get(t, "auth_configs."+m.config).(tree)
	name, _ := entry["name"].(string)
	if is := modeOf(components[name]); is == nil || is.config != m.config {
		name = freeName(components, m)
	}
	if components[name] == nil {
		components[name] = json.RawMessage(m.component)
	}
	scheme := tree{"enabled": true}
	show(entry, scheme, schemeFields)
	if m.config != "basic" {
		set(scheme, "header.enabled", entry["disable_header"] != true)
	}
	if m.config == "jwt" {
		show(t, scheme, tokenFields)
	}
	shown[name] = scheme
}

// freeName returns the name of the scheme of an auth mode: that of one of its kind, or one
// that is not taken.
func freeName(components map[string]json.RawMessage, m *mode) string {
	names := object.SortedKeys(components)
	for _, name := range names {
		if is := modeOf(components[name]); is != nil && is.config == m.config {
			return name
		}
	}
	name := m.config
	for slices.Contains(names, name) {
		name += "_"
	}
	return name
}

func withSchemes(components json.RawMessage, all map[string]json.RawMessage) (json.RawMessage, error) {
	text, err := write(all)
	if err != nil {
		return nil, err
	}
	members := make(map[string]json.RawMessage)
	maps.Copy(members, object.Members(components))
	members["securitySchemes"] = text
	return write(members)
}

// Public returns the OpenAPI document of a stream API for those who call it, as JSON: what
// was written about it, without the parts that configure the gateway. It is nil if the
// document describes no path.
func Public(api *definition.API) (json.RawMessage, error) {
	top := object.Members(api.OpenAPIDocument())
	if len(object.Members(top["paths"])) == 0 {
		return nil, nil
	}
	left := make(map[string]json.RawMessage, len(top))
	for name, value := range top {
		if name != extension {
			left[name] = value
		}
	}
	return writeTop(left)
}
