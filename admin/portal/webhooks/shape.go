package webhooks

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// A Webhook is a URL that events are sent to. In a body only name, url and events are
// used.
type Webhook struct {
	// Id of the webhook; filled in.
	// Example: "5d1c7f0e2a"
	ID string `json:"id"`
	// Id of the organisation; filled in.
	// Example: "acme"
	Org string `json:"org_id"`
	// Id of the developer whose webhook it is; filled in. Empty for those of the organisation.
	// Example: "5d1c7f0e2a"
	Developer string `json:"developer_id"`
	// Name for people, at most 200 bytes.
	// Example: "Deliveries"
	Name string `json:"name"`
	// URL that messages are posted to, https; at most 2048 bytes.
	// Example: "https://hooks.example/portal"
	URL string `json:"url"`
	// Types of events. * is every event of the portal itself; those of streams are named.
	// Example: ["key_event.created"]
	Events []string `json:"events"`
	// Whether messages are sent; changed by the calls enable and disable.
	Enabled bool `json:"enabled"`
	// Time at which it was disabled (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	Disabled *string `json:"disabled_at,omitempty" format:"date-time"`
	// Reason for which it was disabled; filled in.
	// Example: "nothing could be delivered for 5 days"
	DisabledFor string `json:"disabled_for,omitempty"`
	// Time since which no message could be delivered (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	Failing *string `json:"failing_since,omitempty" format:"date-time"`
	// Events of streams that were not queued, because too many waited for it; filled in.
	// Example: 3
	Missed int64 `json:"missed_events,omitempty"`
	// Time of the last of missed_events (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	MissedAt *string `json:"missed_at,omitempty" format:"date-time"`
	// Time until which messages are signed with the former secret as well (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	FormerUntil *string `json:"former_secret_until,omitempty" format:"date-time"`
	// Time at which it was made (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	Created string `json:"date_created" format:"date-time"`
	// Time of the last change (RFC 3339); filled in.
	// Example: "2026-11-28T07:00:00Z"
	Updated string `json:"date_updated" format:"date-time"`
}

// Wanted is the body of a call that creates a webhook.
type Wanted struct {
	// Name for people, at most 200 bytes.
	// Example: "Deliveries"
	Name string `json:"name"`
	// URL that messages are posted to, https; at most 2048 bytes.
	// Example: "https://hooks.example/portal"
	URL string `json:"url"`
	// Types of events. * is every event of the portal itself; those of streams are named.
	// Example: ["key_event.created"]
	Events []string `json:"events"`
	// whsec_ and 24 to 64 bytes in Base64. Default: a secret is made, and shown in the answer only.
	// Example: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	Secret string `json:"secret,omitempty"`
	// Id of the developer whose webhook it is to be. Default: the webhook is the organisation's.
	// Example: "5d1c7f0e2a"
	Developer string `json:"developer_id,omitempty"`
}

// Rotation is the body of a call that replaces the secret.
type Rotation struct {
	// whsec_ and 24 to 64 bytes in Base64. Default: a secret is made, and shown in the answer only.
	// Example: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	Secret string `json:"secret,omitempty"`
	// How long messages are signed with the former secret as well, at most 168h. Default: 24h.
	// Example: "24h"
	Grace string `json:"grace,omitempty" default:"24h"`
}

// Shown is a secret that is shown once.
type Shown struct {
	Secret string `json:"secret,omitempty"`
}

