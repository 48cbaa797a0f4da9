package definition

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

// webhookMethods are those that webhooks are called with.
var webhookMethods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}

// Webhook is a webhook that an admin keeps, for handlers of several APIs to refer to by its
// id. Its members are those of EventHandlerMeta.
type Webhook struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Method       string            `json:"method"`
	Target       string            `json:"target_path"`
	TemplateFile string            `json:"template_path,omitempty"`
	Template     string            `json:"template,omitempty"`
	Headers      map[string]string `json:"header_map,omitempty"`
	Cooldown     int64             `json:"event_timeout"`
}

// Validate returns what is wrong with a webhook to be stored, as *Problems.
func (w *Webhook) Validate() error {
	var f object.Faults
	if !isID(w.ID) {
		f.Add("id", idMessage)
	}
	if strings.TrimSpace(w.Name) == "" || len(w.Name) > maxText || hasControl(w.Name) {
		f.Addf("name", "must be text of 1 to %d bytes without control characters", maxText)
	}
	if !slices.Contains(webhookMethods, w.Method) {
		f.Addf("method", "must be one of %s", strings.Join(webhookMethods, ", "))
	}
	meta := EventHandlerMeta{Target: w.Target, TemplateFile: w.TemplateFile, Template: w.Template, Headers: w.Headers, Cooldown: w.Cooldown}
	return asProblems(append(f, meta.check()...)...)
}

// SealedSecrets returns the names of the sealed secrets that a webhook refers to, each once
// and in alphabetical order.
func (w *Webhook) SealedSecrets() (names []string) {
	for _, text := range append(slices.Collect(maps.Values(w.Headers)), w.Target) {
		eachRef(text, func(_ string, ref SecretRef) {
			if ref.Kind == SealedSecret {
				names = append(names, ref.Name)
			}
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// lacking returns the settings of a handler with those of the webhook in place of the ones
// that it does not have.
func (w *Webhook) lacking(m EventHandlerMeta) EventHandlerMeta {
	m.Target = w.Target
	if m.Name == "" {
		m.Name = w.Name
	}
	if m.Method == "" {
		m.Method = w.Method
	}
	if m.Template == "" && m.TemplateFile == "" {
		m.Template, m.TemplateFile = w.Template, w.TemplateFile
	}
	if len(m.Headers) == 0 {
		m.Headers = w.Headers
	}
	if m.Cooldown == 0 {
		m.Cooldown = w.Cooldown
	}
	return m
}

// A WebhookUse is a reference to a stored webhook, and where it is.
type WebhookUse struct{ Path, ID string }

// WebhookUses returns the references of handlers to stored webhooks, ordered by path.
// Handlers that are disabled refer to none.
func (a *API) WebhookUses() (all []WebhookUse) {
	a.eachWebhookUse(func(path string, m *EventHandlerMeta) { all = append(all, WebhookUse{path, m.ID}) })
	return all
}

// TakeWebhooks replaces references to stored webhooks by their members, and reports whether
// there were any. lookup returns nil for an unknown id, which stays as it is.
func (a *API) TakeWebhooks(lookup func(id string) *Webhook) (changed bool) {
	a.eachWebhookUse(func(_ string, m *EventHandlerMeta) {
		if w := lookup(m.ID); w != nil {
			*m, changed = w.lacking(*m), true
		}
	})
	return changed
}

func (a *API) eachWebhookUse(do func(path string, m *EventHandlerMeta)) {
	if a.EventHandlers == nil {
		return
	}
	for _, event := range object.SortedKeys(a.EventHandlers.Events) {
		list := a.EventHandlers.Events[event]
		for i := range list {
			if m := &list[i].Meta; list[i].Name == WebhookHandler && !m.Disabled && m.Target == "" && m.ID != "" {
				do(object.Item(object.Entry("event_handlers.events", event), i)+".handler_meta.id", m)
			}
		}
	}
}

// ParseFileAPI is ParseAPI for gateways without an admin, which have no stored webhooks.
func ParseFileAPI(data []byte) (*API, error) {
	a, err := ParseAPI(data)
	if err != nil {
		return a, err
	}
	var p Problems
	for _, use := range a.WebhookUses() {
		p.addf(use.Path, "refers to a stored webhook, which gateways with an admin alone have; give the handler a target_path")
	}
	return a, p.err()
}
