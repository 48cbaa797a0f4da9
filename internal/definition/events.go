package definition

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// The kinds of event handler.
const (
	LogHandler     = "eh_log_handler"
	WebhookHandler = "eh_web_hook_handler"
)

const (
	maxHandlers       = 20     // of one event
	maxWebhookHeaders = 50     // of one webhook
	maxCooldown       = 86_400 // seconds
	maxTemplate       = 64 << 10
)

// HandledEvents lists the events that an API can have handlers for.
var HandledEvents = []string{
	"AuthFailure", "BreakerReset", "BreakerTriggered", "BreakerTripped", "CertificateExpired", "CertificateExpiringSoon", "HostDown", "HostUp", "KeyExpired",
	"OrgQuotaExceeded", "OrgRateLimitExceeded", "QuotaExceeded", "RatelimitExceeded", "TriggerExceeded", "VersionFailure",
}

// EventHandlers says what is done when events of an API happen.
type EventHandlers struct {
	// Handlers by name of the event, at most 20 of each.
	// Example: {"QuotaExceeded": [{"handler_name": "eh_web_hook_handler", "handler_meta": {"method": "POST", "target_path": "https://hooks.example/sluice"}}]}
	Events  map[string][]EventHandler `json:"events,omitempty"`
	Unknown Unknown                   `json:"-"`
}

// EventHandler writes a line to the log or calls a webhook.
type EventHandler struct {
	// Kind of the handler: eh_log_handler or eh_web_hook_handler.
	// Example: "eh_web_hook_handler"
	Name string `json:"handler_name,omitempty" oneof:"eh_log_handler eh_web_hook_handler"`
	// Settings of the handler.
	// Example: {"method": "POST", "target_path": "https://hooks.example/sluice"}
	Meta    EventHandlerMeta `json:"handler_meta,omitzero"`
	Unknown Unknown          `json:"-"`
}

// EventHandlerMeta holds the settings of a handler. A log handler reads Prefix only.
type EventHandlerMeta struct {
	// Id of a stored webhook (/api/hooks), of which a webhook without a target_path takes the
	// members that it does not have itself; otherwise without effect.
	// Example: "on-call"
	ID string `json:"id,omitempty"`
	// Name of the handler, without effect.
	// Example: "on-call"
	Name string `json:"name,omitempty"`
	// Whether the handler is off.
	Disabled bool `json:"disabled,omitempty"`
	// Text in front of the event's name in the log.
	// Example: "orders"
	Prefix string `json:"prefix,omitempty"`
	// Method of the webhook: GET, POST, PUT, PATCH or DELETE. Default, and for any other: GET.
	// Example: "POST"
	Method string `json:"method,omitempty"`
	// URL of the webhook, http or https. It may be left out beside the id of a stored webhook.
	// Example: "https://hooks.example/sluice"
	Target string `json:"target_path,omitempty"`
	// Name of a template in the gateway's folder of templates. Default: a JSON object with the event.
	// Example: "event.json"
	TemplateFile string `json:"template_path,omitempty"`
	// Template in place of a file, at most 65536 bytes.
	// Example: "{\"text\": \"{{.Type}}\"}"
	Template string `json:"template,omitempty"`
	// Headers of the webhook, at most 50.
	// Example: {"X-Team": "payments"}
	Headers map[string]string `json:"header_map,omitempty"`
	// Seconds in which the same message is not sent again, at most 86400. Default: 0, always sent.
	// Example: 60
	Cooldown int64   `json:"event_timeout,omitempty"`
	Unknown  Unknown `json:"-"`
}

// check returns what is wrong, with paths below event_handlers.
func (h *EventHandlers) check() (f object.Faults) {
	if h == nil {
		return nil
	}
	for _, event := range object.SortedKeys(h.Events) {
		list, at := h.Events[event], object.Entry("events", event)
		if len(list) > 0 && !slices.Contains(HandledEvents, event) {
			f.Addf(at, "is not an event of an API; these are: %s", strings.Join(HandledEvents, ", "))
			continue
		}
		f.Count(at, len(list), maxHandlers)
		for i := range list {
			f.Below(object.Item(at, i), list[i].check())
		}
	}
	return f
}

func (h *EventHandler) check() (f object.Faults) {
	switch {
	case h.Meta.Disabled || h.Name == LogHandler:
	case h.Name == WebhookHandler:
		f.Below("handler_meta", h.Meta.check())
	default:
		f.Addf("handler_name", "must be %s or %s", LogHandler, WebhookHandler)
	}
	return f
}

func (m *EventHandlerMeta) check() (f object.Faults) {
	if m.Target != "" || m.ID == "" {
		f.Add("target_path", CheckWebhook(m.Target))
	}
	f.Count("header_map", len(m.Headers), maxWebhookHeaders)
	for _, name := range object.SortedKeys(m.Headers) {
		f.Add(object.Entry("header_map", name), webhookHeaderFault(name, m.Headers[name]))
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

// CheckWebhook returns what is wrong with the URL of a webhook, or "".
func CheckWebhook(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "must be an http or https address, such as https://hooks.example/sluice"
	}
	return ""
}

// webhookFraming are the headers that frame a message or say where it goes.
var webhookFraming = []string{"Connection", "Content-Length", "Host", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

func webhookHeaderFault(name, value string) string {
	switch {
	case !isToken(name):
		return "must have a name of letters, digits and -"
	case slices.Contains(webhookFraming, http.CanonicalHeaderKey(name)):
		return "must be left out: the gateway writes this header itself"
	case hasControl(value):
		return "must not have control characters in its value"
	}
	return ""
}