// List is one page of webhooks.
type List struct {
	// Webhooks of the page.
	Data []Webhook `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

// EventType is a type of events that webhooks can subscribe to.
type EventType struct {
	// Name of the type, as events of a webhook has it.
	// Example: "key_event.created"
	Type string `json:"type"`
	// When such an event is sent, in English.
	When string `json:"when"`
	// APIs whose streams publish it; left out: the portal sends it.
	APIs []EventAPI `json:"apis,omitempty"`
}

// EventAPI is an API whose streams publish events.
type EventAPI struct {
	// Id of the API.
	ID string `json:"api_id"`
	// Name of the API.
	Name string `json:"name"`
	// Whether the developer may call the API, and gets its events; others get them once they have
	// access.
	Access bool `json:"access"`
}

// Types is every type of events.
type Types struct {
	// Types of events, at most one page.
	Data []EventType `json:"Data"`
	// Number of pages.
	Pages int64 `json:"Pages"`
}

// types lists the types of events of the portal itself. Events about APIs are not for
// developers.
func types(developers bool) []EventType {
	all := []EventType{
		{Type: model.RequestSubmitted, When: "a developer asked for access"},
		{Type: model.RequestUpdated, When: "a key request was changed"},
		{Type: model.RequestApproved, When: "a key request was approved"},
		{Type: model.RequestRejected, When: "a key request was rejected"},
		{Type: model.KeyCreated, When: "a developer got a key"},
		{Type: model.KeyUpdated, When: "a developer's key was changed"},
		{Type: model.KeyRotated, When: "a developer's key was replaced by another"},
		{Type: model.KeyRevoked, When: "a developer's key was revoked"},
	}
	if developers {
		return all
	}
	return append(all, []EventType{
		{Type: model.APICreated, When: "an API was made"},
		{Type: model.APIUpdated, When: "an API was changed"},
		{Type: model.APIDeleted, When: "an API was deleted"},
	}...)
}

// allEvents stands for every type of events of the portal itself. Those of streams are many,
// and have to be named.
const allEvents = "*"

// Bounds of the members of a webhook.
const (
	maxName = 200
	maxURL  = 2048
)

// check returns the problems of a webhook that may subscribe to the known types, and to those
// that it has, and whose URL is checked on its own.
func check(name string, events []string, known []EventType, has ...string) (problems []string) {
	if len(name) > maxName || !rest.Printable(name) {
		problems = append(problems, fmt.Sprintf("name: must be printable text of at most %d bytes", maxName))
	}
	if len(events) == 0 {
		problems = append(problems, `events: must name at least one type, or "*" for every one of the portal itself`)
	}
	for i, e := range events {
		if e != allEvents && !slices.Contains(has, e) && !slices.ContainsFunc(known, func(t EventType) bool { return t.Type == e }) {
			problems = append(problems, fmt.Sprintf("events[%d]: %.60q is none of the types that GET /api/portal/webhooks/events lists", i, e))
		}
		if slices.Contains(events[:i], e) {
			problems = append(problems, fmt.Sprintf("events[%d]: %.60q is there twice", i, e))
		}
		if len(problems) > 20 {
			break
		}
	}
	return problems
}

// urlProblems lists what is wrong with a URL, if anything is.
func (to *reach) urlProblems(text string) []string {
	if err := to.checkURL(text); err != nil {
		return []string{"url: " + err.Error()}
	}
	return nil
}

// checkURL checks a URL. The addresses of a host name are checked when a message is sent.
func (to *reach) checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return fmt.Errorf("is missing")
	case len(text) > maxURL:
		return fmt.Errorf("must have at most %d bytes", maxURL)
	case err != nil || !rest.Printable(text) || strings.ContainsRune(text, ' '):
		return fmt.Errorf("is no URL, such as https://example.com/hooks")
	case u.Scheme != "https" && (u.Scheme != "http" || !to.policy.Private):
		return fmt.Errorf("must begin with https://")
	case u.Opaque != "" || u.Hostname() == "":
		return fmt.Errorf("names no host")
	case u.User != nil:
		return fmt.Errorf("must not hold a user or password")
	case u.Fragment != "":
		return fmt.Errorf("must not have a fragment (#…)")
	}
	port := u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return fmt.Errorf("has a port that is not in 1…65535")
	}
	if port == "" {
		port = "443"
	}
	if err := to.policy.Check(net.JoinHostPort(u.Hostname(), port)); err != nil {
		return fmt.Errorf("leads to an address that messages are not sent to: %w", err)
	}
	return nil
}

// webhookFor is webhookOf for the caller.
func webhookFor(c *rest.Call, r *store.Webhook) Webhook {
	w := webhookOf(r)
	if isDeveloper(c) {
		w.DisabledFor = forDeveloper(w.DisabledFor)
	}
	return w
}

func webhookOf(r *store.Webhook) Webhook {
	w := Webhook{
		ID: r.ID, Org: r.OrgID, Name: r.Name, URL: r.URL, Events: r.Events, Enabled: r.DisabledAt == nil,
		Disabled: rest.Time(r.DisabledAt), DisabledFor: r.DisabledFor, Failing: rest.Time(r.FailingSince), Missed: r.Missed, MissedAt: rest.Time(r.MissedAt),
		FormerUntil: rest.Time(r.FormerUntil), Created: *rest.Time(&r.CreatedAt), Updated: *rest.Time(&r.UpdatedAt),
	}
	w.Developer = owner(r)
	return w
}

// An auditedChange is a change of a webhook, before and after; either may be nil.
type auditedChange struct {
	action        string
	before, after *store.Webhook
}

// audit adds a change of a webhook to the audit log.
func audit(ctx context.Context, tx *store.Tx, by store.Author, done auditedChange) error {
	d := store.AuditEntry{Action: done.action, Kind: "webhook"}
	for _, side := range []struct {
		row  *store.Webhook
		body *[]byte
	}{{done.before, &d.Before}, {done.after, &d.After}} {
		if side.row == nil {
			continue
		}
		body, err := rest.Encode(webhookOf(side.row))
		if err != nil {
			return err
		}
		d.ID, *side.body = side.row.ID, body
	}
	return tx.Audit(ctx, by, d)
}
