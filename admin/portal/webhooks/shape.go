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
	ID          string   `json:"id"`
	Org         string   `json:"org_id"`
	Developer   string   `json:"developer_id" doc:"whose it is; empty: the organisation's"`
	Name        string   `json:"name"`
	URL         string   `json:"url" doc:"where messages are posted to; https"`
	Events      []string `json:"events" doc:"types of events; * is every one of the portal itself: those of streams are named"`
	Enabled     bool     `json:"enabled"`
	Disabled    *string  `json:"disabled_at,omitempty"`
	DisabledFor string   `json:"disabled_for,omitempty" doc:"why it is not told any more"`
	Failing     *string  `json:"failing_since,omitempty" doc:"nothing could be delivered since then"`
	Missed      int64    `json:"missed_events,omitempty" doc:"events of streams that were not queued, as too much waited for it"`
	MissedAt    *string  `json:"missed_at,omitempty" doc:"the last of them"`
	FormerUntil *string  `json:"former_secret_until,omitempty" doc:"until then messages are signed with the former secret, too"`
	Created     string   `json:"date_created"`
	Updated     string   `json:"date_updated"`
}

// Wanted is the body of a call that creates a webhook.
type Wanted struct {
	Name      string   `json:"name"`
	URL       string   `json:"url"`
	Events    []string `json:"events"`
	Secret    string   `json:"secret,omitempty" doc:"whsec_ and 24 to 64 bytes in base64; left out: one is made and shown this once"`
	Developer string   `json:"developer_id,omitempty" doc:"whose it is to be; left out: the organisation's"`
}

// Rotation is the body of a call that replaces the secret.
type Rotation struct {
	Secret string `json:"secret,omitempty" doc:"as when a webhook is made"`
	Grace  string `json:"grace,omitempty" doc:"how long messages are signed with the former secret, too; at most 168h" default:"24h"`
}

// Shown is a secret that is shown once.
type Shown struct {
	Secret string `json:"secret,omitempty"`
}

// List is one page of webhooks.
type List struct {
	Data  []Webhook `json:"Data"`
	Pages int64     `json:"Pages"`
}

// EventType is a type of events that webhooks can subscribe to.
type EventType struct {
	Type string     `json:"type"`
	When string     `json:"when"`
	APIs []EventAPI `json:"apis,omitempty" doc:"whose streams publish it; left out: the portal sends it"`
}

// EventAPI is an API whose streams publish events.
type EventAPI struct {
	ID     string `json:"api_id"`
	Name   string `json:"name"`
	Access bool   `json:"access" doc:"the developer may call the API, and gets its events; others get them once they have access"`
}

// Types is every type of events.
type Types struct {
	Data  []EventType `json:"Data"`
	Pages int64       `json:"Pages"`
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
