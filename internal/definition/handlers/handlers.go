// Package handlers is what a definition says about who is told of events.
package handlers

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// The kinds of handler.
const (
	ToLog     = "eh_log_handler"
	ToWebhook = "eh_web_hook_handler"
)

// Bounds of what is said about handlers.
const (
	maxHandlers = 20     // of one event
	maxHeaders  = 50     // of one webhook
	maxCooldown = 86_400 // seconds
	maxTemplate = 64 << 10
)

// Events lists what an API can have handlers for.
var Events = []string{
	"AuthFailure", "BreakerReset", "BreakerTriggered", "BreakerTripped", "HostDown", "HostUp", "KeyExpired",
	"OrgQuotaExceeded", "OrgRateLimitExceeded", "QuotaExceeded", "RatelimitExceeded", "TriggerExceeded", "VersionFailure",
}

// A Handler is told of an event.
type Handler struct {
	Name    string         `json:"handler_name"`
	Meta    Meta           `json:"handler_meta"`
	Unknown object.Unknown `json:"-"`
}

// Meta says how a handler tells. A log handler reads Prefix alone.
type Meta struct {
	ID           string            `json:"id,omitempty"`
	Name         string            `json:"name,omitempty"`
	Disabled     bool              `json:"disabled,omitempty"`
	Prefix       string            `json:"prefix,omitempty"`        // of log lines
	Method       string            `json:"method,omitempty"`        // GET, POST, PUT, PATCH or DELETE; "" and any other: GET
	Target       string            `json:"target_path,omitempty"`   // http or https address
	TemplateFile string            `json:"template_path,omitempty"` // file in the gateway's folder of templates; "" for the usual body
	Template     string            `json:"template,omitempty"`      // in place of a file
	Headers      map[string]string `json:"header_map,omitempty"`
	Cooldown     int64             `json:"event_timeout,omitempty"` // seconds in which the same message is not sent again; 0: none
	Unknown      object.Unknown    `json:"-"`
}

type block struct {
	Events  map[string][]Handler `json:"events"`
	Unknown object.Unknown       `json:"-"`
}

// Parse reads a definition's event_handlers member: handlers by event, without
// those that are off. Faults have paths below the member; beside them comes what
// could be read.
func Parse(raw json.RawMessage) (map[string][]Handler, []object.Fault) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	b := new(block)
	f := object.Faults(object.Decode(raw, b))
	on := make(map[string][]Handler)
	for _, event := range object.SortedKeys(b.Events) {
		list := b.Events[event]
		at := object.Entry("events", event)
		if len(list) > 0 && !slices.Contains(Events, event) {
			f.Addf(at, "is no event of an API; these are: %s", strings.Join(Events, ", "))
			continue
		}
		f.Count(at, len(list), maxHandlers)
		for i := range list {
			if list[i].Meta.Disabled {
				continue
			}
			f.Below(object.Item(at, i), list[i].check())
			on[event] = append(on[event], list[i])
		}
	}
	return on, f
}

func (h *Handler) check() []object.Fault {
	var f object.Faults
	switch h.Name {
	case ToLog:
	case ToWebhook:
		f.Below("handler_meta", h.Meta.check())
	default:
		f.Addf("handler_name", "must be %s or %s", ToLog, ToWebhook)
	}
	return f
}

func (m *Meta) check() []object.Fault {
	var f object.Faults
	f.Add("target_path", CheckTarget(m.Target))
	f.Count("header_map", len(m.Headers), maxHeaders)
	for _, name := range object.SortedKeys(m.Headers) {
		f.Add(object.Entry("header_map", name), checkHeader(name, m.Headers[name]))
	}
	if m.Cooldown < 0 || m.Cooldown > maxCooldown {
		f.Addf("event_timeout", "must be 0 to %d seconds", maxCooldown)
	}
	if strings.ContainsAny(m.TemplateFile, "/\\\x00") || m.TemplateFile == ".." {
		f.Add("template_path", "must be the name of a file in the folder that events.templates names, without any /")
	}
	if len(m.Template) > maxTemplate {
		f.Addf("template", "has %d bytes; at most %d are allowed", len(m.Template), maxTemplate)
	}
	return f
}

// CheckTarget says what is wrong with the address of a webhook, or "".
func CheckTarget(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "must be an http or https address, such as https://hooks.example/sluice"
	}
	return ""
}

// ofMessage are headers that say how a message is framed, or where it goes.
var ofMessage = []string{"Connection", "Content-Length", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func checkHeader(name, value string) string {
	switch {
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isToken(r) }):
		return "must have a name of letters, digits and -"
	case slices.Contains(ofMessage, http.CanonicalHeaderKey(name)):
		return "is not a webhook's to set"
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return "must not have control characters in its value"
	}
	return ""
}

// isToken tells whether a rune may stand in a name (RFC 9110 section 5.6.2).
func isToken(r rune) bool {
	return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}
