package classicimport

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
)

// classic converts the members of a definition that the classic format writes in another
// way, or that say what happens here anyway.
func (e *Entry) classic(tree map[string]any) {
	proxy, _ := tree["proxy"].(map[string]any)
	if transport, ok := proxy["transport"].(map[string]any); ok {
		e.leastTLS(transport)
	}
	e.templates(tree)
	e.processors(tree)
	e.scopes(tree)
	if allowed, _ := tree["allowed_ips"].([]any); tree["enable_ip_whitelisting"] == true && len(allowed) == 0 {
		delete(tree, "enable_ip_whitelisting")
		e.lose(accessLoss, "enable_ip_whitelisting", "is left out, as allowed_ips is empty: everybody may call the API, as before")
	}
}

// leastTLS converts the number of the lowest TLS version.
func (e *Entry) leastTLS(transport map[string]any) {
	const name, at = "ssl_min_version", "proxy.transport.ssl_min_version"
	given, ok := transport[name].(json.Number)
	if !ok {
		return
	}
	switch number(given) {
	case 0: // the default
		delete(transport, name)
	case 0x0304:
		transport[name] = "1.3"
		e.note(`%s %s is written as "1.3"`, at, given)
	case 0x0301, 0x0302, 0x0303:
		transport[name] = "1.2"
		e.note(`%s %s is written as "1.2", the lowest version of TLS here`, at, given)
	}
}

// defaultTemplate is the template file whose text is sent without a template.
const defaultTemplate = "default_webhook.json"

// templates leaves out default templates of webhooks, and the folders of others.
func (e *Entry) templates(tree map[string]any) {
	handlers, _ := tree["event_handlers"].(map[string]any)
	events, _ := handlers["events"].(map[string]any)
	for _, event := range slices.Sorted(maps.Keys(events)) {
		list, _ := events[event].([]any)
		for i := range list {
			handler, _ := list[i].(map[string]any)
			meta, _ := handler["handler_meta"].(map[string]any)
			file, _ := meta["template_path"].(string)
			at := fmt.Sprintf("event_handlers.events[%q][%d].handler_meta.template_path", event, i)
			switch base := path.Base(file); {
			case file == "":
			case base == defaultTemplate:
				delete(meta, "template_path")
				e.note("%s is left out: without it the default is sent", at)
			case base != file:
				meta["template_path"] = base
				e.note("%s is %q without its folder: put the file into the folder that events.templates names", at, base)
			}
		}
	}
}

// processors leaves out the processor that header rules of responses need in the classic
// format.
func (e *Entry) processors(tree map[string]any) {
	list, _ := tree["response_processors"].([]any)
	others := slices.DeleteFunc(slices.Clone(list), func(one any) bool {
		processor, _ := one.(map[string]any)
		return processor["name"] == "header_injector"
	})
	if len(others) < len(list) {
		tree["response_processors"] = others
		e.note("response_processors: header_injector is left out: response headers are changed without it")
	}
}

// scopes converts the newer form of the scopes of tokens.
func (e *Entry) scopes(tree map[string]any) {
	scopes, _ := tree["scopes"].(map[string]any)
	jwt, _ := scopes["jwt"].(map[string]any)
	policies, _ := jwt["scope_to_policy"].(map[string]any)
	if len(policies) == 0 {
		return
	}
	delete(scopes, "jwt")
	tree["jwt_scope_to_policy_mapping"] = policies
	if claim, _ := jwt["scope_claim_name"].(string); claim != "" {
		tree["jwt_scope_claim_name"] = claim
	}
	e.note("scopes.jwt is written as jwt_scope_to_policy_mapping and jwt_scope_claim_name")
}
